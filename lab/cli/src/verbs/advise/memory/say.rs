//! Sentences on a race for less memory: the answer with both sides, the settings, memory over time.

use super::{GoalFindings, typical};
use crate::args::Advise;
use crate::verbs::advise::asked::Asked;
use crate::verbs::advise::{ending, recorded};
use crate::verbs::redraw;
use crate::{advised, output, status};
use cachewise_advise::candidates::{self, Candidate};
use cachewise_advise::goal::{self, GoalAnswer};
use cachewise_advise::shown_name;
use cachewise_judge::Ratio;
use cachewise_judge::race::Fate;
use cachewise_measure::held::Held;
use cachewise_measure::record::names::{
    ADVISED_FRESH, ADVISED_MEMORY, ADVISED_RACE, HELD_BYTES, HELD_HIGH, HELD_LOW, HELD_MIB,
    HELD_RATIO, PAGE_FAULTS, PEAK, PLAIN, RECOMMENDED, SECONDS,
};
use cachewise_measure::{
    CellKey, Clock, Decisions, End, Figure, FigureKind, Header, NoiseSnapshot, Record, Row,
    warnings,
};
use cachewise_report::closing::{self, Closing, Trust};

/// Settings whose memory over time is kept, beside the plain program's.
const CURVES: usize = 4;
/// Points of a curve.
const POINTS: usize = 40;

/// Prints and writes everything that is known; the exit status.
pub(in crate::verbs::advise) fn say(found: &GoalFindings, asked: &Asked<'_>) -> anyhow::Result<u8> {
    let args = asked.args;
    let disturbed = warnings(&asked.before, &NoiseSnapshot::take(), &asked.machine);
    let stopped = found.outcome.stopped || !found.ran;
    let closing = closing(found, asked, ending::trust(&disturbed, stopped));
    let mut record = record(found, asked);
    record.header.warnings = disturbed;
    record.end = Some(End {
        rows: record.rows.len() as u64,
        interrupted: stopped,
        seconds: found.begun.elapsed().as_secs_f64(),
        peak_bytes: None,
        verdicts: verdicts(found, &closing),
    });
    let set = match &found.answer {
        GoalAnswer::Set(at, ratios) => {
            let candidate = &found.candidates[*at];
            let about = format!("{}: {}", candidate.name, goal::both(found.goal, ratios));
            Some((candidate, about))
        }
        _ => None,
    };
    ending::give(args, asked.words, &text(found, &record, &closing), set, record, found.begun)?;
    Ok(match found.answer {
        _ if stopped => status::INTERRUPTED,
        GoalAnswer::Set(..) | GoalAnswer::Nothing(_) => status::OK,
        GoalAnswer::CannotTell(_) => status::INCONCLUSIVE,
    })
}

fn closing(found: &GoalFindings, Asked { args, words, .. }: &Asked<'_>, trust: Trust) -> Closing {
    let by = if found.by_cpu { " by CPU time" } else { "" };
    let (answer, because, next) = match &found.answer {
        GoalAnswer::Set(at, ratios) => {
            let candidate = &found.candidates[*at];
            let said = format!("{}: {}{by}", candidate.name, goal::both(found.goal, ratios));
            (closing::ClosingAnswer::Yes, said, line(candidate, words))
        }
        GoalAnswer::Nothing(_) if let Some(growth) = &found.growth => {
            (closing::ClosingAnswer::No, growth.sentence(), blame(args, words))
        }
        GoalAnswer::Nothing(why) => {
            let dearer = with_more_time(found);
            let said = match dearer {
                Some(_) => why.clone(),
                None => format!("nothing to gain: {why}"),
            };
            let next = match found.plain.grows() {
                true => blame(args, words),
                false => dearer.unwrap_or_else(|| "nothing: leave the program as it is".to_owned()),
            };
            (closing::ClosingAnswer::No, said, next)
        }
        GoalAnswer::CannotTell(why) => {
            let next = match found.outcome.stopped || !found.ran {
                false if found.growth.is_some() || found.plain.grows() => blame(args, words),
                false if found.outcome.winner.is_none() => with_more_time(found)
                    .unwrap_or_else(|| ending::next(&found.outcome, found.ran, why)),
                _ => ending::next(&found.outcome, found.ran, why),
            };
            (closing::ClosingAnswer::CannotTell, why.clone(), next)
        }
    };
    Closing { answer, because, trust, next }
}

/// The next step of those who would give more time for memory.
fn with_more_time(found: &GoalFindings) -> Option<String> {
    let (_, ratios) = goal::dearer(&found.outcome, found.allowed)?;
    let option = at_most(&ratios[1]);
    Some(format!("nothing, or the same again with {option}: less memory, more time"))
}

/// The option that allows a setting's loss of time.
fn at_most(time: &Ratio) -> String {
    format!("--at-most {:.0}%", ((time.high - 1.0) * 100.0).ceil())
}

/// The setting that a larger `--at-most` asks for, as a sentence.
fn dearer(found: &GoalFindings) -> Option<String> {
    let (at, ratios) = goal::dearer(&found.outcome, found.allowed)?;
    let (name, both) = (&found.candidates[at].name, goal::both(found.goal, &ratios));
    let (rounds, option) = (ratios[0].rounds, at_most(&ratios[1]));
    Some(format!("for more time: {name}: {both} on {rounds} rounds; {option} allows it"))
}

/// The way to the code that memory grows by.
fn blame(args: &Advise, words: &[String]) -> String {
    let load = args.load.as_ref().map(|load| format!("--load {} ", candidates::quoted(load)));
    match &args.unit {
        Some(unit) => format!("cachewise advise --blame memory -- the program of {unit}"),
        None => format!(
            "cachewise advise --blame memory {}-- {}",
            load.unwrap_or_default(),
            candidates::command(words)
        ),
    }
}

/// The answer, growth that it does not stop, and how far it can be trusted.
fn verdicts(found: &GoalFindings, closing: &Closing) -> Vec<String> {
    let answer = format!("{}: {}", closing.answer.name(), closing.because);
    let trust = format!("Trust: {}", closing.trust);
    let beside = beside(found).into_iter().chain(dearer(found));
    std::iter::once(answer).chain(beside).chain([trust]).collect()
}

/// Growth beside another answer.
fn beside(found: &GoalFindings) -> Option<String> {
    let is_answer = matches!(found.answer, GoalAnswer::Nothing(_));
    found.growth.filter(|_| !is_answer).map(|growth| growth.sentence())
}

/// The command by a setting; huge pages are switched off by what starts it.
fn line(candidate: &Candidate, words: &[String]) -> String {
    let line = candidate.line(words);
    match candidate.no_huge_pages {
        true => {
            format!("prctl(PR_SET_THP_DISABLE), or MemoryTHP=disable in its unit, then: {line}")
        }
        false => line,
    }
}

fn text(found: &GoalFindings, record: &Record, closing: &Closing) -> String {
    let mut text = format!("{closing}\n");
    if found.ran {
        text.push_str(&format!("{}\n", found.plain.sentence()));
        let beside = beside(found).into_iter().chain(dearer(found));
        text.extend(beside.map(|sentence| format!("{sentence}\n")));
        text.push_str(&format!("allocator: {}\n", found.allocator));
    }
    for table in advised::tables(record) {
        text.push_str(&format!("\n{}", table.terminal(output::width())));
    }
    if !record.rows.is_empty() {
        text.push_str(&redraw::plots(record));
    }
    for note in &record.notes {
        text.push_str(&format!("note: {}\n", note.text));
    }
    format!("{}\n", text.trim_end())
}

/// The whole record.
fn record(found: &GoalFindings, asked: &Asked<'_>) -> Record {
    let Asked { args, words, machine, seed, .. } = asked;
    let tool = concat!("cachewise ", env!("CARGO_PKG_VERSION"));
    let mut header = Header::now(tool, machine.clone(), Clock::of_process().facts(), *seed);
    let name = program(args, words);
    let mut setting = |name: &str, value: serde_json::Value| {
        header.settings.insert(name.to_owned(), value);
    };
    setting("experiment", advised::EXPERIMENT.into());
    setting("name", name.as_str().into());
    setting("program", (*words).into());
    setting("load", args.load.clone().into());
    setting("unit", args.unit.clone().into());
    setting("goal", found.goal.name().into());
    setting("at_most", found.allowed.into());
    let lines = found.candidates.iter().map(|one| (one.name.clone(), line(one, words).into()));
    setting("settings", serde_json::Value::Object(lines.collect()));
    if let GoalAnswer::Set(at, _) = &found.answer {
        let variables = found.candidates[*at].variables.iter();
        let variables = variables.map(|(name, value)| (name.clone(), value.clone().into()));
        setting(RECOMMENDED, serde_json::Value::Object(variables.collect()));
    }
    if let Some(surroundings) = &mut header.surroundings {
        surroundings.allocator.clone_from(&found.allocator);
    }
    let what = found.goal.what();
    let dots = |title: &str, value: &str| {
        Figure::new(title, FigureKind::Dots, "candidate", value).of(ADVISED_RACE)
    };
    let mut curve = Figure::curve("Memory over time", SECONDS, HELD_MIB);
    curve = curve.of(ADVISED_MEMORY);
    header.figures = vec![
        dots(&format!("{} over the plain program's", upper(what)), HELD_RATIO),
        dots("Time over the plain program's", "ratio"),
        curve,
    ];
    let names: Vec<&str> = std::iter::once(PLAIN)
        .chain(found.candidates.iter().map(|one| one.name.as_str()))
        .collect();
    let mut rows = Vec::new();
    for (who, runs) in found.outcome.runs.iter().enumerate() {
        let mut row = row(&name, ADVISED_RACE, names[who], runs, &found.outcome.runs[0]);
        if let Some(row) = &mut row {
            row.dropped = who > 0 && found.outcome.fates[who - 1] != Fate::Live;
        }
        rows.extend(row);
    }
    if let (Some([plain, own]), Some(winner)) = (&found.outcome.fresh, found.outcome.winner) {
        rows.extend(row(&name, ADVISED_FRESH, PLAIN, plain, plain));
        rows.extend(row(&name, ADVISED_FRESH, names[winner], own, plain));
    }
    rows.extend(curves(found, &name, &names));
    let notes = recorded::notes(&found.notes, &found.outcome, &names[1..], &found.left_out);
    Record { header, rows, notes, decisions: Decisions::default(), end: None }
}

fn program(args: &Advise, words: &[String]) -> String {
    let own = || args.unit.clone().unwrap_or_else(|| shown_name(words).to_owned());
    args.name.clone().unwrap_or_else(own)
}

fn upper(text: &str) -> String {
    let mut text = text.to_owned();
    text[..1].make_ascii_uppercase();
    text
}

/// A setting's runs: its times, and its memory among the figures. None without a run.
fn row(
    program: &str,
    state: &str,
    name: &str,
    runs: &goal::Runs,
    plain: &goal::Runs,
) -> Option<Row> {
    if runs.rounds() == 0 {
        return None;
    }
    let times = runs.of(|sample| sample.time * 1e9);
    let row = Row::new(advised::EXPERIMENT, CellKey::new(program, 0, state), name, PLAIN, times);
    let memory = runs.over(plain, |sample| sample.memory);
    let row = row.with(&[
        (HELD_BYTES, runs.median(|sample| sample.memory)),
        (PEAK, runs.median(|sample| sample.held.peak)),
        (PAGE_FAULTS, runs.median(|sample| sample.faults)),
        (HELD_RATIO, if name == PLAIN { 1.0 } else { memory.median }),
    ]);
    Some(match name {
        PLAIN => row,
        _ => row
            .with(&[(HELD_LOW, memory.low), (HELD_HIGH, memory.high)])
            .with_ratio(runs.over(plain, |sample| sample.time)),
    })
}

/// Memory over time of the plain program, of the answer, and of those with the least memory.
fn curves(found: &GoalFindings, program: &str, names: &[&str]) -> Vec<Row> {
    let level = |who: &usize| found.outcome.runs[*who].median(|sample| sample.memory);
    let mut order: Vec<usize> =
        (1..found.outcome.runs.len()).filter(|who| level(who).is_finite()).collect();
    order.sort_by(|a, b| level(a).total_cmp(&level(b)));
    order.sort_by_key(|who| Some(*who) != found.outcome.winner);
    order.truncate(CURVES);
    let plain = typical_or(found.outcome.runs.first(), &found.plain.held);
    let mut drawn = vec![(PLAIN, plain)];
    for who in order {
        drawn.extend(typical(&found.outcome.runs[who]).map(|held| (names[who], held)));
    }
    let mut rows = Vec::new();
    for (name, held) in drawn {
        let step = held.readings.len().div_ceil(POINTS).max(1);
        for reading in held.readings.iter().step_by(step) {
            // Curves have their points at places in common.
            let at = (reading.at * 20.0).round() / 20.0;
            let cell = CellKey::new(program, 0, ADVISED_MEMORY).with(&[(SECONDS, at)]);
            let row = Row::new(advised::EXPERIMENT, cell, name, PLAIN, Vec::new());
            rows.push(row.with(&[(HELD_MIB, reading.bytes / f64::from(1 << 20))]));
        }
    }
    rows
}

fn typical_or<'f>(runs: Option<&'f goal::Runs>, other: &'f Held) -> &'f Held {
    runs.and_then(typical).unwrap_or(other)
}
