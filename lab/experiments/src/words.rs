//! What the sentences of all experiments share: rows of a cell beside each other, and a ratio in words.

pub(crate) use cachewise_kernels::{Kernel, PAGE_SIZE, RegisterClass, find};
pub(crate) use cachewise_measure::record::names::*;
pub(crate) use cachewise_measure::record::{by_cell, distinct, groups, paying};
pub(crate) use cachewise_measure::units::{bytes, counted};
pub(crate) use cachewise_measure::{
    CellKey, Decision, Histogram, Level, MARGIN, PairedRatio, ProofVerdict, Residency, Row,
    ThreadDecision, Verdict, stats,
};
use cachewise_report::cost;
pub(crate) use cachewise_report::rows::{axis, operation_and_size, sorted};

/// Rows by cell.
pub(crate) type Cells<'r> = [(&'r CellKey, Vec<&'r Row>)];

/// A cell in a few words.
pub(crate) fn in_words(key: &CellKey) -> String {
    format!("{} of {}, {}", key.operation, bytes(key.size), where_is(key))
}

/// `DRAM to DRAM`, `L1`, or the state.
pub(crate) fn where_is(key: &CellKey) -> String {
    key.levels().unwrap_or_else(|| key.state.to_string())
}

/// A candidate of one cell by name.
pub(crate) fn named<'r>(of_cell: &[&'r Row], name: &str) -> Option<&'r Row> {
    of_cell.iter().copied().find(|row| row.candidate == name)
}

/// Whole cost of one candidate over another's of the same rounds of one cell: where that is its reference, the
/// ratio that tables print.
pub(crate) fn between(of_cell: &[&Row], ours: &str, theirs: &str) -> Option<PairedRatio> {
    let (row, other) = (named(of_cell, ours)?, named(of_cell, theirs)?);
    let printed = cost::ratio(row).filter(|_| row.reference == theirs);
    let pair = printed.unwrap_or_else(|| row.over(other));
    // A cost at or below nothing is noise, and so is what is divided by it.
    let told = [pair.low, pair.median, pair.high].iter().all(|r| r.is_finite() && *r > 0.0);
    told.then_some(pair)
}

/// The same in each of some cells that have both.
pub(crate) fn pairs<'r>(
    cells: &Cells<'r>,
    ours: &str,
    theirs: &str,
) -> Vec<(&'r CellKey, PairedRatio)> {
    let pair =
        |(key, of_cell): &(&'r CellKey, Vec<&Row>)| Some((*key, between(of_cell, ours, theirs)?));
    cells.iter().filter_map(pair).collect()
}

/// One row's operation over another's of the same rounds.
pub(crate) fn versus(ours: &Row, theirs: &Row) -> PairedRatio {
    PairedRatio::paired(&ours.operation_ns, &theirs.operation_ns)
}

/// How many of some pairs are faster, slower, and neither.
pub(crate) struct Tally {
    pub(crate) all: usize,
    pub(crate) faster: usize,
    pub(crate) slower: usize,
    pub(crate) open: usize,
}

impl Tally {
    pub(crate) fn of(pairs: impl IntoIterator<Item = PairedRatio>) -> Tally {
        let verdicts: Vec<Verdict> = pairs.into_iter().map(says).collect();
        let count = |wanted| verdicts.iter().filter(|verdict| **verdict == wanted).count();
        Tally {
            all: verdicts.len(),
            faster: count(Verdict::Faster),
            slower: count(Verdict::Slower),
            open: count(Verdict::Unknown) + count(Verdict::Same),
        }
    }
}

/// Rows by their candidate.
pub(crate) fn by_candidate<'r>(rows: &[&'r Row]) -> Vec<(String, Vec<&'r Row>)> {
    groups(rows.iter().copied(), |row: &Row| row.candidate.clone())
}

/// The words for what was found: less, more, or no measurable difference.
pub(crate) fn words(found: Verdict, [less, more, none]: [&str; 3]) -> &str {
    match found {
        Verdict::Faster => less,
        Verdict::Slower => more,
        Verdict::Same | Verdict::Unknown => none,
    }
}

/// The same of a ratio, with `{}` for the difference in per cent.
pub(crate) fn told(pair: PairedRatio, all: [&str; 3]) -> String {
    words(says(pair), all).replace("{}", &percent(pair.median))
}

/// What a paired ratio says by the margin of all verdicts.
pub(crate) fn says(pair: PairedRatio) -> Verdict {
    pair.verdict(MARGIN)
}

/// A claim of a source document against what was found.
pub(crate) fn claim(claimed: Verdict, found: PairedRatio) -> &'static str {
    let (so, not_so) = ("still true", "no longer true here");
    let [faster, slower] = if claimed == Verdict::Faster { [so, not_so] } else { [not_so, so] };
    words(says(found), [faster, slower, "cannot tell here"])
}

/// `1.32 (1.28 .. 1.36) times as long`.
pub(crate) fn times(pair: PairedRatio) -> String {
    format!("{pair:.2} times as long")
}

/// `12.3 %` of a time ratio above or below 1.
pub(crate) fn percent(ratio: f64) -> String {
    let change = (ratio - 1.0).abs() * 100.0;
    if change >= 10.0 { format!("{change:.0} %") } else { format!("{change:.1} %") }
}

/// Texts one after the other.
pub(crate) fn joined(texts: impl IntoIterator<Item = impl ToString>, between: &str) -> String {
    texts.into_iter().map(|text| text.to_string()).collect::<Vec<_>>().join(between)
}

/// Where the pair with the least and the one with the greatest median are, by their first part.
pub(crate) fn ends<T>(pairs: &[(T, PairedRatio)]) -> Option<[&(T, PairedRatio); 2]> {
    let by_median =
        |a: &&(T, PairedRatio), b: &&(T, PairedRatio)| a.1.median.total_cmp(&b.1.median);
    Some([pairs.iter().min_by(by_median)?, pairs.iter().max_by(by_median)?])
}

/// The least and the greatest of some values.
pub(crate) fn extremes(values: impl IntoIterator<Item = f64>) -> Option<(f64, f64)> {
    let values: Vec<f64> = values.into_iter().collect();
    Some((values.iter().copied().reduce(f64::min)?, values.iter().copied().reduce(f64::max)?))
}

/// The fastest of some rows.
pub(crate) fn fastest<'r>(rows: impl IntoIterator<Item = &'r Row>) -> Option<&'r Row> {
    rows.into_iter().min_by(|a, b| a.median_ns().total_cmp(&b.median_ns()))
}

/// Where a kernel pays, over the largest sizes among which it never loses: from which size on (0: the least
/// measured, the greatest number: nowhere), and that in words. `points` are size, median time ratio and
/// verdict, by size. Between a size that is not faster and the next that is, the ratio is taken as
/// straight over the logarithm of the size.
pub(crate) fn break_even(points: &[(usize, f64, Verdict)]) -> Option<(usize, String)> {
    let largest = points.last()?.0;
    let is = |wanted: Verdict| move |point: &(usize, f64, Verdict)| point.2 == wanted;
    let Some(last) = points.iter().rposition(is(Verdict::Faster)) else {
        return Some((usize::MAX, format!("at no size up to {}", bytes(largest as u64))));
    };
    let most = bytes(points[last].0 as u64);
    let until = match points.get(last + 1) {
        None => String::new(),
        Some(_) if points[last..].iter().any(is(Verdict::Slower)) => {
            format!(" up to {most}, above that it loses")
        }
        Some(_) => format!(" up to {most}, above that there is no difference"),
    };
    let after = points[..last].iter().rposition(is(Verdict::Slower));
    let begin = after.map_or(0, |losing| losing + 1);
    let first = points[begin..].iter().position(is(Verdict::Faster))? + begin;
    if first == 0 {
        return Some((0, format!("from the smallest size on{until}")));
    }
    let ((below, loses, _), (above, wins, _)) = (points[first - 1], points[first]);
    // A size that could not be told may have a ratio below 1 already.
    let share = if loses > 1.0 { (loses - 1.0) / (loses - wins) } else { 0.0 };
    let size = (below as f64).ln() + share * (above as f64 / below as f64).ln();
    let size = size.exp().round() as usize;
    Some((size, format!("from about {size} B on{until}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use Verdict::{Faster, Slower, Unknown};

    #[test]
    fn break_even_is_where_it_stops_losing() {
        assert_eq!(break_even(&[]), None);
        let lost_between = [(16, 0.5, Faster), (64, 1.5, Slower), (256, 0.5, Faster)];
        let level = [(16, 0.5, Faster), (32 << 10, 0.9, Faster), (64 << 10, 1.0, Unknown)];
        for (points, at, said) in [
            (&[(16, 0.5, Faster), (64, 0.4, Faster)][..], 0, "from the smallest size on"),
            (&[(16, 2.0, Slower), (64, 1.2, Slower)], usize::MAX, "at no size up to 64 B"),
            // Halfway in ratio is halfway in octaves.
            (&[(256, 1.5, Slower), (1024, 0.5, Faster)], 512, "from about 512 B on"),
            // A win below a loss does not count, unless there is no other.
            (&lost_between, 128, "from about 128 B on"),
            (&lost_between[..2], 0, "from the smallest size on up to 16 B, above that it loses"),
            (&[(16, 0.99, Unknown), (64, 0.5, Faster)], 16, "from about 16 B on"),
            // Faster up to 32 KiB and level from 64 KiB on is not "not up to 64 KiB".
            (
                &level,
                0,
                "from the smallest size on up to 32 KiB, above that there is no difference",
            ),
        ] {
            assert_eq!(break_even(points), Some((at, said.to_owned())));
        }
    }
}
