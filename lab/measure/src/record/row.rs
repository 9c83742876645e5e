//! One result: who was measured in which cell, how long it took, and what that says.

use super::Histogram;
use crate::MARGIN;
use crate::stats::{DriftVerdict, PairedRatio, Verdict, median};
use crate::{Proof, Residency};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A part may be negative by this share of the operation: twice the [`MARGIN`].
pub const PART_NOISE: f64 = 2.0 * MARGIN;

/// One candidate in one cell.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Row {
    pub experiment: String,
    /// Coordinates of the measured cell.
    pub cell: CellKey,
    pub candidate: String,
    pub reference: String,
    pub calls: u32,
    /// Nanoseconds per call, by round.
    #[serde(with = "crate::rounded")]
    pub operation_ns: Vec<f64>,
    /// Nanoseconds of the reader per call, by round; empty without one.
    #[serde(with = "crate::rounded", default, skip_serializing_if = "Vec::is_empty")]
    pub reader_ns: Vec<f64>,
    /// Nanoseconds the bystander lost per call, by round; empty without one.
    #[serde(with = "crate::rounded", default, skip_serializing_if = "Vec::is_empty")]
    pub bystander_ns: Vec<f64>,
    /// The operation's time over the reference's.
    pub ratio: Option<PairedRatio>,
    /// Verdict from the ratio of the whole cost, or of the operation where nothing else was timed; none where
    /// it was withheld, because the operands were not where they are said to be.
    pub verdict: Option<Verdict>,
    /// Operation, reader and bystander together over the reference's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total_ratio: Option<PairedRatio>,
    /// Proofs of residency: source, then destination. They hold for the whole cell, and stand on the
    /// reference's row alone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub proofs: Vec<Proof>,
    /// Result of the test for drift. It holds for the whole cell, and so stands on the reference's row
    /// alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drift: Option<DriftVerdict>,
    /// True if it was dropped early for its slowness.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub dropped: bool,
    /// Figures particular to the experiment.
    #[serde(with = "crate::rounded", default, skip_serializing_if = "BTreeMap::is_empty")]
    pub extra: BTreeMap<String, f64>,
    /// The distribution of single calls, where the experiment is about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub histogram: Option<Histogram>,
}

/// Operation, reader and bystander together, by round; a part that there is not counts nothing.
pub fn total_ns(operation: &[f64], reader: &[f64], bystander: &[f64]) -> Vec<f64> {
    let part = |times: &[f64], round: usize| times.get(round).copied().unwrap_or(0.0);
    let sum = |(round, time): (usize, &f64)| time + part(reader, round) + part(bystander, round);
    operation.iter().enumerate().map(sum).collect()
}

impl Row {
    /// A row of these times, compared with nobody yet.
    pub fn new(
        experiment: &str,
        cell: CellKey,
        candidate: &str,
        reference: &str,
        operation_ns: Vec<f64>,
    ) -> Row {
        Row {
            experiment: experiment.to_owned(),
            cell,
            candidate: candidate.to_owned(),
            reference: reference.to_owned(),
            calls: 1,
            operation_ns,
            ..Row::default()
        }
    }

    /// With the operation's ratio to the reference's, and what it says.
    #[must_use]
    pub fn with_ratio(mut self, ratio: PairedRatio) -> Row {
        self.verdict = Some(ratio.verdict(MARGIN));
        self.ratio = Some(ratio);
        self
    }

    /// The ratio that counts: of the whole cost, or of the operation where nothing else was timed. None where
    /// parts were timed whose sums were lost in noise.
    pub fn whole_ratio(&self) -> Option<PairedRatio> {
        let is_alone = self.reader_ns.is_empty() && self.bystander_ns.is_empty();
        self.total_ratio.or(self.ratio.filter(|_| is_alone))
    }

    /// Returns whether its verdict was withheld when it was measured, because the proof of residency failed.
    pub fn is_withheld(&self) -> bool {
        self.ratio.is_some() && self.verdict.is_none()
    }

    /// Verdict that follows from that ratio.
    pub fn said(&self) -> Option<Verdict> {
        self.whole_ratio().map(|ratio| ratio.verdict(MARGIN))
    }

    /// Operation, reader and bystander together, nanoseconds per call, by round.
    pub fn total_ns(&self) -> Vec<f64> {
        total_ns(&self.operation_ns, &self.reader_ns, &self.bystander_ns)
    }

    /// The median of the operation's times; NaN for none.
    pub fn median_ns(&self) -> f64 {
        median(&self.operation_ns)
    }

    /// A further coordinate of the cell; none where it has no such axis.
    pub fn axis(&self, name: &str) -> Option<f64> {
        self.cell.axis(name)
    }

    /// A figure particular to the experiment; none where it has no such figure.
    pub fn figure(&self, name: &str) -> Option<f64> {
        self.extra.get(name).copied()
    }

    /// With figures particular to the experiment.
    #[must_use]
    pub fn with(mut self, figures: &[(&str, f64)]) -> Row {
        self.extra.extend(figures.iter().map(|&(name, value)| (name.to_owned(), value)));
        self
    }

    /// Decimal gigabytes per second of the operation; NaN where nothing was measured.
    pub fn gbps(&self) -> f64 {
        self.cell.size as f64 / self.median_ns()
    }

    /// Whole cost over another row's of the same rounds.
    pub fn over(&self, other: &Row) -> PairedRatio {
        PairedRatio::paired(&self.total_ns(), &other.total_ns())
    }

    /// Returns whether its times are times. Reader and bystander are differences of times, which noise makes a
    /// little negative, by [`PART_NOISE`] of the operation at most; a part below that, or a sum of
    /// nothing or less, is noise alone.
    pub fn is_measurable(&self) -> bool {
        let operation = self.median_ns();
        let least = -PART_NOISE * operation;
        let is_part = |part: &&Vec<f64>| part.is_empty() || median(part) >= least;
        operation > 0.0
            && [&self.reader_ns, &self.bystander_ns].iter().all(is_part)
            && median(&self.total_ns()) > 0.0
    }
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CellKey {
    pub operation: String,
    pub size: u64,
    /// Residency of the source, if given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<Residency>,
    /// Residency of the destination, if given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub destination: Option<Residency>,
    /// Layout of the operands, what is restored before each sample, or the part of an experiment.
    pub state: String,
    /// Fraction of the destination read afterwards.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reader: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bystander: Option<u64>,
    /// Further coordinates by name: `threads`, `delay_ns`, `offset`, `first_difference`.
    #[serde(
        deserialize_with = "crate::rounded::deserialize",
        default,
        skip_serializing_if = "BTreeMap::is_empty"
    )]
    pub axes: BTreeMap<String, f64>,
}

impl CellKey {
    /// A cell without levels, reader, bystander or axes.
    pub fn new(operation: &str, size: usize, state: impl Into<String>) -> CellKey {
        CellKey {
            operation: operation.to_owned(),
            size: size as u64,
            state: state.into(),
            ..CellKey::default()
        }
    }

    #[must_use]
    pub fn with(mut self, axes: &[(&str, f64)]) -> CellKey {
        self.axes.extend(axes.iter().map(|&(name, value)| (name.to_owned(), value)));
        self
    }

    /// A further coordinate; none where it has no such axis.
    pub fn axis(&self, name: &str) -> Option<f64> {
        self.axes.get(name).copied()
    }

    /// `DRAM to DRAM`, or `L1` where there is one operand; none where no level is given.
    pub fn levels(&self) -> Option<String> {
        let destination = self.destination?;
        Some(match self.source {
            Some(source) => format!("{source} to {destination}"),
            None => destination.to_string(),
        })
    }
}

/// Rows by cell, in the order the cells appear.
pub fn by_cell<'r>(rows: impl IntoIterator<Item = &'r Row>) -> Vec<(&'r CellKey, Vec<&'r Row>)> {
    groups(rows, |row| &row.cell)
}

/// Each once, in the order of their first appearance.
pub fn distinct<T: PartialEq>(items: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut found = Vec::new();
    for item in items {
        if !found.contains(&item) {
            found.push(item);
        }
    }
    found
}

/// Items that agree in a key, in the order of their first appearance.
pub fn groups<'r, T, K: PartialEq>(
    items: impl IntoIterator<Item = &'r T>,
    key: impl Fn(&'r T) -> K,
) -> Vec<(K, Vec<&'r T>)> {
    let mut found: Vec<(K, Vec<&'r T>)> = Vec::new();
    for item in items {
        let of = key(item);
        match found.iter_mut().find(|(known, _)| *known == of) {
            Some((_, members)) => members.push(item),
            None => found.push((of, vec![item])),
        }
    }
    found
}

/// Rows that were never measured, for tests of tables, plots and sentences.
pub mod made_up {
    use super::{CellKey, Row};

    /// Fifteen rounds of about `ns` each, up to one per mille.
    pub fn row(cell: CellKey, candidate: &str, reference: &str, ns: f64) -> Row {
        noisy(cell, candidate, reference, ns, 0.001)
    }

    /// Fifteen rounds that differ by that fraction to either side.
    pub fn noisy(cell: CellKey, candidate: &str, reference: &str, ns: f64, noise: f64) -> Row {
        let mut random = fastrand::Rng::with_seed(ns.to_bits() ^ candidate.len() as u64);
        let times = (0..15).map(|_| ns * (1.0 + noise * (2.0 * random.f64() - 1.0))).collect();
        Row::new("made-up", cell, candidate, reference, times)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sum_counts_the_parts_there_are() {
        let mut row = made_up::row(CellKey::new("copy", 64, "warm"), "a", "libc", 1.0);
        row.operation_ns = vec![1.0, 2.0];
        row.reader_ns = vec![10.0, 20.0];
        assert_eq!(row.total_ns(), [11.0, 22.0]);
        row.bystander_ns = vec![-100.0];
        assert_eq!(row.total_ns(), [-89.0, 22.0]);
        assert!(!row.is_measurable(), "less than no time");
        (row.operation_ns, row.reader_ns) = (vec![100.0], Vec::new());
        for (bystander, is_measurable) in [(-1.9, true), (-2.1, false), (f64::NAN, false)] {
            row.bystander_ns = vec![bystander];
            assert_eq!(row.is_measurable(), is_measurable, "{bystander} of 100 ns");
        }
        assert!(!Row::default().is_measurable(), "no times");
        assert_eq!(row.axis("x"), None);
    }
}
