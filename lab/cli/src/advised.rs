//! Records of `advise`: made of what was found, and drawn as text, tables and pages.

use crate::args::Advise;
use crate::output;
use crate::verbs::redraw;
use cachewise_advise::answer;
use cachewise_advise::ask::{Asked, Findings, bound_said};
use cachewise_advise::figures::Kind;
use cachewise_advise::four::Look;
use cachewise_advise::program::{Figure as Judged, Sample};
use cachewise_advise::settings::Candidate;
use cachewise_advise::shown_name;
use cachewise_judge::race::{Fate, Runs};
use cachewise_judge::{Ratio, Verdict};
use cachewise_measure::record::names::{
    ADVISED_MEMORY, ADVISED_RACE, HELD_BYTES, HELD_MIB, JUDGED, LEAST_RATIO, LOSS_HIGH, LOSS_LOW,
    LOSS_RATIO, PAGE_FAULTS, PEAK, PEAK_RATIO, PLAIN, RECOMMENDED, SECONDS,
};
use cachewise_measure::units::{bytes, significant, time};
use cachewise_measure::{
    CellKey, Clock, Decisions, End, Figure, FigureKind, Header, Machine, Note, Record, Row, Warning,
};
use cachewise_report::Table;
use cachewise_report::closing::{Closing, ClosingAnswer, Trust};
use cachewise_report::cost::median;

pub const EXPERIMENT: &str = "advise";
/// Setting of the record: the reason why each setting is not the answer.
const FATES: &str = "fates";
/// Setting of the record: the figure that was judged, and its kind.
const JUDGED_BY: &str = "judged_by";
const KIND: &str = "kind";
/// Settings whose memory over time is kept, beside the plain program's; points of each.
const CURVES: usize = 3;
const POINTS: usize = 40;
/// Disturbances that change an answer about whole programs, the gravest first: what is so for plain runs and settings
/// alike (a guest, a governor) is in the record alone.
const GRAVE: [&str; 8] =
    ["emulation", "swapping", "throttled", "load", "others", "steal", "memory", "quota"];

/// The three lines that an answer begins with.
fn closing(found: &Findings, record: &Record) -> Closing {
    let answer = match found.answer.verdict {
        Verdict::Faster => ClosingAnswer::Yes,
        Verdict::Same | Verdict::Slower => ClosingAnswer::No,
        Verdict::Unknown => ClosingAnswer::CannotTell,
    };
    let warnings = &record.header.warnings;
    let gravest = GRAVE.iter().find_map(|id| warnings.iter().find(|one| one.id == *id));
    let mut trust = Trust::default();
    if let Some(Warning { cause, figure, .. }) = gravest {
        trust.doubt(format!("{figure}: {cause}"));
    }
    Closing { answer, because: found.answer.why.clone(), trust, next: found.answer.next.clone() }
}

/// The answer, what it costs, then what was measured.
pub fn text(found: &Findings, record: &Record) -> String {
    let mut text = closing(found, record).to_string();
    if found.answer.verdict == Verdict::Faster {
        // What may be lost stands in the answer.
        let costs = found.answer.costs.iter().skip(usize::from(found.loss.is_some()));
        let costs: Vec<String> = costs.map(answer::cost_said).collect();
        text.push_str(&format!("beside:     {}\n", costs.join(", ")));
    }
    for line in &found.install {
        text.push_str(&format!("not tried:  {line}\n"));
    }
    if let Some(memory) = &found.memory {
        text.push_str(&format!("\n{}\n", memory.lines().join("\n")));
    }
    if let Some(held) = found.first.as_ref().and_then(|first| first.held.as_ref()) {
        let [level, peak] = [held.level, held.peak].map(mib);
        let what = "without files and what was given back lazily";
        text.push_str(&format!("\njudged: {level}, {what}; {peak} at most; {}\n", found.allocator));
    }
    if let Some(bound) = &found.bound {
        text.push_str(&format!("\n{}\n", bound_said(bound)));
    }
    for table in tables(record).iter().filter(|table| !table.rows.is_empty()) {
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

fn mib(size: f64) -> String {
    bytes(size.max(0.0) as u64 >> 16 << 16)
}

/// The record.
pub fn record(
    found: &Findings,
    asked: &Asked,
    args: &Advise,
    machine: Machine,
    warnings: Vec<Warning>,
    interrupted: bool,
) -> Record {
    let tool = concat!("cachewise ", env!("CARGO_PKG_VERSION"));
    let mut header = Header::now(tool, machine, Clock::of_process().facts(), asked.seed);
    header.warnings = warnings;
    let name = args.name.clone().unwrap_or_else(|| shown_name(&asked.words).to_owned());
    let kind = found.cost.kind(found.first.as_ref());
    let fates = found.settings.iter().zip(&found.outcome.fates);
    let fates = fates.map(|(one, fate)| (one.name.clone(), answer::fate(fate).into()));
    let lines = found.settings.iter().map(|one| (one.name.clone(), one.line(&asked.words).into()));
    for (setting, value) in [
        ("experiment", EXPERIMENT.into()),
        ("name", name.as_str().into()),
        ("program", asked.words.as_slice().into()),
        ("load", args.load.clone().into()),
        ("goal", asked.goal.name().into()),
        (JUDGED_BY, found.cost.name().into()),
        (KIND, kind_name(kind).into()),
        ("bound", found.bound.map(|bound| bound.total()).into()),
        ("memory", found.memory.as_ref().map(memory).into()),
        ("settings", serde_json::Value::Object(lines.collect())),
        (FATES, serde_json::Value::Object(fates.collect())),
    ] {
        header.settings.insert(setting.to_owned(), value);
    }
    if let Some(surroundings) = &mut header.surroundings {
        surroundings.allocator.clone_from(&found.allocator);
    }
    let set = recommended(found);
    if let Some(setting) = set {
        let variables = setting.variables.iter();
        let variables = variables.map(|(name, value)| (name.clone(), value.clone().into()));
        let variables = serde_json::Value::Object(variables.collect());
        header.settings.insert(RECOMMENDED.to_owned(), variables);
        header.settings.insert("line".to_owned(), setting.line(&asked.words).into());
    }
    let title = format!(
        "{}{} over the plain program's, by setting",
        found.cost.name()[..1].to_uppercase(),
        &found.cost.name()[1..]
    );
    let curve = Figure::curve("Memory over time", SECONDS, HELD_MIB).of(ADVISED_MEMORY);
    header.figures =
        vec![Figure::new(&title, FigureKind::Dots, "candidate", "ratio").of(ADVISED_RACE), curve];
    let mut rows: Vec<Row> =
        (0..found.outcome.runs.len()).filter_map(|who| row(found, &name, who)).collect();
    rows.extend(curves(found, &name));
    let mut record =
        Record { header, rows, notes: notes(found), decisions: Decisions::default(), end: None };
    let closing = closing(found, &record);
    let mut verdicts = vec![format!("{}: {}", closing.answer.name(), closing.because)];
    if let Some(setting) = set {
        verdicts.push(format!("Command: {}", closing.next));
        let variables = setting.variables.iter();
        verdicts.extend(variables.map(|(name, value)| format!("ENV {name}={value}")));
    }
    verdicts.push(format!("Trust: {}", closing.trust));
    let seconds = found.programs.begun.elapsed().as_secs_f64();
    let rows = record.rows.len() as u64;
    record.end = Some(End { rows, interrupted, seconds, peak_bytes: None, verdicts });
    record
}

/// Memory of a look for other programs: bytes.
fn memory(look: &Look) -> serde_json::Value {
    let parts = &look.parts;
    serde_json::json!({
        "level": parts.level(), "live": parts.live, "held": parts.held, "lazy": parts.lazy,
        "shared": parts.shared, "huge": parts.huge, "rest": parts.rest, "unknown": parts.unknown,
        "processes": parts.processes, "lives": look.lives, "word": look.word.name(),
        "trimmed": look.trim.as_ref().ok().map(|trim| trim.returned),
        "next_load": look.trim.as_ref().ok().map(|trim| trim.next).filter(|next| next.is_finite()),
    })
}

fn recommended(found: &Findings) -> Option<&Candidate> {
    let is_yes = found.answer.verdict == Verdict::Faster;
    found.answer.setting.filter(|_| is_yes).and_then(|at| found.settings.get(at))
}

/// Notes of the race, and the settings that were disqualified or not tried, with the reason.
fn notes(found: &Findings) -> Vec<Note> {
    let fates = found.settings.iter().zip(&found.outcome.fates);
    let disqualified = fates.clone().filter_map(|(one, fate)| match fate {
        Fate::Disqualified(why) => Some(format!("{}: disqualified: {why}", one.name)),
        _ => None,
    });
    let waiting: Vec<&str> = fates
        .filter(|(_, fate)| matches!(fate, Fate::NotReached | Fate::Waiting))
        .map(|(one, _)| one.name.as_str())
        .collect();
    let waiting = (!waiting.is_empty())
        .then(|| format!("not shown, for lack of time: {}", waiting.join("; ")));
    let left_out = found.left_out.iter().map(|out| format!("not tried: {}: {}", out.name, out.why));
    let all = found.notes.iter().cloned().chain(disqualified).chain(waiting).chain(left_out);
    all.map(|text| Note { text }).collect()
}

fn name_of(found: &Findings, who: usize) -> &str {
    if who == 0 { PLAIN } else { &found.settings[who - 1].name }
}

/// The runs of a setting; none if it never ran. Times are the clock's, the ratio is that of the judged figure.
fn row(found: &Findings, program: &str, who: usize) -> Option<Row> {
    let (runs, plain) = (&found.outcome.runs[who], &found.outcome.runs[0]);
    if runs.rounds() == 0 {
        return None;
    }
    let middle = |runs: &Runs<Sample>, figure: &Judged| runs.median(|sample| figure.of(sample));
    let times = runs.of(|sample| sample.wall * 1e9);
    let cell = CellKey::new(program, 0, ADVISED_RACE);
    let name = name_of(found, who);
    let peaks = [runs, plain].map(|runs| middle(runs, &Judged::Peak));
    let mut row = Row::new(EXPERIMENT, cell, name, PLAIN, times).with(&[
        (JUDGED, middle(runs, &found.cost)),
        (PEAK, peaks[0]),
        (PEAK_RATIO, peaks[0] / peaks[1]),
        (PAGE_FAULTS, middle(runs, &Judged::Faults)),
    ]);
    if who == 0 {
        let least = found.bound.map(|bound| (LEAST_RATIO, 1.0 - bound.total()));
        return Some(row.with(least.as_slice()));
    }
    let beside = found.loss.clone().unwrap_or(Judged::Cpu);
    let lost = found.outcome.ratio(who, |sample| beside.of(sample));
    row = row.with(&[(LOSS_RATIO, lost.median), (LOSS_LOW, lost.low), (LOSS_HIGH, lost.high)]);
    row.dropped = found.outcome.fates[who - 1] != Fate::Live;
    Some(row.with_ratio(found.outcome.ratio(who, |sample| found.cost.of(sample))))
}

/// Memory over time of the plain program, of the answer, and of those with the least memory.
fn curves(found: &Findings, program: &str) -> Vec<Row> {
    let level = |who: usize| found.outcome.runs[who].median(|sample| sample.level);
    let mut order: Vec<usize> =
        (1..found.outcome.runs.len()).filter(|who| level(*who).is_finite()).collect();
    order.sort_by(|a, b| level(*a).total_cmp(&level(*b)));
    order.sort_by_key(|who| Some(*who) != found.outcome.best);
    order.truncate(CURVES);
    let mut rows = Vec::new();
    for who in std::iter::once(0).chain(order) {
        let held =
            found.outcome.runs.get(who).and_then(|runs| runs.samples().last()?.held.as_ref());
        let Some(held) = held else { continue };
        let step = held.readings.len().div_ceil(POINTS).max(1);
        for reading in held.readings.iter().step_by(step) {
            // Curves have their points at places in common.
            let at = (reading.at * 20.0).round() / 20.0;
            let cell = CellKey::new(program, 0, ADVISED_MEMORY).with(&[(SECONDS, at)]);
            let row = Row::new(EXPERIMENT, cell, name_of(found, who), PLAIN, Vec::new());
            rows.push(row.with(&[(HELD_MIB, reading.bytes / f64::from(1 << 20))]));
        }
    }
    rows
}

fn kind_name(kind: Kind) -> &'static str {
    match kind {
        Kind::Seconds => "seconds",
        Kind::Bytes => "bytes",
        Kind::Rate => "rate",
        Kind::Count | Kind::Ratio => "count",
    }
}

/// A figure as its kind is printed.
fn shown(kind: &str, value: f64) -> String {
    match kind {
        _ if !value.is_finite() => String::new(),
        "bytes" => mib(value),
        "rate" => significant(1.0 / value),
        "count" => significant(value),
        _ => time(value * 1e9),
    }
}

/// Each setting beside the plain program, the best first.
pub fn tables(record: &Record) -> Vec<Table> {
    let setting = |name: &str| record.header.settings.get(name).and_then(|value| value.as_str());
    let kind = setting(KIND).unwrap_or("seconds");
    let judged = setting(JUDGED_BY).unwrap_or("time");
    let fates = record.header.settings.get(FATES);
    let fate = |name: &str| fates.and_then(|all| all.get(name)?.as_str()).unwrap_or_default();
    let goal = setting("goal").unwrap_or("time");
    let is_time = goal == "time";
    let mut rows: Vec<&Row> =
        record.rows.iter().filter(|row| row.cell.state == ADVISED_RACE).collect();
    let part = |row: &Row| row.ratio.map_or(1.0, |ratio| ratio.median);
    rows.sort_by(|a, b| part(a).total_cmp(&part(b)));
    let Some(first) = rows.first() else { return Vec::new() };
    let over = if is_time { "speed over plain" } else { "over plain" };
    let beside = if is_time { "CPU over plain" } else { "time over plain" };
    let heads = format!("setting | >{judged} | >{over} | >runs | >{beside} | >peak | >page faults");
    let title = format!("{}: settings beside the plain program", first.cell.operation);
    let mut table = Table::of(title, &heads);
    for row in &rows {
        let figure = |name: &str| row.figure(name).filter(|value| value.is_finite());
        let times: Vec<f64> =
            row.operation_ns.iter().copied().filter(|time| time.is_finite()).collect();
        // Records of earlier releases have the judged figure among the times.
        let value = figure(JUDGED).or(figure(HELD_BYTES)).unwrap_or_else(|| median(&times) * 1e-9);
        let mark = match fate(&row.candidate) {
            "" if row.dropped => " (out)".to_owned(),
            why if row.dropped => format!(" (out: {why})"),
            _ => String::new(),
        };
        let over = |ratio: Ratio| if is_time { ratio.inverse() } else { ratio };
        let lost = figure(LOSS_RATIO).map(|median| Ratio {
            median,
            low: row.figure(LOSS_LOW).unwrap_or(f64::NAN),
            high: row.figure(LOSS_HIGH).unwrap_or(f64::NAN),
            rounds: times.len(),
        });
        table.push(vec![
            format!("{}{mark}", row.candidate),
            shown(kind, value),
            row.ratio.map_or_else(String::new, |ratio| answer::between(&over(ratio))),
            times.len().to_string(),
            lost.map_or_else(String::new, |lost| answer::between(&lost)),
            figure(PEAK).map_or_else(String::new, mib),
            figure(PAGE_FAULTS).map_or_else(String::new, |faults| format!("{faults:.0}")),
        ]);
    }
    table.remark("intervals hold for all settings at once, whenever one looks; of fewer than four runs there is none");
    vec![table]
}
