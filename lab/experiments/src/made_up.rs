//! Rows that were never measured, beside libc: made here, or read from `cases.txt` of an experiment.
//!
//! ```text
//! # what the case is
//! copy 4K what holds @L1 launch=1: libc = 100; copy.avx = 52.5~0.3 /100 below_100_ns=0.5 vs libc
//! decide copy soon copy.avx
//! ```
//!
//! A line is a cell and its candidates. Of the cell: operation, size, state, where its operands are
//! (`>L1`: the destination alone), the share that is read (`reader=1`), axes. Of a candidate:
//! nanoseconds, the noise around them, its ratio to one that takes so long (or the ratio itself,
//! `0.9..1..1.1`), what a reader takes and a bystander loses, figures, `single` for an empty histogram
//! of single calls, whom it is compared with.

use crate::words::*;
use cachewise_measure::units::parse_bytes;
use cachewise_measure::{CallTimes, Level, record::made_up};
use std::path::{Path, PathBuf};

/// Rows, what was decided, and what that is a case of.
#[derive(Default)]
pub struct Case {
    pub name: String,
    pub rows: Vec<Row>,
    pub decisions: Vec<Decision>,
}

/// An experiment's own.
fn folder(experiment: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src").join(experiment.replace('-', "_"))
}

/// The cases of an experiment.
pub fn cases(experiment: &str) -> Vec<Case> {
    let text = std::fs::read_to_string(folder(experiment).join("cases.txt")).expect(experiment);
    let mut cases = Vec::new();
    for line in text.lines().filter(|line| !line.is_empty()) {
        if let Some(name) = line.strip_prefix("# ") {
            cases.push(Case { name: name.to_owned(), ..Case::default() });
            continue;
        }
        let case = cases.last_mut().expect("a case before its rows");
        if let Some(decided) = line.strip_prefix("decide ") {
            case.decisions.push(decision(decided));
            continue;
        }
        let (cell, candidates) = line.split_once(": ").expect(line);
        let cell = read_cell(cell);
        case.rows.extend(candidates.split("; ").map(|candidate| read_row(&cell, candidate)));
    }
    cases
}

fn number(text: &str) -> f64 {
    text.parse().expect(text)
}

/// `NAME=VALUE`.
fn figure(word: &str) -> (&str, f64) {
    let (name, value) = word.split_once('=').expect(word);
    (name, number(value))
}

/// For calls of every size.
fn decision(text: &str) -> Decision {
    let words: Vec<String> = text.split(' ').map(str::to_owned).collect();
    let [operation, reuse, kernel] = <[String; 3]>::try_from(words).expect("three words");
    Decision { operation, reuse, from: 0, to: None, kernel, ratio: None, why: None }
}

fn read_cell(text: &str) -> CellKey {
    let is_further = |word: &&str| word.contains(['@', '>', '=']);
    let (further, words): (Vec<&str>, Vec<&str>) = text.split(' ').partition(is_further);
    let [operation, size, state @ ..] = &words[..] else { panic!("{text}") };
    let mut key = cell(operation, parse_bytes(size).expect(size), &state.join(" "));
    for word in further {
        if let Some(level) = word.strip_prefix('@') {
            key = at(level.parse().expect(level), key);
        } else if let Some(level) = word.strip_prefix('>') {
            key.destination = Some(level.parse().expect(level));
        } else {
            match figure(word) {
                ("reader", share) => key.reader = Some(share),
                axis => key = key.with(&[axis]),
            }
        }
    }
    key
}

fn read_row(cell: &CellKey, text: &str) -> Row {
    let (name, told) = text.split_once(" = ").expect(text);
    let (told, reference) = told.split_once(" vs ").unwrap_or((told, LIBC));
    let mut words = told.split(' ');
    let time = words.next().expect(text);
    let (ns, noise) = time.split_once('~').unwrap_or((time, "0.001"));
    let mut row = noisy(cell, name, number(ns), number(noise));
    row.reference = reference.to_owned();
    for word in words {
        if let Some(other) = word.strip_prefix('/') {
            row = over(number(other), row);
        } else if word == "single" {
            row.histogram = Some(CallTimes::default().histogram(1000.0, 1));
        } else if let [low, median, high] = word.split("..").collect::<Vec<_>>()[..] {
            let [low, median, high] = [low, median, high].map(number);
            row = row.with_ratio(PairedRatio { median, low, high, rounds: 15 });
        } else {
            match figure(word) {
                ("reader", ns) => row.reader_ns = vec![ns; 15],
                ("bystander", ns) => row.bystander_ns = vec![ns; 15],
                figure => row = row.with(&[figure]),
            }
        }
    }
    row
}

pub fn cell(operation: &str, size: usize, state: &str) -> CellKey {
    CellKey::new(operation, size, state)
}

/// The same with its operands at a level.
pub fn at(level: Level, cell: CellKey) -> CellKey {
    let destination = Some(level.into());
    let source = destination.filter(|_| cell.operation == "copy");
    CellKey { source, destination, ..cell }
}

pub fn row(cell: &CellKey, candidate: &str, ns: f64) -> Row {
    noisy(cell, candidate, ns, 0.001)
}

pub fn noisy(cell: &CellKey, candidate: &str, ns: f64, noise: f64) -> Row {
    made_up::noisy(cell.clone(), candidate, LIBC, ns, noise)
}

/// A row with its ratio to another of that time.
fn over(ns: f64, row: Row) -> Row {
    let pair = versus(&row, &self::row(&row.cell, "twin", ns));
    row.with_ratio(pair)
}

/// What is said in each of the cases, against what is kept of it.
pub fn keeps(experiment: &str, said: impl Fn(&Case) -> Vec<String>) {
    let cases = cases(experiment);
    let told = cases.iter().map(|case| (case.name.as_str(), said(case)));
    kept(experiment, &told.collect::<Vec<_>>());
}

/// What is said in each of some cases, against what is kept of it in the experiment's folder.
pub fn kept(experiment: &str, cases: &[(&str, Vec<String>)]) {
    let case = |(case, said): &(&str, Vec<String>)| format!("# {case}\n{}\n", said.join("\n"));
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path(folder(experiment).join("snapshots"));
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!("said", cases.iter().map(case).collect::<String>()));
}
