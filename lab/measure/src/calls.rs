//! Single calls, each timed on its own: distributions rather than medians.
//!
//! A call of a few nanoseconds is shorter than reading the clock, so what is told of one is no
//! better than the clock's resolution: the reading's median cost is subtracted, and what is left is
//! counted in bins of [`BIN_NS`]. For how long a kernel takes, use the [sampler](crate::sampler).

use crate::{Clock, Histogram};
use serde::{Deserialize, Serialize};

/// Width of a bin in nanoseconds.
pub const BIN_NS: f64 = 10.0;
/// Bins kept: up to 5000 ns (seed 004.7's wider cut).
const BINS: usize = 500;

/// Histogram of the times of calls.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CallTimes {
    /// Calls per bin of [`BIN_NS`].
    pub counts: Vec<u64>,
    /// Number of calls beyond the last bin.
    pub above: u64,
    /// Nanoseconds of all calls together, single-call costs of the clock subtracted.
    pub sum_ns: f64,
}

impl Default for CallTimes {
    fn default() -> CallTimes {
        CallTimes { counts: vec![0; BINS], above: 0, sum_ns: 0.0 }
    }
}

impl CallTimes {
    /// Makes `count` calls, each between two readings of the clock.
    pub fn time(&mut self, clock: &Clock, count: usize, mut call: impl FnMut(usize)) {
        for index in 0..count {
            self.record(clock.time(|| call(index)));
        }
    }

    pub fn record(&mut self, nanoseconds: f64) {
        self.sum_ns += nanoseconds;
        match self.counts.get_mut((nanoseconds / BIN_NS) as usize) {
            Some(count) => *count += 1,
            None => self.above += 1,
        }
    }

    pub fn add(&mut self, other: &CallTimes) {
        for (ours, theirs) in self.counts.iter_mut().zip(&other.counts) {
            *ours += theirs;
        }
        self.above += other.above;
        self.sum_ns += other.sum_ns;
    }

    pub fn calls(&self) -> u64 {
        self.counts.iter().sum::<u64>() + self.above
    }

    /// The part of the calls that took less than that many nanoseconds (a multiple of [`BIN_NS`]); NaN
    /// for no calls.
    pub fn share_below(&self, nanoseconds: f64) -> f64 {
        let bins = ((nanoseconds / BIN_NS).round() as usize).min(self.counts.len());
        self.counts[..bins].iter().sum::<u64>() as f64 / self.calls() as f64
    }

    /// Histogram cut at `cut_ns`, `join` bins to one.
    pub fn histogram(&self, cut_ns: f64, join: usize) -> Histogram {
        let join = join.max(1);
        let bins = ((cut_ns / BIN_NS).round() as usize).min(self.counts.len()) / join * join;
        let counts: Vec<u64> =
            self.counts[..bins].chunks(join).map(|part| part.iter().sum()).collect();
        let width = BIN_NS * join as f64;
        let edges_ns = (0..=counts.len()).map(|edge| edge as f64 * width).collect();
        let above = self.calls() - counts.iter().sum::<u64>();
        Histogram { edges_ns, counts, above }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_counted_where_they_belong() {
        let mut times = CallTimes::default();
        for ns in [0.0, 9.9, 10.0, 99.0, 999.0, 1000.0, 4999.0, 5000.0, 1e9] {
            times.record(ns);
        }
        assert_eq!((times.calls(), times.above), (9, 2));
        assert_eq!((times.counts[0], times.counts[1], times.counts[499]), (2, 1, 1));
        assert_eq!(times.share_below(100.0), 4.0 / 9.0);
        let narrow = times.histogram(1000.0, 1);
        assert_eq!((narrow.counts.len(), narrow.edges_ns.len(), narrow.above), (100, 101, 4));
        let wide = times.histogram(5000.0, 5);
        assert_eq!((wide.counts.len(), wide.edges_ns[100], wide.above), (100, 5000.0, 2));
        assert_eq!(wide.counts.iter().sum::<u64>() + wide.above, 9);
    }

    #[test]
    fn every_call_is_made_once_and_two_add_up() {
        let (mut seen, mut times) = (Vec::new(), CallTimes::default());
        assert!(times.share_below(100.0).is_nan());
        times.time(&Clock::calibrate(), 5, |index| seen.push(index));
        assert_eq!(seen, [0, 1, 2, 3, 4]);
        times.add(&times.clone());
        assert_eq!(times.calls(), 10);
    }
}
