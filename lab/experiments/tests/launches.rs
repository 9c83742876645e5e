//! `compare` on launches as they were measured: a build against itself, and against one with a slow kernel.
//! Each launch is one of a stored record's, all its rows together, with half the spread of each row's ratio added.

use cachewise_measure::{Record, Row};
use cachewise_report::compare::{CompareOutcome, compare};

/// Launches a side, as the command has them.
const LAUNCHES: usize = 40;
const PAIRS: u64 = 20;
const EXPERIMENTS: [&str; 5] =
    ["page-clear", "compare-matrix", "twins", "cached-target", "reuse-map"];

/// A record of [`LAUNCHES`] drawn ones; `slow` takes 5 % longer.
fn drawn(of: &Record, slow: Option<&str>, random: &mut fastrand::Rng) -> Record {
    let mut record = of.clone();
    record.header.settings.insert("launches".to_owned(), LAUNCHES.into());
    let which: Vec<usize> = (0..LAUNCHES).map(|_| random.usize(..64)).collect();
    for row in &mut record.rows {
        let factor = if slow == Some(&*row.candidate) { 1.05 } else { 1.0 };
        let reference = of.rows.iter().find(|other| {
            other.candidate == row.reference
                && other.cell == row.cell
                && other.candidate != row.candidate
        });
        let spread = reference.map_or(0.0, |reference| spread(row, reference));
        let parts = [&mut row.operation_ns, &mut row.reader_ns, &mut row.bystander_ns];
        for (at, part) in parts.into_iter().enumerate().filter(|(_, part)| !part.is_empty()) {
            let factor = if at == 0 { factor } else { 1.0 };
            let draw = |launch: &usize| {
                let normal = (0..12).map(|_| random.f64()).sum::<f64>() - 6.0;
                part[launch % part.len()] * factor * (0.5 * spread * normal).exp()
            };
            *part = which.iter().map(draw).collect();
        }
    }
    record
}

/// Standard deviation of the logarithm of the ratio between launches.
fn spread(row: &Row, reference: &Row) -> f64 {
    let ratios = row.total_ns().into_iter().zip(reference.total_ns());
    let logs = ratios.map(|(ours, theirs)| (ours / theirs).ln()).filter(|log| log.is_finite());
    let logs: Vec<f64> = logs.collect();
    let mean = logs.iter().sum::<f64>() / logs.len() as f64;
    let squares: f64 = logs.iter().map(|log| (log - mean).powi(2)).sum();
    (squares / (logs.len() as f64 - 1.0)).sqrt()
}

/// A kernel that has a row with a reference.
fn some_kernel(record: &Record, random: &mut fastrand::Rng) -> String {
    let compared = |row: &&Row| row.candidate != row.reference && !row.dropped;
    let names: Vec<&Row> = record.rows.iter().filter(compared).collect();
    names[random.usize(..names.len())].candidate.clone()
}

#[test]
#[ignore = "long: CI runs it, by --include-ignored"]
fn a_build_does_not_differ_from_itself_and_a_slow_kernel_shows() {
    let stored = crate::stored::records();
    let mut random = fastrand::Rng::with_seed(1);
    let (mut alarms, mut found) = (0, 0);
    for experiment in EXPERIMENTS {
        let end = format!("-{experiment}-zen3-guest");
        // The newest, whose name is a date and this.
        let of_it = |(name, _): &&(String, Record)| name.get("2026-11-26".len()..) == Some(&end);
        let (_, record) = stored.iter().rfind(of_it).expect(experiment);
        for _ in 0..PAIRS {
            let old = drawn(record, None, &mut random);
            let same = compare(&old, &drawn(record, None, &mut random), 0.02);
            alarms += usize::from(same.outcome != CompareOutcome::NoDifference);
            let slow = some_kernel(record, &mut random);
            let slower = compare(&old, &drawn(record, Some(&slow), &mut random), 0.02);
            let shows = |row: &cachewise_report::compare::Change| {
                row.candidate == slow && row.outcome == CompareOutcome::Slower
            };
            found += usize::from(slower.rows.iter().any(shows));
        }
    }
    println!("of 100 pairs {alarms} differ; 5 % is found in {found} of 100");
    assert!(alarms <= 5, "{alarms} alarms");
    assert!(found >= 90, "{found} found");
}
