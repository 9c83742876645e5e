//! What `advise` found, as a record: `report`, `compare` and pages are drawn from it.

use crate::args::Advise;
use cachewise::profile::ProgramHint;
use cachewise_advise::bound::Bound;
use cachewise_advise::candidates::{Candidate, LeftOut};
use cachewise_advise::race::{Fate, Outcome, Runs, Sample};
use cachewise_advise::verdict::Answer;
use cachewise_measure::record::names::{
    ADVISED_CPU, ADVISED_FRESH, ADVISED_RACE, LEAST_RATIO, PAGE_FAULTS, PEAK, PEAK_RATIO, PLAIN,
    RECOMMENDED,
};
use cachewise_measure::{
    CellKey, Clock, Decisions, Figure, FigureKind, Header, Machine, NoiseSnapshot, Note, Record,
    Row, Warning,
};
use std::collections::BTreeMap;
use std::path::PathBuf;

pub const EXPERIMENT: &str = "advise";

/// What was found.
pub struct Found {
    pub machine: Machine,
    pub before: NoiseSnapshot,
    pub seed: u64,
    pub bound: Option<Bound>,
    pub candidates: Vec<Candidate>,
    pub left_out: Vec<LeftOut>,
    pub outcome: Outcome,
    pub answer: Answer,
    pub notes: Vec<String>,
    /// Hints that candidates give the profile, by the candidate's name.
    pub hints: BTreeMap<String, Vec<ProgramHint>>,
    /// The profile's file, where it is one.
    pub profile: Option<PathBuf>,
    /// Whether the plain run came to its end.
    pub ran: bool,
}

/// The whole record.
pub fn record(found: &Found, args: &Advise, words: &[String], warnings: Vec<Warning>) -> Record {
    let tool = concat!("cachewise ", env!("CARGO_PKG_VERSION"));
    let mut header =
        Header::now(tool, found.machine.clone(), Clock::of_process().facts(), found.seed);
    header.warnings = warnings;
    header.settings.insert("experiment".to_owned(), EXPERIMENT.into());
    let name = args.name.clone().unwrap_or_else(|| program(words));
    header.settings.insert("name".to_owned(), name.as_str().into());
    header.settings.insert("program".to_owned(), words.into());
    header.settings.insert("load".to_owned(), args.load.clone().into());
    if let Some(bound) = &found.bound {
        header.settings.insert("bound".to_owned(), bound.total().into());
    }
    let settings = found.candidates.iter().map(|one| (one.name.clone(), one.line(words).into()));
    header.settings.insert("settings".to_owned(), serde_json::Value::Object(settings.collect()));
    if let Answer::Set(at, _) = &found.answer {
        let variables = found.candidates[*at].variables.iter();
        let variables = variables.map(|(name, value)| (name.clone(), value.clone().into()));
        let variables = serde_json::Value::Object(variables.collect());
        header.settings.insert(RECOMMENDED.to_owned(), variables);
    }
    let dots = |title: &str, value: &str, state: &str| {
        Figure::new(title, FigureKind::Dots, "candidate", value).of(state)
    };
    header.figures = vec![
        dots("Time over the plain program's, by setting", "ratio", ADVISED_RACE),
        dots("CPU time over the plain program's", "ratio", ADVISED_CPU),
        dots("Memory over the plain program's", PEAK_RATIO, ADVISED_RACE),
    ];
    let mut rows = Vec::new();
    let names: Vec<&str> = found.candidates.iter().map(|one| one.name.as_str()).collect();
    let runs: Vec<(&str, &Runs)> =
        std::iter::once(PLAIN).chain(names.iter().copied()).zip(&found.outcome.runs).collect();
    let least = found.bound.as_ref().map(|bound| 1.0 - bound.total());
    let cost = |sample: &Sample| sample.cost;
    let cpu = |sample: &Sample| sample.cpu;
    rows.extend(of(&name, ADVISED_RACE, &runs, cost, least));
    rows.extend(of(&name, ADVISED_CPU, &runs, cpu, None));
    if let (Some(both), Some(winner)) = (&found.outcome.refereed, found.outcome.winner) {
        let runs = [(PLAIN, &both[0]), (names[winner], &both[1])];
        rows.extend(of(&name, ADVISED_FRESH, &runs, cost, None));
    }
    for (at, fate) in found.outcome.fates.iter().enumerate() {
        for row in rows
            .iter_mut()
            .filter(|row| row.candidate == names[at] && row.cell.state != ADVISED_FRESH)
        {
            row.dropped = *fate != Fate::Live;
        }
    }
    let mut notes = found.notes.clone();
    notes.extend(found.outcome.fates.iter().enumerate().filter_map(|(at, fate)| match fate {
        Fate::Disqualified(why) => Some(format!("{}: disqualified: {why}", names[at])),
        _ => None,
    }));
    notes.extend(found.left_out.iter().map(|out| format!("not tried: {}: {}", out.name, out.why)));
    let notes = notes.into_iter().map(|text| Note { text }).collect();
    Record { header, rows, notes, decisions: Decisions::default(), end: None }
}

/// The program's name.
fn program(words: &[String]) -> String {
    let name = words.first().map_or("", |word| word.rsplit('/').next().unwrap_or(word));
    name.to_owned()
}

/// A row for each that had a turn; the plain program is the reference.
fn of(
    program: &str,
    state: &str,
    runs: &[(&str, &Runs)],
    figure: impl Fn(&Sample) -> f64 + Copy,
    least: Option<f64>,
) -> Vec<Row> {
    let Some((_, plain)) = runs.first() else { return Vec::new() };
    let peak = plain.median(|sample| sample.peak);
    let with_turns = runs.iter().filter(|(_, runs)| runs.rounds() > 0);
    let row = |&(name, runs): &(&str, &Runs)| {
        let times = runs.of(figure).into_iter().map(|seconds| seconds * 1e9).collect();
        let own = runs.median(|sample| sample.peak);
        let faults = runs.median(|sample| sample.faults);
        let row = Row::new(EXPERIMENT, CellKey::new(program, 0, state), name, PLAIN, times);
        let row = row.with(&[(PEAK, own), (PEAK_RATIO, own / peak), (PAGE_FAULTS, faults)]);
        match least {
            _ if name != PLAIN => row.with_ratio(runs.over(plain, figure)),
            Some(least) => row.with(&[(LEAST_RATIO, least)]),
            None => row,
        }
    };
    with_turns.map(row).collect()
}
