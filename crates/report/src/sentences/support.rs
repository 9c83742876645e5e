//! What the sentences of all experiments share: rows of a cell beside each other, and a ratio in words.

use crate::cost;
pub(super) use crate::rows::{axis, operation_and_size};
pub(super) use cachewise_kernels::{Kernel, PAGE_SIZE, RegisterClass, find};
pub(super) use cachewise_measure::record::names::*;
pub(super) use cachewise_measure::record::{by_cell, distinct, groups, paying};
pub(super) use cachewise_measure::units::{bytes, counted};
pub(super) use cachewise_measure::{
    CellKey, Decision, Histogram, MARGIN, PairedRatio, ProofVerdict, Row, ThreadDecision, Verdict,
    stats,
};

/// Rows by cell.
pub(super) type Cells<'r> = [(&'r CellKey, Vec<&'r Row>)];

/// A cell in a few words.
pub(super) fn in_words(key: &CellKey) -> String {
    format!("{} of {}, {}", key.operation, bytes(key.size), where_is(key))
}

/// `DRAM to DRAM`, `L1`, or the state.
pub(super) fn where_is(key: &CellKey) -> String {
    key.levels().unwrap_or_else(|| key.state.to_string())
}

/// A candidate of one cell by name.
pub(super) fn named<'r>(of_cell: &[&'r Row], name: &str) -> Option<&'r Row> {
    of_cell.iter().copied().find(|row| row.candidate == name)
}

/// Whole cost of one candidate over another's of the same rounds of one cell: where that is its reference, the
/// ratio that tables print.
pub(super) fn between(of_cell: &[&Row], ours: &str, theirs: &str) -> Option<PairedRatio> {
    let (row, other) = (named(of_cell, ours)?, named(of_cell, theirs)?);
    let printed = cost::ratio(row).filter(|_| row.reference == theirs);
    let pair = printed.unwrap_or_else(|| row.over(other));
    // A cost at or below nothing is noise, and so is what is divided by it.
    let told = [pair.low, pair.median, pair.high].iter().all(|r| r.is_finite() && *r > 0.0);
    told.then_some(pair)
}

/// The same in each of some cells that have both.
pub(super) fn pairs<'r>(
    cells: &Cells<'r>,
    ours: &str,
    theirs: &str,
) -> Vec<(&'r CellKey, PairedRatio)> {
    let pair =
        |(key, of_cell): &(&'r CellKey, Vec<&Row>)| Some((*key, between(of_cell, ours, theirs)?));
    cells.iter().filter_map(pair).collect()
}

/// One row's operation over another's of the same rounds.
pub(super) fn versus(ours: &Row, theirs: &Row) -> PairedRatio {
    PairedRatio::new(&ours.operation_ns, &theirs.operation_ns, 0)
}

/// How many of some pairs are faster, slower, and neither.
pub(super) struct Tally {
    pub(super) all: usize,
    pub(super) faster: usize,
    pub(super) slower: usize,
    pub(super) open: usize,
}

impl Tally {
    pub(super) fn of(pairs: impl IntoIterator<Item = PairedRatio>) -> Tally {
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
pub(super) fn by_candidate<'r>(rows: &[&'r Row]) -> Vec<(String, Vec<&'r Row>)> {
    groups(rows.iter().copied(), |row: &Row| row.candidate.clone())
}

/// The words for what was found: less, more, or no measurable difference.
pub(super) fn words(found: Verdict, [less, more, none]: [&str; 3]) -> &str {
    match found {
        Verdict::Faster => less,
        Verdict::Slower => more,
        Verdict::CannotTell => none,
    }
}

/// The same of a ratio, with `{}` for the difference in per cent.
pub(super) fn told(pair: PairedRatio, all: [&str; 3]) -> String {
    words(says(pair), all).replace("{}", &percent(pair.median))
}

/// What a paired ratio says by the margin of all verdicts.
pub(super) fn says(pair: PairedRatio) -> Verdict {
    pair.verdict(MARGIN)
}

/// A claim of a source document against what was found.
pub(super) fn claim(claimed: Verdict, found: PairedRatio) -> &'static str {
    let (so, not_so) = ("still true", "no longer true here");
    let [faster, slower] = if claimed == Verdict::Faster { [so, not_so] } else { [not_so, so] };
    words(says(found), [faster, slower, "cannot tell here"])
}

/// `1.32 (1.28 .. 1.36) times as long`.
pub(super) fn times(pair: PairedRatio) -> String {
    format!("{pair:.2} times as long")
}

/// `12.3 %` of a time ratio above or below 1.
pub(super) fn percent(ratio: f64) -> String {
    let change = (ratio - 1.0).abs() * 100.0;
    if change >= 10.0 { format!("{change:.0} %") } else { format!("{change:.1} %") }
}

/// Texts one after the other.
pub(super) fn joined(texts: impl IntoIterator<Item = impl ToString>, between: &str) -> String {
    texts.into_iter().map(|text| text.to_string()).collect::<Vec<_>>().join(between)
}

/// Where the pair with the least and the one with the greatest median are, by their first part.
pub(super) fn ends<T>(pairs: &[(T, PairedRatio)]) -> Option<[&(T, PairedRatio); 2]> {
    let by_median =
        |a: &&(T, PairedRatio), b: &&(T, PairedRatio)| a.1.median.total_cmp(&b.1.median);
    Some([pairs.iter().min_by(by_median)?, pairs.iter().max_by(by_median)?])
}

/// The least and the greatest of some values.
pub(super) fn extremes(values: impl IntoIterator<Item = f64>) -> Option<(f64, f64)> {
    let values: Vec<f64> = values.into_iter().collect();
    Some((values.iter().copied().reduce(f64::min)?, values.iter().copied().reduce(f64::max)?))
}

/// The fastest of some rows.
pub(super) fn fastest<'r>(rows: impl IntoIterator<Item = &'r Row>) -> Option<&'r Row> {
    rows.into_iter().min_by(|a, b| a.median_ns().total_cmp(&b.median_ns()))
}

/// What is said in each of some cases, against what is kept of it in `snapshots`.
#[cfg(test)]
pub(super) fn kept(name: &str, cases: &[(&str, Vec<String>)]) {
    let case = |(case, said): &(&str, Vec<String>)| format!("# {case}\n{}\n", said.join("\n"));
    insta::assert_snapshot!(name, cases.iter().map(case).collect::<String>());
}
