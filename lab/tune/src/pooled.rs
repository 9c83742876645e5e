//! Records of several hosts with one CPU as one record, in which every host is a round: what the tuner's rules then decide
//! from it holds between hosts.

use cachewise_measure::LabError;
use cachewise_measure::stats::median;
use cachewise_measure::{CellKey, Decisions, PairedRatio, Record, Row};
use std::collections::BTreeMap;

/// Fewest hosts of a row, where there are as many: a size that was drawn by lot is one host's own.
const LEAST: usize = 3;

/// Joins tunings of hosts with the same CPU model and caches; the first one's machine is described.
///
/// # Errors
/// [`LabError::Nothing`] for no record, and for records of different CPUs or caches.
pub fn pooled(records: &[Record]) -> Result<Record, LabError> {
    let Some(first) = records.first() else {
        return Err(LabError::Nothing("found no record, expected one at least".to_owned()));
    };
    let of = |record: &Record| {
        let (cpu, caches) = (&record.header.machine.cpu, &record.header.machine.caches);
        let signature = format!("{} {} {} {}", cpu.vendor, cpu.family, cpu.model, cpu.stepping);
        let sizes = [&caches.l1d, &caches.l2, &caches.llc].map(|cache| cache.bytes.to_string());
        format!("{signature}, caches {}", sizes.join(" "))
    };
    if let Some(other) = records.iter().map(of).find(|other| *other != of(first)) {
        let found = format!("found a record of {other}, expected {} as in the first", of(first));
        return Err(LabError::Nothing(found));
    }
    let mut header = first.header.clone();
    header.settings = BTreeMap::from([
        ("experiment".to_owned(), "tune".into()),
        ("hosts".to_owned(), records.len().into()),
    ]);
    Ok(Record {
        header,
        rows: rows(records),
        notes: Vec::new(),
        decisions: Decisions::default(),
        end: None,
    })
}

/// A row by host, where it has one.
type ByHost<'r> = Vec<Option<&'r Row>>;
/// A cell, with each candidate's rows.
type OfCell<'r> = (&'r str, &'r CellKey, Vec<(&'r str, ByHost<'r>)>);

fn rows(records: &[Record]) -> Vec<Row> {
    let mut places: BTreeMap<String, usize> = BTreeMap::new();
    let mut cells: Vec<OfCell<'_>> = Vec::new();
    for (host, record) in records.iter().enumerate() {
        for row in &record.rows {
            let place =
                *places.entry(format!("{} {:?}", row.experiment, row.cell)).or_insert_with(|| {
                    cells.push((&row.experiment, &row.cell, Vec::new()));
                    cells.len() - 1
                });
            let candidates = &mut cells[place].2;
            let known = candidates.iter().position(|(name, _)| *name == row.candidate);
            let at = known.unwrap_or_else(|| {
                candidates.push((&row.candidate, vec![None; records.len()]));
                candidates.len() - 1
            });
            candidates[at].1[host] = Some(row);
        }
    }
    let mut found = Vec::new();
    for (experiment, cell, candidates) in &cells {
        let reference = candidates.iter().flat_map(|(_, rows)| rows.iter().flatten()).next();
        let reference = reference.map_or("", |row| &row.reference);
        let Some((_, base)) = candidates.iter().find(|(name, _)| *name == reference) else {
            continue;
        };
        for (name, rows) in candidates {
            let many = rows.iter().flatten().count();
            if many < LEAST.min(records.len()) {
                continue;
            }
            let hosts = base.iter().zip(rows).filter_map(|(base, row)| Some(((*base)?, *row)));
            let rounds: Vec<[f64; 3]> = hosts.map(|(base, row)| round(base, row)).collect();
            let part = |at: usize| rounds.iter().map(|parts| parts[at]).collect::<Vec<f64>>();
            let mut row = Row::new(experiment, (*cell).clone(), name, reference, part(0));
            row.reader_ns = if cell.reader.is_some() { part(1) } else { Vec::new() };
            row.bystander_ns = if cell.bystander.is_some() { part(2) } else { Vec::new() };
            if *name != reference {
                let base = base.iter().flatten().map(|base| round(base, Some(base)).iter().sum());
                let ratio = PairedRatio::paired(&row.total_ns(), &base.collect::<Vec<f64>>());
                row.total_ratio = Some(ratio);
                row.verdict = row.said();
            }
            found.push(row);
        }
    }
    found
}

/// A host's times as one round: operation, reader, bystander, so that their sum over the reference's is the ratio that
/// was paired round by round there; not a number where the host has no such row.
fn round(base: &Row, row: Option<&Row>) -> [f64; 3] {
    let middle = |times: &[f64]| {
        let finite: Vec<f64> = times.iter().copied().filter(|time| time.is_finite()).collect();
        if finite.is_empty() { 0.0 } else { median(&finite) }
    };
    let parts =
        |row: &Row| [&row.operation_ns, &row.reader_ns, &row.bystander_ns].map(|of| middle(of));
    let Some(row) = row else { return [f64::NAN; 3] };
    let whole: f64 = parts(row).iter().sum();
    let ratio = if row.candidate == base.candidate { 1.0 } else { row.over(base).median };
    let scale = ratio * parts(base).iter().sum::<f64>() / whole;
    parts(row).map(|part| part * scale)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::again::decide_again;
    use crate::recording::facts;
    use cachewise_measure::record;
    use std::path::Path;

    #[test]
    fn every_host_is_a_round_with_the_ratio_that_it_had() {
        let kept = "../../record/2026-11-27-tune-quick-zen4-guest.jsonl.gz";
        let kept =
            record::read(&Path::new(env!("CARGO_MANIFEST_DIR")).join(kept)).expect("a record");
        let whole =
            pooled(&[kept.clone(), kept.clone(), kept.clone(), kept.clone()]).expect("one CPU");
        assert_eq!(facts(&whole.header).hosts, 4);
        let mut compared = 0;
        for row in whole.rows.iter().filter(|row| row.candidate != row.reference) {
            let is = |other: &&Row| {
                (&other.experiment, &other.cell, &other.candidate)
                    == (&row.experiment, &row.cell, &row.candidate)
            };
            let own = kept.rows.iter().rev().find(is).expect("its row");
            let is_base = |other: &&Row| other.cell == row.cell && other.candidate == row.reference;
            let base = kept.rows.iter().filter(|other| other.experiment == row.experiment);
            let base = base.rev().find(is_base).expect("its reference");
            let (found, expected) =
                (row.total_ratio.expect("a ratio").median, own.over(base).median);
            assert!((found / expected - 1.0).abs() < 1e-9 || expected.is_nan(), "{row:?}");
            assert_eq!(row.operation_ns.len(), 4);
            compared += 1;
        }
        assert!(compared > 100, "{compared}");
        let again = decide_again(&whole.rows, facts(&whole.header), &[]).expect("a tuning");
        assert!(!again.decisions.is_empty());
        let mut other = kept.clone();
        other.header.machine.caches.l2.bytes *= 2;
        assert!(pooled(&[kept, other]).is_err() && pooled(&[]).is_err());
    }
}
