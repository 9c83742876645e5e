//! Rounds as rows of a record, and back: a record can be decided again by the rules of today.

use super::field::Field;
use super::hints::{self, Never};
use super::never;
use super::plan;
use super::ranges::ranges;
use super::rounds::{Evidence, Log, Purpose};
use super::seam::{
    After, Competitor, Contents, Destination, Facts, Layout, Sample, Script, Threads, TuningCell,
};
use super::tuner::{Decided, decided, entries};
use super::tuning::Tuning;
use cachewise::profile::{Decision, FIRST_SIZE, OPERATIONS, Supply};
use cachewise::{Reuse, entry};
use cachewise_experiments::LabError;
use cachewise_judge::estimate::{Estimate, Scatter, Sure};
use cachewise_kernels::{Operation, TABLE};
use cachewise_measure::record::names::LIBC;
use cachewise_measure::record::{CellKey, State};
use cachewise_measure::{Header, PairedRatio, Row};

/// No object and no cache is larger; what a record says beyond it is no figure.
const MOST: usize = 1 << 40;

/// Settings of a record: [`Facts::below_libc`], [`Facts::entries`] and [`Facts::never`] by operation, and the decisions
/// that were in force.
const BELOW_LIBC: &str = "below_libc";
const ENTRIES: &str = "entries";
const NEVER: &str = "never";
const PREVIOUS: &str = "previous";

/// Settings of a record besides its rows, needed for a decision from it to be the one that was made: settings of its
/// header. Of the decisions in force those without a hint, which are all that a tuning prefers.
pub fn settings(
    facts: &Facts,
    previous: &[Decision],
) -> impl Iterator<Item = (String, serde_json::Value)> {
    let by_operation = |names: [Option<&str>; OPERATIONS.len()]| {
        let named = OPERATIONS.iter().zip(names);
        let named = named.filter_map(|(of, name)| Some((of.name().to_owned(), name?.into())));
        serde_json::Value::Object(named.collect())
    };
    let plain = previous.iter().filter(|decision| decision.reuse == Reuse::Unknown);
    let previous = plain.map(|decision| {
        let Decision { operation, from, to, kernel, .. } = decision;
        serde_json::json!([operation.name(), from, to, kernel])
    });
    let never = OPERATIONS.iter().zip(facts.never);
    let never =
        never.filter_map(|(of, never)| Some((of.name().to_owned(), serde_json::json!(never?))));
    let all = [
        (BELOW_LIBC, by_operation(facts.below_libc)),
        (ENTRIES, by_operation(facts.entries)),
        (NEVER, serde_json::Value::Object(never.collect())),
        (PREVIOUS, previous.collect()),
    ];
    all.map(|(name, value)| (name.to_owned(), value)).into_iter()
}

/// The decisions that were in force when a record was measured; none where it does not say.
#[must_use]
pub fn previous(header: &Header) -> Vec<Decision> {
    let of = |line: &serde_json::Value| {
        let line = serde_json::from_value(line.clone()).ok()?;
        let (operation, from, to, kernel): (String, u64, u64, String) = line;
        let operation = Operation::from_name(&operation)?;
        Some(Decision::new(operation, Reuse::Unknown, (from, to), &kernel))
    };
    let lines = header.settings.get(PREVIOUS).and_then(|lines| lines.as_array());
    lines.into_iter().flatten().filter_map(of).collect()
}

/// An axis of a cell's key.
pub(super) const UNEQUAL: &str = "unequal";

fn key(purpose: Purpose, cell: &TuningCell) -> CellKey {
    let state = match (purpose, cell.script) {
        (_, Some(script)) => script.name(),
        (Purpose::Threads, None) => cell.threads.supply.name(),
        _ => cell.layout.name(),
    };
    let mut key = CellKey::new(cell.operation.name(), cell.size, State::from(state));
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
fn cell(purpose: Purpose, key: &CellKey) -> Option<TuningCell> {
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
    if purpose == Purpose::Threads {
        cell.threads = Threads { count: 1, supply: Supply::from_name(state)? };
    } else if cell.script.is_none() {
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
            let reference = if purpose == Purpose::Threads { "1" } else { LIBC };
            let times = |samples: &[Option<Sample>], of: fn(&Sample) -> f64| -> Vec<f64> {
                samples.iter().map(|sample| sample.as_ref().map_or(f64::NAN, of)).collect()
            };
            let row = |candidate: &str, samples: &[Option<Sample>]| {
                let operation = times(samples, |sample| sample.operation);
                let mut row =
                    Row::new(purpose.name(), key(purpose, cell), candidate, reference, operation);
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
            let first = row(reference, &libc);
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
            if let Some(cell) = cell(purpose, &row.cell) {
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
        cpus: header.machine.logical_cpus,
        largest: usize::MAX,
        below_libc: OPERATIONS.map(|operation| {
            let name = header.settings.get(BELOW_LIBC)?.get(operation.name())?.as_str()?;
            cachewise_kernels::find(name).map(|kernel| kernel.name)
        }),
        entries: OPERATIONS.map(|operation| {
            let name = header.settings.get(ENTRIES)?.get(operation.name())?.as_str()?;
            let name = now_called(name);
            let found = entry::variants(operation).iter().find(|of| of.name == name);
            found.map(|entry| entry.name)
        }),
        never: OPERATIONS.map(|operation| {
            let line = header.settings.get(NEVER)?.get(operation.name())?;
            let name = cachewise_kernels::find(line.get(0)?.as_str()?)?.name;
            Some((name, usize::try_from(line.get(1)?.as_u64()?).ok()?))
        }),
        hosts: header.settings.get("hosts").and_then(|n| n.as_u64()).map_or(1, |n| n as usize),
    }
}

/// Today's name of an entry in the records of Zen 5 and Emerald Rapids that `record/` keeps: two more used AVX-512,
/// with masks of up to 64 bytes, and with no vector over 32.
fn now_called(name: &str) -> &str {
    match name {
        "avx512vl.masked" => "avx512vl",
        "avx512vl.256" => "avx2",
        name => name,
    }
}

/// Decides from a record's rows by the rules of today. What its rows do not show is libc; what its referee
/// saw fail is too. Nothing new is looked at, so nothing is refereed beyond that.
///
/// # Errors
/// [`LabError::Nothing`] for a record that no tuning wrote.
pub fn decide_again(rows: &[Row], facts: Facts, previous: &[Decision]) -> Result<Tuning, LabError> {
    let evidence = Evidence::of_rows(rows);
    if evidence.of(Purpose::Race).next().is_none() {
        return Err(LabError::Nothing(
            "the record has no rows of a tuning (experiment `tune`)".to_owned(),
        ));
    }
    let mut fields = Vec::new();
    let mut entries = entries(&evidence, &facts);
    // A record may have raced one that is called otherwise now.
    entries.iter_mut().for_each(|(_, name)| *name = now_called(name).to_owned());
    for operation in OPERATIONS {
        let mut field = field(operation, &evidence, &facts, previous);
        field.have_entries(&entries);
        field.remember(&evidence);
        refuse(&mut field, &evidence);
        let chosen = hints::chosen(&field, &facts);
        let extends = plan::extends(&facts, &field.sizes);
        let shown = hints::never(&field, &evidence);
        let shown = shown.and_then(|from| never::again(&field, &evidence, from));
        let never = Never { default: hints::default(&field, &evidence), shown };
        let unknown = ranges(&field.sizes, &chosen, &[], extends);
        fields.push(Decided { field, unknown, never });
    }
    Ok(decided(&fields, entries, &evidence, facts))
}

/// An operation's race as a record has it; of one that it has none of, libc alone.
fn field(operation: Operation, evidence: &Evidence, facts: &Facts, previous: &[Decision]) -> Field {
    let logs: Vec<(&TuningCell, &Log)> =
        evidence.of(Purpose::Race).filter(|(cell, _)| cell.operation == operation).collect();
    let took_part = |name: &str| logs.iter().any(|(_, log)| log.others.contains_key(name));
    let kernels = TABLE.iter().filter(|kernel| took_part(kernel.name)).map(Competitor::of);
    let arms: Vec<Competitor> = std::iter::once(Competitor::libc()).chain(kernels).collect();
    let top = logs.iter().map(|(cell, _)| cell.size).max().unwrap_or(FIRST_SIZE as usize);
    // States that no round of it is of were not measured then.
    let mut sizes = plan::grid(top);
    let measured = |size: &usize| logs.iter().any(|(cell, _)| cell.size == *size);
    // Half octaves ended at 8 MiB for a while, whatever the largest size.
    sizes.retain(|size| size.is_power_of_two() || measured(size));
    let mut views = plan::views(operation, facts);
    views.retain(|view| logs.iter().any(|(cell, _)| view.holds(cell)));
    Field::new(operation, arms, (sizes, views), facts, previous)
}

/// Takes out what the record's referee saw fail.
fn refuse(field: &mut Field, evidence: &Evidence) {
    for (cell, log) in evidence.of(Purpose::Referee) {
        if cell.operation != field.operation || cell.script.is_some() {
            continue;
        }
        for name in log.others.keys() {
            let Some(arm) = field.arms.iter().position(|arm| arm.name == *name) else { continue };
            let seen = Estimate::of(&log.log_ratios(name), 0.0);
            let near = |size: &usize| (*size as f64 / cell.size as f64).ln().abs();
            let nearest = (0..field.sizes.len())
                .min_by(|a, b| near(&field.sizes[*a]).total_cmp(&near(&field.sizes[*b])));
            let Some(nearest) = nearest else { continue };
            let is_enough = seen.rounds >= Scatter::Pooled.least_rounds();
            if is_enough && seen.is_above(field.guard(nearest), Sure::Seems) {
                field.refused[arm][nearest] = true;
            }
        }
    }
}
