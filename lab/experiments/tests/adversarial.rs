//! Records that something happened to: cells withheld, candidates missing, times that are equal, negative, huge or
//! absent. Nothing may be printed that is no number, or that no row shows.

use cachewise_experiments::claims::{Expect, Word, all, of_record};
use cachewise_experiments::{registry, said};
use cachewise_measure::{Level, PairedRatio, Proof, ProofVerdict, Record, Row};
use std::collections::BTreeSet;

/// The newest record of each experiment, with its name.
fn records() -> Vec<(String, Record)> {
    let mut found: Vec<(String, Record)> = Vec::new();
    for (name, record) in crate::stored::records().into_iter().rev() {
        let Some(experiment) = record.experiment().map(str::to_owned) else { continue };
        let is_new = found.iter().all(|(known, _)| *known != experiment);
        if name.ends_with("guest") && registry::of(&experiment).is_some() && is_new {
            found.push((experiment, record));
        }
    }
    assert!(found.len() >= 18, "{} experiments", found.len());
    found
}

fn of(record: &Record, rows: &[Row]) -> Vec<String> {
    let record = Record { rows: rows.to_vec(), ..record.clone() };
    let said = said::said(&record).verdicts;
    for text in &said {
        let words: Vec<&str> = text.split([' ', '(', ')', ',', ';', ':', '/']).collect();
        let broken = words.iter().any(|word| ["NaN", "inf", "-inf"].contains(word));
        assert!(!broken && !text.contains("  ") && !text.ends_with(' '), "{text}");
    }
    said
}

/// The rows with all their times replaced, and what follows from these.
fn timed(rows: &[Row], time: f64) -> Vec<Row> {
    let mut rows = rows.to_vec();
    for row in &mut rows {
        row.operation_ns = vec![time; row.operation_ns.len()];
        (row.reader_ns, row.bystander_ns) = (Vec::new(), Vec::new());
        let same = PairedRatio::paired(&row.operation_ns, &row.operation_ns);
        row.ratio = row.ratio.map(|_| same);
        row.total_ratio = row.total_ratio.map(|_| same);
        row.verdict = row.verdict.map(|_| same.verdict(cachewise_measure::MARGIN));
    }
    rows
}

#[test]
fn what_fails_its_proof_everywhere_is_withheld() {
    for (experiment, record) in records() {
        let mut rows = record.rows.clone();
        for row in &mut rows {
            row.proofs.push(Proof {
                level: Level::L1,
                verdict: ProofVerdict::Failed,
                nanoseconds_per_line: 99.0,
                expected: (10.0, 20.0),
                text: "L1 not proved: 99.0 ns a line".to_owned(),
            });
        }
        let said = of(&record, &rows);
        assert!(said.len() == 1 && said[0].starts_with("Withheld: "), "{experiment}: {said:?}");
    }
}

#[test]
fn times_that_are_no_times_say_nothing() {
    for (experiment, record) in records() {
        for time in [-5.0, 0.0, f64::NAN] {
            let said = of(&record, &timed(&record.rows, time));
            assert!(
                said.iter().any(|text| text.starts_with("Not measurable here: ")),
                "{experiment}, {time}: {said:?}"
            );
        }
        let mut rows = record.rows.clone();
        rows.iter_mut().for_each(|row| row.operation_ns.clear());
        of(&record, &rows);
        of(&record, &timed(&record.rows, 1e15));
    }
}

/// If all times are equal, no claim of a difference is confirmed, and none of a tie is refuted.
#[test]
fn equal_times_are_ties() {
    for (experiment, record) in records() {
        let record = Record { rows: timed(&record.rows, 100.0), ..record };
        for (claim, answer) in of_record(&record) {
            let (Some(expect), Some(word)) = (claim.expect(), answer.word()) else { continue };
            let right = match expect {
                Expect::AtMost(bound) if bound < 1.0 => [Word::Same, Word::Refuted],
                Expect::AtLeast(bound) if bound > 1.0 => [Word::Same, Word::Refuted],
                Expect::Within(low, high) if low > 1.0 || high < 1.0 => [Word::Refuted; 2],
                _ => [Word::Confirmed; 2],
            };
            // Figures beside the times stay as they were.
            let is_of_times = claim.reads.is_of_times();
            assert!(
                !is_of_times || right.contains(&word),
                "{experiment}: {}",
                answer.sentence(claim)
            );
        }
    }
}

/// One candidate alone, the others without it, and every so many rows missing.
#[test]
fn missing_rows_break_no_sentence() {
    for (_, record) in records() {
        let names: BTreeSet<&str> = record.rows.iter().map(|row| row.candidate.as_str()).collect();
        for name in names {
            let (alone, others): (Vec<Row>, Vec<Row>) =
                record.rows.iter().cloned().partition(|row| row.candidate == name);
            of(&record, &others);
            of(&record, &alone);
        }
        for step in [2, 3, 7] {
            for first in 0..step {
                let rows = record.rows.iter().skip(first).step_by(step).cloned();
                of(&record, &rows.collect::<Vec<_>>());
            }
        }
        of(&record, &[]);
        of(&record, &record.rows[..1]);
    }
}

#[test]
fn every_bound_can_be_met_and_missed() {
    for claim in all() {
        let is_within = |bound: f64| (0.01..=100.0).contains(&bound);
        match claim.expect() {
            Some(Expect::AtMost(bound) | Expect::AtLeast(bound)) => assert!(is_within(bound)),
            Some(Expect::Within(low, high)) => {
                assert!(is_within(low) && is_within(high) && low < high)
            }
            None => {}
        }
    }
}
