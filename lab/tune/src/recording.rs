//! A tuning's record, written and read back: the rounds as rows, the settings that a decision from it needs, the
//! decisions with their reasons, and how it is drawn.

use super::hardware::Hardware;
use super::ranges::MOST_RANGES;
use super::rounds::{Evidence, Log, Purpose};
use super::seam::{
    After, Contents, Destination, Facts, Layout, Machine as _, Sample, Script, TuningCell,
};
use super::tuning::{Ruling, Settings, Tuning};
use cachewise::Reuse;
use cachewise::profile::{self, MAX_SIZE, OPERATIONS};
use cachewise_kernels::Operation;
use cachewise_measure::record::names::LIBC;
use cachewise_measure::record::{CellKey, Decision, Decisions, Note};
use cachewise_measure::stats::median;
use cachewise_measure::{Figure, Header, PairedRatio, Record, Row};
use std::collections::{BTreeMap, BTreeSet};

/// The record of everything seen since `started`, without an end; with decisions where a tuning ended with some.
#[must_use]
pub fn record(
    hardware: &Hardware<'_>,
    asked: &Settings,
    evidence: &Evidence,
    tuning: Option<&Tuning>,
    started: String,
) -> Record {
    let mut header = hardware.header(asked.seed);
    header.started = started;
    header.settings = BTreeMap::from([
        ("experiment".to_owned(), "tune".into()),
        ("budget".to_owned(), asked.budget.into()),
    ]);
    header.settings.extend(settings(&hardware.facts(), &asked.previous));
    header.figures = figures();
    let said = hardware.without_wide_vectors();
    let notes = said.into_iter().map(|text| Note { text }).collect();
    let decisions = tuning.map(decisions).unwrap_or_default();
    Record { header, rows: evidence.rows(), notes, decisions, end: None }
}

/// No object and no cache is larger; what a record says beyond it is no figure.
const MOST: usize = 1 << 40;

/// Settings of a record: [`Facts::below_libc`] and [`Facts::never`] by operation, and the decisions
/// that were in force.
const BELOW_LIBC: &str = "below_libc";
const NEVER: &str = "never";
const PREVIOUS: &str = "previous";

/// Settings of a record besides its rows, needed for a decision from it to be the one that was made: settings of its
/// header. Of the decisions in force those without a hint, which are all that a tuning prefers.
pub fn settings(
    facts: &Facts,
    previous: &[profile::Decision],
) -> impl Iterator<Item = (String, serde_json::Value)> {
    let by_operation = |names: [Option<&str>; OPERATIONS.len()]| {
        let named = OPERATIONS.iter().zip(names);
        let named = named.filter_map(|(of, name)| Some((of.name().to_owned(), name?.into())));
        serde_json::Value::Object(named.collect())
    };
    let plain = previous.iter().filter(|decision| decision.reuse == Reuse::Unknown);
    let previous = plain.map(|decision| {
        let profile::Decision { operation, from, to, kernel, .. } = decision;
        serde_json::json!([operation.name(), from, to, kernel])
    });
    let never = OPERATIONS.iter().zip(facts.never);
    let never =
        never.filter_map(|(of, never)| Some((of.name().to_owned(), serde_json::json!(never?))));
    let all = [
        (BELOW_LIBC, by_operation(facts.below_libc)),
        (NEVER, serde_json::Value::Object(never.collect())),
        (PREVIOUS, previous.collect()),
    ];
    all.map(|(name, value)| (name.to_owned(), value)).into_iter()
}

/// The decisions that were in force when a record was measured; none where it does not say.
#[must_use]
pub fn previous(header: &Header) -> Vec<profile::Decision> {
    let of = |line: &serde_json::Value| {
        let line = serde_json::from_value(line.clone()).ok()?;
        let (operation, from, to, kernel): (String, u64, u64, String) = line;
        let operation = Operation::from_name(&operation)?;
        Some(profile::Decision::new(operation, Reuse::Unknown, (from, to), &kernel))
    };
    let lines = header.settings.get(PREVIOUS).and_then(|lines| lines.as_array());
    lines.into_iter().flatten().filter_map(of).collect()
}

/// An axis of a cell's key.
pub(super) const UNEQUAL: &str = "unequal";

fn key(cell: &TuningCell) -> CellKey {
    let state = cell.script.map_or(cell.layout.name(), Script::name);
    let mut key = CellKey::new(cell.operation.name(), cell.size, state);
    key.destination = Some(cell.destination.into());
    match cell.after {
        After::Nothing => {}
        After::Reader => key.reader = Some(1.0),
        After::Bystander(bytes) => key.bystander = Some(bytes as u64),
    }
    match cell.contents {
        Contents::Equal => key,
        Contents::Unequal => key.with(&[(UNEQUAL, 1.0)]),
    }
}

/// The cell of a row's key; `None` for one that no tuning of today writes.
fn cell(key: &CellKey) -> Option<TuningCell> {
    let operation = Operation::from_name(&key.operation)?;
    let destination = Destination::ALL
        .into_iter()
        .find(|destination| key.destination == Some((*destination).into()))?;
    let size = usize::try_from(key.size).ok().filter(|size| *size <= MOST)?;
    let mut cell = TuningCell::new(operation, size, destination);
    if key.axis(UNEQUAL).is_some() {
        cell.contents = Contents::Unequal;
    }
    cell.after = match (key.reader, key.bystander) {
        (Some(_), _) => After::Reader,
        (_, Some(bytes)) => After::Bystander(usize::try_from(bytes).ok()?),
        _ => After::Nothing,
    };
    let state = &*key.state;
    cell.script = Script::ALL.into_iter().find(|script| script.name() == state);
    if cell.script.is_none() {
        cell.layout = Layout::ALL.into_iter().find(|layout| layout.name() == state)?;
    }
    Some(cell)
}

impl Evidence {
    /// The rows of a record.
    #[must_use]
    pub fn rows(&self) -> Vec<Row> {
        let mut rows = Vec::new();
        let cells = Purpose::ALL
            .into_iter()
            .flat_map(|purpose| self.of(purpose).map(move |(cell, log)| (purpose, cell, log)));
        for (purpose, cell, log) in cells {
            let times = |samples: &[Option<Sample>], of: fn(&Sample) -> f64| -> Vec<f64> {
                samples.iter().map(|sample| sample.as_ref().map_or(f64::NAN, of)).collect()
            };
            let row = |candidate: &str, samples: &[Option<Sample>]| {
                let operation = times(samples, |sample| sample.operation);
                let mut row = Row::new(purpose.name(), key(cell), candidate, LIBC, operation);
                match cell.after {
                    After::Nothing => {}
                    After::Reader => row.reader_ns = times(samples, |sample| sample.reader),
                    After::Bystander(_) => {
                        row.bystander_ns = times(samples, |sample| sample.bystander);
                    }
                }
                row
            };
            let libc: Vec<Option<Sample>> = log.reference.iter().copied().map(Some).collect();
            let first = row(LIBC, &libc);
            let of_log = log.others.iter().map(|(candidate, samples)| {
                let mut row = row(candidate, samples);
                let operations = PairedRatio::paired(&row.operation_ns, &first.operation_ns);
                if cell.after != After::Nothing {
                    row.total_ratio = Some(PairedRatio::paired(&row.total_ns(), &first.total_ns()));
                }
                row.with_ratio(operations)
            });
            let others: Vec<Row> = of_log.collect();
            rows.push(first.with_ratio(PairedRatio {
                median: 1.0,
                low: 1.0,
                high: 1.0,
                rounds: log.reference.len(),
            }));
            rows.extend(others);
        }
        rows
    }

    /// Evidence in rows.
    #[must_use]
    pub fn of_rows(rows: &[Row]) -> Evidence {
        let mut evidence = Evidence::default();
        for row in rows.iter().filter(|row| !row.dropped) {
            let purpose = Purpose::ALL.into_iter().find(|purpose| purpose.name() == row.experiment);
            let Some(purpose) = purpose else { continue };
            if let Some(cell) = cell(&row.cell) {
                add(evidence.logs.entry(purpose).or_default().entry(cell).or_default(), row);
            }
        }
        for logs in evidence.logs.values_mut() {
            logs.retain(|_, log| !log.reference.is_empty());
        }
        evidence
    }
}

/// Adds a row's times to its cell's log.
fn add(log: &mut Log, row: &Row) {
    let part = |times: &[f64], round: usize| times.get(round).copied().unwrap_or(0.0);
    let samples = row.operation_ns.iter().enumerate().map(|(round, operation)| {
        let (reader, bystander) = (part(&row.reader_ns, round), part(&row.bystander_ns, round));
        let sample = Sample { operation: *operation, reader, bystander };
        sample.total().is_finite().then_some(sample)
    });
    if row.candidate == row.reference {
        log.reference = samples.flatten().collect();
    } else {
        log.others.insert(row.candidate.clone(), samples.collect());
    }
}

/// Facts about a record's machine.
#[must_use]
pub fn facts(header: &Header) -> Facts {
    let caches = &header.machine.caches;
    let latencies = header.latencies.as_ref();
    Facts {
        l1: caches.l1d.bytes.min(MOST),
        l2: caches.l2.bytes.min(MOST),
        llc: caches.llc.bytes.min(MOST),
        llc_usable: caches.usable().min(MOST),
        near_ns: latencies.map_or(0.0, |latencies| latencies.llc),
        dram_ns: latencies.map_or(0.0, |latencies| latencies.dram),
        largest: usize::MAX,
        below_libc: OPERATIONS.map(|operation| {
            let name = header.settings.get(BELOW_LIBC)?.get(operation.name())?.as_str()?;
            cachewise_kernels::find(name).map(|kernel| kernel.name)
        }),
        never: OPERATIONS.map(|operation| {
            let line = header.settings.get(NEVER)?.get(operation.name())?;
            let name = cachewise_kernels::find(line.get(0)?.as_str()?)?.name;
            Some((name, usize::try_from(line.get(1)?.as_u64()?).ok()?))
        }),
        hosts: header.settings.get("hosts").and_then(|n| n.as_u64()).map_or(1, |n| n as usize),
    }
}

/// Decisions for the record's line of decisions.
#[must_use]
pub fn decisions(tuning: &Tuning) -> Decisions {
    let kernels = tuning.decisions.iter().map(|decision| {
        let inside = |size: usize| (decision.from..=decision.to).contains(&(size as u64));
        let seen = tuning.refereed.iter().filter(|seen| {
            let beside = matches!(seen.cell.after, After::Bystander(_));
            seen.in_use
                && (!beside || decision.reuse == Reuse::Never)
                && seen.cell.operation == decision.operation
                && inside(seen.cell.size)
                && seen.name == decision.kernel
                && seen.verdict == Ruling::Kept
        });
        let seen: Vec<f64> = seen.map(|seen| seen.ratio).collect();
        let why = if decision.kernel == LIBC {
            let taken = tuning.repairs.iter().filter(|repair| {
                repair.operation == decision.operation
                    && [Reuse::Unknown, decision.reuse].contains(&repair.reuse)
                    && inside(repair.size)
            });
            let taken: BTreeSet<&str> = taken.map(|repair| &*repair.kernel).collect();
            let over = tuning
                .passed_over
                .iter()
                .filter(|(operation, size, _)| *operation == decision.operation && inside(*size));
            let over: Vec<_> = over.collect();
            let mut why = match over[..] {
                [] => "no kernel was shown to be faster and to lose nowhere".to_owned(),
                [(_, first, _), .., (_, last, _)] => {
                    left_out(&format!("some sizes from {first} to {last}"), &over)
                }
                [(_, only, _)] => left_out(&only.to_string(), &over),
            };
            if !taken.is_empty() {
                let taken: Vec<&str> = taken.into_iter().collect();
                why += &format!("; not confirmed beside libc: {}", taken.join(", "));
            }
            if let Some(nearest) = &decision.nearest {
                why += &format!("; the nearest is {nearest}");
            }
            Some(why)
        } else {
            let taken = tuning.repairs.iter().filter(|repair| {
                (repair.operation, &repair.kernel) == (decision.operation, &decision.kernel)
                    && [Reuse::Unknown, decision.reuse].contains(&repair.reuse)
            });
            let taken: BTreeSet<usize> = taken.map(|repair| repair.size).collect();
            let taken: Vec<String> = taken.into_iter().map(|size| size.to_string()).collect();
            let checked = (!seen.is_empty()).then(|| format!("checked in {} cells", seen.len()));
            let shorter = (!taken.is_empty())
                .then(|| format!("the check took it back around {} bytes", taken.join(", ")));
            let why: Vec<String> = [checked, shorter].into_iter().flatten().collect();
            (!why.is_empty()).then(|| why.join("; "))
        };
        Decision {
            operation: decision.operation.name().to_owned(),
            reuse: decision.reuse.name().to_owned(),
            from: decision.from,
            to: (decision.to != MAX_SIZE).then_some(decision.to),
            kernel: decision.kernel.clone(),
            ratio: (!seen.is_empty()).then(|| PairedRatio {
                median: median(&seen),
                low: seen.iter().copied().fold(f64::INFINITY, f64::min),
                high: seen.iter().copied().fold(0.0, f64::max),
                rounds: seen.len(),
            }),
            why,
        }
    });
    Decisions { kernels: kernels.collect() }
}

/// Why libc was decided for where kernels were shown to be faster.
fn left_out(sizes: &str, over: &[&(Operation, usize, String)]) -> String {
    let kernels: BTreeSet<&str> = over.iter().map(|(.., name)| &**name).collect();
    let kernels: Vec<&str> = kernels.into_iter().collect();
    format!(
        "{} gained something at {sizes} bytes, too little for one more range ({MOST_RANGES} at most)",
        kernels.join(" or ")
    )
}

/// Figures drawn from a tuning's rows.
fn figures() -> Vec<Figure> {
    let title = "Operation and reader over libc's, operands on lines";
    vec![Figure::curve(title, "size", "total_ratio").of(Layout::Aligned.name())]
}
