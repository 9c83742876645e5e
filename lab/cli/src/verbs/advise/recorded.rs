//! Results of `advise` as a record: `report`, `compare` and pages are drawn from it.

use crate::advised::{CPU_TIME, EXPERIMENT, FATES, JUDGED_BY};
use crate::args::Advise;
use cachewise_advise::bound::Bound;
use cachewise_advise::candidates::{Candidate, LeftOut};
use cachewise_advise::sample::{Runs, Sample, TimeOutcome};
use cachewise_advise::shown_name;
use cachewise_advise::verdict::{self, TimeAnswer};
use cachewise_judge::race::{self, Fate};
use cachewise_measure::record::names::{
    ADVISED_CPU, ADVISED_FRESH, ADVISED_RACE, LEAST_RATIO, PAGE_FAULTS, PEAK, PEAK_RATIO, PLAIN,
    RECOMMENDED,
};
use cachewise_measure::{
    CellKey, Clock, Decisions, End, Figure, FigureKind, Header, Machine, NoiseSnapshot, Note,
    Record, Row, Warning,
};
use cachewise_report::closing::Closing;
use std::path::PathBuf;
use std::time::Instant;

/// The findings of one call of `advise`.
pub struct TimeFindings {
    pub machine: Machine,
    pub before: NoiseSnapshot,
    pub seed: u64,
    pub bound: Option<Bound>,
    pub candidates: Vec<Candidate>,
    pub left_out: Vec<LeftOut>,
    pub outcome: TimeOutcome,
    pub answer: TimeAnswer,
    pub notes: Vec<String>,
    /// The profile's file, where it is one.
    pub profile: Option<PathBuf>,
    /// The plain run came to its end.
    pub ran: bool,
    /// Settings were judged by CPU time.
    pub by_cpu: bool,
    /// The moment at which it began.
    pub begun: Instant,
}

/// The whole record.
pub fn record(
    found: &TimeFindings,
    args: &Advise,
    words: &[String],
    warnings: Vec<Warning>,
) -> Record {
    let tool = concat!("cachewise ", env!("CARGO_PKG_VERSION"));
    let mut header =
        Header::now(tool, found.machine.clone(), Clock::of_process().facts(), found.seed);
    header.warnings = warnings;
    header.settings.insert("experiment".to_owned(), EXPERIMENT.into());
    let name = args.name.clone().unwrap_or_else(|| shown_name(words).to_owned());
    header.settings.insert("name".to_owned(), name.as_str().into());
    header.settings.insert("program".to_owned(), words.into());
    header.settings.insert("load".to_owned(), args.load.clone().into());
    let by = if found.by_cpu { CPU_TIME } else { "time" };
    header.settings.insert(JUDGED_BY.to_owned(), by.into());
    if let Some(bound) = &found.bound {
        header.settings.insert("bound".to_owned(), bound.total().into());
    }
    let settings = found.candidates.iter().map(|one| (one.name.clone(), one.line(words).into()));
    header.settings.insert("settings".to_owned(), serde_json::Value::Object(settings.collect()));
    if let TimeAnswer::Set(at, _) = &found.answer {
        let variables = found.candidates[*at].variables.iter();
        let variables = variables.map(|(name, value)| (name.clone(), value.clone().into()));
        let variables = serde_json::Value::Object(variables.collect());
        header.settings.insert(RECOMMENDED.to_owned(), variables);
        header.settings.insert("line".to_owned(), found.candidates[*at].line(words).into());
    }
    header.figures = figures(found.by_cpu);
    let mut rows = Vec::new();
    let names: Vec<&str> = found.candidates.iter().map(|one| one.name.as_str()).collect();
    let runs: Vec<(&str, &Runs)> =
        std::iter::once(PLAIN).chain(names.iter().copied()).zip(&found.outcome.runs).collect();
    let least = found.bound.as_ref().map(|bound| 1.0 - bound.total());
    let cost = |sample: &Sample| sample.cost;
    let cpu = |sample: &Sample| sample.cpu;
    rows.extend(of(&name, ADVISED_RACE, &runs, cost, least));
    rows.extend(of(&name, ADVISED_CPU, &runs, cpu, None));
    if let (Some(both), Some(winner)) = (&found.outcome.fresh, found.outcome.winner) {
        let runs = [(PLAIN, &both[0]), (names[winner - 1], &both[1])];
        rows.extend(of(&name, ADVISED_FRESH, &runs, cost, None));
    }
    let mut fates = serde_json::Map::new();
    for (name, fate) in names.iter().zip(&found.outcome.fates) {
        let raced = |row: &&mut Row| row.candidate == *name && row.cell.state != ADVISED_FRESH;
        rows.iter_mut().filter(raced).for_each(|row| row.dropped = *fate != Fate::Live);
        fates.insert((*name).to_owned(), verdict::fate(fate).into());
    }
    header.settings.insert(FATES.to_owned(), fates.into());
    let notes = notes(&found.notes, &found.outcome, &names, &found.left_out);
    Record { header, rows, notes, decisions: Decisions::default(), end: None }
}

/// The record's figures; settings may have been judged by CPU time.
fn figures(by_cpu: bool) -> Vec<Figure> {
    let dots = |title: &str, value: &str, state: &str| {
        Figure::new(title, FigureKind::Dots, "candidate", value).of(state)
    };
    let judged = |title: &str| dots(title, "ratio", ADVISED_RACE);
    let memory = dots("Memory over the plain program's", PEAK_RATIO, ADVISED_RACE);
    if by_cpu {
        return vec![judged("Time over the plain program's, by setting: CPU time"), memory];
    }
    let cpu = dots("CPU time over the plain program's", "ratio", ADVISED_CPU);
    vec![judged("Time over the plain program's, by setting"), cpu, memory]
}

/// Notes of a race: those so far, and the settings that were disqualified or not tried, with the reason.
pub(super) fn notes<S>(
    found: &[String],
    outcome: &race::RaceOutcome<S>,
    names: &[&str],
    left_out: &[LeftOut],
) -> Vec<Note> {
    let disqualified = outcome.fates.iter().zip(names).filter_map(|(fate, name)| match fate {
        Fate::Disqualified(why) => Some(format!("{name}: disqualified: {why}")),
        _ => None,
    });
    let left_out = left_out.iter().map(|out| format!("not tried: {}: {}", out.name, out.why));
    let notes = found.iter().cloned().chain(disqualified);
    let notes = notes.chain(not_tried(outcome, names)).chain(left_out);
    notes.map(|text| Note { text }).collect()
}

/// The settings without a turn, as a note.
fn not_tried<S>(outcome: &race::RaceOutcome<S>, names: &[&str]) -> Option<String> {
    let waiting = outcome.fates.iter().zip(names);
    let waiting = waiting.filter(|(fate, _)| **fate == Fate::NotReached);
    let names = waiting.map(|(_, name)| *name).collect::<Vec<_>>().join("; ");
    let why = match outcome.stopped {
        true => "it was stopped before".to_owned(),
        false => format!("{} has time for", verdict::budget(outcome.for_all?)),
    };
    (!names.is_empty()).then(|| format!("not tried: {why}: {names}"))
}

/// The end of the record: the answer is its headline, and the command stands below it.
pub fn end(found: &TimeFindings, record: &Record, closing: &Closing, interrupted: bool) -> End {
    let mut verdicts = vec![format!("{}: {}", closing.answer.name(), closing.because)];
    if let TimeAnswer::Set(at, _) = &found.answer {
        verdicts.push(format!("Command: {}", closing.next));
        let variables = found.candidates[*at].variables.iter();
        verdicts.extend(variables.map(|(name, value)| format!("ENV {name}={value}")));
    }
    verdicts.push(format!("Trust: {}", closing.trust));
    let seconds = found.begun.elapsed().as_secs_f64();
    End { rows: record.rows.len() as u64, interrupted, seconds, peak_bytes: None, verdicts }
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
