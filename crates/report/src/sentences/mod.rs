//! What a record amounts to, in sentences: pure functions over rows, one file per experiment. Who
//! measures says nothing; who reads an old record is told what today's rules make of it.
//!
//! Two kinds of rows say nothing, whatever the experiment: those of cells whose operands were not where
//! they are said to be, and those whose times are not above nothing. They are withheld here, once, with
//! the reason.

mod aliasing;
mod cached_target;
mod compare_latency;
mod extent;
mod hints;
mod page_clear;
mod page_colour;
mod page_compare;
mod page_copy;
mod page_fault;
mod parallel;
mod peers;
mod read_batch;
mod receive;
mod reuse_map;
mod sticky;
mod tcp_copies;
mod twins;
mod values;
mod vector_state;

use crate::{axis, operation_and_size};
use cachewise_kernels::{Kernel, PAGE_SIZE, RegisterClass, find};
use cachewise_measure::record::names::*;
use cachewise_measure::record::{by_cell, distinct, groups, paying};
use cachewise_measure::units::bytes;
use cachewise_measure::{
    CellKey, Decision, Histogram, MARGIN, PairedRatio, ProofVerdict, Row, ThreadDecision, Verdict,
    stats,
};
#[cfg(test)]
use made_up::*;
use vector_state::break_even;

/// What is said of an experiment's rows; the first is the headline.
pub fn of(experiment: &str, rows: &[Row], decisions: &[Decision]) -> Vec<String> {
    let (sound, withheld) = sound(rows);
    let Some(mut said) = own(experiment, &sound, decisions) else { return withheld };
    if said.is_empty() {
        let left = if sound.is_empty() {
            "nothing was measured that can be relied on"
        } else {
            "what was measured does not suffice for a verdict"
        };
        said.push(format!("{experiment}: cannot tell, {left}"));
    }
    said.extend(withheld);
    said
}

/// Whether an experiment has sentences of its own.
pub fn has(experiment: &str) -> bool {
    own(experiment, &[], &[]).is_some()
}

/// The experiment's own sentences, of rows that can be relied on.
fn own(experiment: &str, sound: &[Row], decisions: &[Decision]) -> Option<Vec<String>> {
    Some(match experiment {
        "aliasing" => aliasing::verdicts(sound),
        "cached-target" => cached_target::verdicts(sound),
        "compare-latency" => compare_latency::verdicts(sound),
        "extent" => extent::verdicts(sound),
        "hints" => hints::verdicts(sound, decisions),
        "page-clear" => page_clear::verdicts(sound),
        "page-colour" => page_colour::verdicts(sound),
        "page-compare" => page_compare::verdicts(sound),
        "page-copy" => page_copy::verdicts(sound),
        "page-fault" => page_fault::verdicts(sound),
        "parallel" => parallel::verdicts(sound),
        "peers" => peers::verdicts(sound),
        "read-batch" => read_batch::verdicts(sound),
        "receive" => receive::verdicts(sound),
        "reuse-map" => reuse_map::verdicts(sound),
        "sticky" => sticky::verdicts(sound),
        "tcp-copies" => tcp_copies::verdicts(sound),
        "twins" => twins::verdicts(sound),
        "values" => values::verdicts(sound),
        "vector-state" => vector_state::verdicts(sound),
        _ => return None,
    })
}

/// Rows by cell.
type Cells<'r> = [(&'r CellKey, Vec<&'r Row>)];

/// The rows that a sentence may rest on, and a sentence about each kind of the others.
fn sound(rows: &[Row]) -> (Vec<Row>, Vec<String>) {
    let mut sound = Vec::new();
    let (mut misplaced, mut first) = (0, None);
    let cells = by_cell(rows);
    let all = cells.len();
    for (key, of_cell) in cells {
        let mut proofs = of_cell.iter().flat_map(|row| &row.proofs);
        if let Some(proof) = proofs.find(|proof| proof.verdict == ProofVerdict::Failed) {
            misplaced += 1;
            first.get_or_insert_with(|| format!("{}: {}", in_words(key), proof.text));
        } else {
            sound.extend(of_cell.into_iter().cloned());
        }
    }
    let mut said = Vec::new();
    said.extend(first.map(|reason| {
        format!(
            "Withheld: {misplaced} of {all} cells, whose operands were not where they are said to \
             be ({reason})"
        )
    }));
    let before = sound.len();
    let unmeasurable = sound.iter().find(|row| !row.is_measurable());
    let example = unmeasurable.map(|row| format!("{}, {}", row.candidate, in_words(&row.cell)));
    sound.retain(Row::is_measurable);
    said.extend(example.map(|example| {
        format!(
            "Not measurable here: {} of {before} rows, whose times are lost in noise ({example})",
            before - sound.len()
        )
    }));
    (sound, said)
}

/// A cell in a few words.
fn in_words(key: &CellKey) -> String {
    format!("{} of {}, {}", key.operation, bytes(key.size), where_is(key))
}

/// `DRAM to DRAM`, `L1`, or the state.
fn where_is(key: &CellKey) -> String {
    key.levels().unwrap_or_else(|| key.state.to_string())
}

/// A candidate of one cell by name.
fn named<'r>(of_cell: &[&'r Row], name: &str) -> Option<&'r Row> {
    of_cell.iter().copied().find(|row| row.candidate == name)
}

/// Whole cost of one candidate over another's of the same rounds of one cell.
fn between(of_cell: &[&Row], ours: &str, theirs: &str) -> Option<PairedRatio> {
    let pair = named(of_cell, ours)?.over(named(of_cell, theirs)?);
    // A cost at or below nothing is noise, and so is what is divided by it.
    let told = [pair.low, pair.median, pair.high].iter().all(|r| r.is_finite() && *r > 0.0);
    told.then_some(pair)
}

/// One row's operation over another's of the same rounds.
fn versus(ours: &Row, theirs: &Row) -> PairedRatio {
    PairedRatio::new(&ours.operation_ns, &theirs.operation_ns, 0)
}

/// How many of some pairs are faster, slower, and neither.
struct Tally {
    all: usize,
    faster: usize,
    slower: usize,
    open: usize,
}

impl Tally {
    fn of(pairs: impl IntoIterator<Item = PairedRatio>) -> Tally {
        let verdicts: Vec<Verdict> = pairs.into_iter().map(says).collect();
        let count = |wanted| verdicts.iter().filter(|verdict| **verdict == wanted).count();
        Tally {
            all: verdicts.len(),
            faster: count(Verdict::Faster),
            slower: count(Verdict::Slower),
            open: count(Verdict::CannotTell),
        }
    }
}

/// Rows by their candidate.
fn by_candidate<'r>(rows: &[&'r Row]) -> Vec<(String, Vec<&'r Row>)> {
    groups(rows.iter().copied(), |row: &Row| row.candidate.clone())
}

/// `takes 12 % longer`, `takes 12 % less`, or what stands for no measurable difference.
fn takes(pair: PairedRatio, no_difference: &str) -> String {
    match says(pair) {
        Verdict::Slower => format!("takes {} longer", percent(pair.median)),
        Verdict::Faster => format!("takes {} less", percent(pair.median)),
        Verdict::CannotTell => no_difference.to_owned(),
    }
}

/// What a paired ratio says by the margin of all verdicts.
fn says(pair: PairedRatio) -> Verdict {
    pair.verdict(MARGIN)
}

/// A claim of a source document against what was found.
fn claim(claimed: Verdict, found: PairedRatio) -> &'static str {
    match says(found) {
        Verdict::CannotTell => "cannot tell here",
        found if found == claimed => "still true",
        _ => "no longer true here",
    }
}

/// `1.32 (1.28 .. 1.36) times as long`.
fn times(pair: PairedRatio) -> String {
    format!("{pair:.2} times as long")
}

/// `12.3 %` of a time ratio above or below 1.
fn percent(ratio: f64) -> String {
    let change = (ratio - 1.0).abs() * 100.0;
    if change >= 10.0 { format!("{change:.0} %") } else { format!("{change:.1} %") }
}

/// Texts one after the other.
fn joined(texts: impl IntoIterator<Item = impl ToString>, between: &str) -> String {
    texts.into_iter().map(|text| text.to_string()).collect::<Vec<_>>().join(between)
}

/// Where the pair with the least and the one with the greatest median are, by their first part.
fn ends<T>(pairs: &[(T, PairedRatio)]) -> Option<[&(T, PairedRatio); 2]> {
    let by_median =
        |a: &&(T, PairedRatio), b: &&(T, PairedRatio)| a.1.median.total_cmp(&b.1.median);
    Some([pairs.iter().min_by(by_median)?, pairs.iter().max_by(by_median)?])
}

/// The least and the greatest of some values.
fn extremes(values: impl IntoIterator<Item = f64>) -> Option<(f64, f64)> {
    let values: Vec<f64> = values.into_iter().collect();
    Some((values.iter().copied().reduce(f64::min)?, values.iter().copied().reduce(f64::max)?))
}

/// The fastest of some rows.
fn fastest<'r>(rows: impl IntoIterator<Item = &'r Row>) -> Option<&'r Row> {
    rows.into_iter().min_by(|a, b| a.median_ns().total_cmp(&b.median_ns()))
}

/// A number of this and so many of that.
fn counted(number: usize, what: &str) -> String {
    if number == 1 { format!("1 {what}") } else { format!("{number} {what}s") }
}

/// What is said in each of some cases, against what is kept of it in `snapshots`.
#[cfg(test)]
fn kept(name: &str, cases: &[(&str, Vec<String>)]) {
    let case = |(case, said): &(&str, Vec<String>)| format!("# {case}\n{}\n", said.join("\n"));
    insta::assert_snapshot!(name, cases.iter().map(case).collect::<String>());
}

/// Rows that were never measured, beside libc.
#[cfg(test)]
mod made_up {
    use super::*;
    pub(super) use cachewise_measure::Level;
    use cachewise_measure::record::made_up;

    pub(super) fn cell(operation: &str, size: usize, state: &str) -> CellKey {
        CellKey::new(operation, size, state)
    }

    /// The same with its operands at a level.
    pub(super) fn at(level: Level, cell: CellKey) -> CellKey {
        let destination = Some(level.to_string());
        CellKey {
            source: destination.clone().filter(|_| cell.operation == "copy"),
            destination,
            ..cell
        }
    }

    pub(super) fn row(cell: &CellKey, candidate: &str, ns: f64) -> Row {
        noisy(cell, candidate, ns, 0.001)
    }

    pub(super) fn noisy(cell: &CellKey, candidate: &str, ns: f64, noise: f64) -> Row {
        made_up::noisy(cell.clone(), candidate, LIBC, ns, noise)
    }

    /// A row with its ratio to another of that time.
    pub(super) fn over(ns: f64, row: Row) -> Row {
        let pair = versus(&row, &self::row(&row.cell, "twin", ns));
        row.with_ratio(pair)
    }

    /// A row with that ratio.
    pub(super) fn with_ratio(row: Row, (low, median, high): (f64, f64, f64)) -> Row {
        row.with_ratio(PairedRatio { median, low, high, rounds: 15 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cachewise_measure::Proof;

    #[test]
    fn claims_are_true_false_or_open() {
        let cell = cell("zero", 4096, "warm");
        let rows = [row(&cell, "a", 100.0), row(&cell, "b", 150.0), noisy(&cell, "c", 100.0, 0.3)];
        let of_cell: Vec<&Row> = rows.iter().collect();
        let slower = between(&of_cell, "b", "a").expect("both");
        assert_eq!(claim(Verdict::Slower, slower), "still true");
        assert_eq!(claim(Verdict::Faster, slower), "no longer true here");
        let open = between(&of_cell, "c", "a").expect("both");
        assert_eq!(claim(Verdict::Slower, open), "cannot tell here");
        assert!(between(&of_cell, "a", "absent").is_none());
        assert!(times(slower).starts_with("1.50 (1."), "{}", times(slower));
    }

    #[test]
    fn an_experiment_without_a_row_cannot_tell() {
        let names = "aliasing cached-target extent page-clear page-colour page-compare page-fault \
            parallel peers receive reuse-map sticky tcp-copies twins vector-state";
        for name in names.split(' ') {
            let said = of(name, &[], &[]);
            assert!(said[0].contains("cannot tell"), "{name}: {said:?}");
        }
        assert!(of("copy-matrix", &[], &[]).is_empty(), "it has no sentences of its own");
    }

    #[test]
    fn what_was_not_where_it_is_said_to_be_says_nothing() {
        let at = |level, ns| {
            let cell = at(level, cell("copy", 4096, "placed")).with(&[(READ_BYTES, ns)]);
            row(&cell, "copy.avx.g*", ns)
        };
        let mut rows = vec![at(Level::L1, 100.0), at(Level::Llc, 100.0), at(Level::Llc, 200.0)];
        let (all, said) = sound(&rows);
        assert!(all.len() == 3 && said.is_empty());
        rows[1].proofs.push(Proof {
            level: Level::Llc,
            verdict: ProofVerdict::Failed,
            nanoseconds_per_line: 99.0,
            expected: (10.0, 20.0),
            text: "LLC not proved: 99.0 ns a line".to_owned(),
        });
        let (left, said) = sound(&rows);
        assert_eq!(left.len(), 2);
        assert_eq!(
            said,
            ["Withheld: 1 of 3 cells, whose operands were not where they are said to be (copy of \
              4 KiB, LLC to LLC: LLC not proved: 99.0 ns a line)"]
        );
        assert!(of("hints", &rows, &[])[0].ends_with("does not suffice for a verdict"));
        assert!(
            of("hints", &rows[1..2], &[])[0]
                .ends_with("nothing was measured that can be relied on")
        );
        rows[2].bystander_ns = vec![-500.0; 15];
        let said = of("read-batch", &rows, &[]);
        assert!(said.iter().any(|text| text.starts_with("Not measurable here: 1 of 2 rows")));
    }
}
