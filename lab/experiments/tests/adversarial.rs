//! Sentences about records that something happened to: cells withheld, candidates missing, times that are
//! equal, negative, huge or absent. None of them may print what is no number, or say what no row shows.

use cachewise_experiments::{registry, said};
use cachewise_measure::{Level, PairedRatio, Proof, ProofVerdict, Record, Row};
use std::collections::BTreeSet;

/// The newest record of each experiment that has sentences, with its name.
fn records() -> Vec<(String, Record)> {
    let mut found: Vec<(String, Record)> = Vec::new();
    for (name, record) in crate::stored::records().into_iter().rev() {
        let Some(experiment) = record.experiment().map(str::to_owned) else { continue };
        let is_new = found.iter().all(|(known, _)| *known != experiment);
        if name.ends_with("guest")
            && registry::of(&experiment).is_some_and(|known| known.has_sentences())
            && is_new
        {
            found.push((experiment, record));
        }
    }
    assert!(found.len() >= 18, "{} experiments", found.len());
    found
}

fn of(experiment: &str, record: &Record, rows: &[Row]) -> Vec<String> {
    let said = said::of(experiment, rows, &record.decisions.kernels).verdicts;
    for text in &said {
        let words: Vec<&str> = text.split([' ', '(', ')', ',', ';', ':', '/']).collect();
        let number = |word: &&str| {
            let rest = word.strip_prefix('-').unwrap_or("");
            rest.starts_with(|first: char| first.is_ascii_digit())
        };
        let broken = words.iter().any(|word| ["NaN", "inf", "-inf"].contains(word) || number(word));
        let torn = [", ,", ": ;", "; ;", "  "].iter().any(|torn| text.contains(torn));
        let ended = [" by", ":", ",", ";"].iter().any(|end| text.trim_end().ends_with(end));
        assert!(!broken && !torn && !ended && !text.ends_with(' '), "{experiment}: {text}");
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

/// A record's coordinates are rounded in old records: a sentence that looks for one must find it.
#[test]
fn a_whole_record_suffices_for_a_verdict() {
    for (experiment, record) in records() {
        let said = of(&experiment, &record, &record.rows);
        let lacking = ["that can be relied on", "does not suffice for a verdict"];
        assert!(!lacking.iter().any(|end| said[0].ends_with(end)), "{experiment}: {said:?}");
    }
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
        let said = of(&experiment, &record, &rows);
        let (withheld, rest): (Vec<_>, Vec<_>) =
            said.iter().partition(|text| text.starts_with("Withheld: "));
        assert_eq!(withheld.len(), 1, "{experiment}: {said:?}");
        assert!(
            rest.iter().all(|text| text.contains("cannot tell") || text.contains("not tested")),
            "{experiment}: {rest:?}"
        );
    }
}

#[test]
fn times_that_are_no_times_say_nothing() {
    for (experiment, record) in records() {
        for time in [-5.0, 0.0, f64::NAN] {
            let said = of(&experiment, &record, &timed(&record.rows, time));
            assert!(
                said.iter().any(|text| text.starts_with("Not measurable here: ")),
                "{experiment}, {time}: {said:?}"
            );
        }
        let mut rows = record.rows.clone();
        rows.iter_mut().for_each(|row| row.operation_ns.clear());
        of(&experiment, &record, &rows);
        of(&experiment, &record, &timed(&record.rows, 1e15));
    }
}

/// Where all are equal, nobody is shown to be anything.
#[test]
fn equal_times_favour_nobody() {
    for (experiment, record) in records() {
        // The first four rest on figures beside the times as well, which stay as they were; the others
        // judge claims of a difference, which equal times refute.
        let others = ["compare-latency", "peers", "receive", "page-fault", "page-colour", "twins"];
        let others = others.contains(&experiment.as_str());
        let said = of(&experiment, &record, &timed(&record.rows, 100.0));
        for shown in
            ["no longer true", "Yes: ", "No: ", "does NOT", " longer", " slower than", " pays from"]
        {
            assert!(
                others || said.iter().all(|text| !text.contains(shown)),
                "{experiment}: {said:?}"
            );
        }
    }
}

/// One candidate alone, the others without it, and every so many rows missing.
#[test]
fn missing_rows_break_no_sentence() {
    for (experiment, record) in records() {
        let names: BTreeSet<&str> = record.rows.iter().map(|row| row.candidate.as_str()).collect();
        for name in names {
            let (alone, others): (Vec<Row>, Vec<Row>) =
                record.rows.iter().cloned().partition(|row| row.candidate == name);
            of(&experiment, &record, &others);
            let said = of(&experiment, &record, &alone);
            let of_libc = said.iter().any(|text| text.starts_with("No benefit: at none"));
            assert!(!of_libc, "{experiment}, {name} alone: {said:?}");
        }
        for step in [2, 3, 7] {
            for first in 0..step {
                let rows = record.rows.iter().skip(first).step_by(step).cloned();
                of(&experiment, &record, &rows.collect::<Vec<_>>());
            }
        }
        of(&experiment, &record, &[]);
        of(&experiment, &record, &record.rows[..1]);
    }
}
