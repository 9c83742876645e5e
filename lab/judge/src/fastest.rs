//! The ratio of two programs by their fastest runs.
//!
//! What else runs on a machine, its host or the core's other thread makes a run longer, never shorter. Where such
//! disturbances take much of the time, the fastest runs of both sides scatter far less than all of them
//! (Chen and Revels 2016, Robust benchmarking in noisy environments).

use crate::interval::{Pooled, half_widths};
use crate::margin::RUNS;
use crate::order::sorted;
use crate::ratio::{Ratio, of_rounds};
use crate::verdict::Verdict;

/// The part of the runs of both sides that counts.
pub const FASTEST: f64 = 0.2;

/// Logarithm of the largest ratio that is looked for.
const FAR: f64 = 1.0;

/// Halvings of [`FAR`] until an end is known.
const HALVINGS: usize = 18;

/// Rounds of both, as logarithms, and each side sorted.
struct Rounds {
    pairs: Vec<[f64; 2]>,
    sides: [Vec<f64>; 2],
}

impl Rounds {
    /// The time below which lies the fastest part of all runs, with the candidate's divided by a ratio.
    fn limit(&self, ratio: f64) -> f64 {
        let [own, reference] = &self.sides;
        let (mut a, mut b) = (0, 0);
        let mut last = f64::NEG_INFINITY;
        for _ in 0..=(FASTEST * 2.0 * self.pairs.len() as f64) as usize {
            let next = [own.get(a).map(|log| log - ratio), reference.get(b).copied()]
                .map(|log| log.unwrap_or(f64::INFINITY));
            last = next[0].min(next[1]);
            if next[0] <= next[1] { a += 1 } else { b += 1 }
        }
        last
    }

    /// How far the candidate, divided by a ratio, is the faster one: a sum over rounds in standard deviations. A run counts by
    /// how far it lies below the limit. Where the ratio is the true one, a round's two runs are exchangeable, since their
    /// order was drawn: whatever the runs before did, its difference is as likely as its negative.
    fn lead(&self, ratio: f64) -> f64 {
        let limit = self.limit(ratio);
        let (mut sum, mut squares) = (0.0, 0.0);
        for [own, reference] in &self.pairs {
            let lead = (limit - (own - ratio)).max(0.0) - (limit - reference).max(0.0);
            sum += lead;
            squares += lead * lead;
        }
        if squares > 0.0 { sum / f64::sqrt(squares) } else { 0.0 }
    }

    /// The ratio from which on the candidate leads by so much; none up to [`FAR`].
    fn reaches(&self, lead: f64) -> Option<f64> {
        let (mut low, mut high) = (-FAR, FAR);
        if self.lead(low) > lead || self.lead(high) < lead {
            return None;
        }
        for _ in 0..HALVINGS {
            let middle = f64::midpoint(low, high);
            if self.lead(middle) < lead { low = middle } else { high = middle }
        }
        Some(f64::midpoint(low, high))
    }
}

/// The candidate's time over the reference's by the fastest fifth of all runs, of the rounds that both had a turn in and whose
/// order was drawn. The interval holds at every look, for a family of so many; it has no ends where the rounds are too few for
/// it, some 60.
#[must_use]
pub fn fastest(candidate: &[f64], reference: &[f64], family: usize) -> Ratio {
    let pairs: Vec<[f64; 2]> = candidate
        .iter()
        .zip(reference)
        .map(|(own, reference)| [own.ln(), reference.ln()])
        .filter(|pair| pair.iter().all(|log| log.is_finite()))
        .collect();
    let side = |at: usize| sorted(&pairs.iter().map(|pair| pair[at]).collect::<Vec<f64>>());
    let rounds = Rounds { sides: [side(0), side(1)], pairs };
    let count = rounds.pairs.len();
    let widths = half_widths(count, family);
    let found = [0.0, -widths, widths].map(|lead| rounds.reaches(lead));
    let [Some(middle), Some(low), Some(high)] = found else {
        let median = found[0].map_or(f64::NAN, f64::exp);
        return Ratio { median, low: f64::NAN, high: f64::NAN, rounds: count };
    };
    let least = widths * RUNS;
    let [low, high] = [low.min(middle - least), high.max(middle + least)].map(f64::exp);
    Ratio { median: middle.exp(), low, high, rounds: count }
}

/// What pairs of runs show of two versions, by all runs, and of a time by the fastest, too. The intervals hold at every look,
/// together.
#[derive(Clone, Copy, Debug)]
pub struct Shown {
    /// By all runs.
    pub all: Ratio,
    /// By the fastest fifth; none of a figure that is no time.
    pub fastest: Option<Ratio>,
}

impl Shown {
    /// The new version's figures over the old one's.
    #[must_use]
    pub fn of(new: &[f64], old: &[f64], is_time: bool) -> Shown {
        let ratios = of_rounds(new, old);
        let family = if is_time { 2 } else { 1 };
        let all = Pooled::of(&[&ratios]).ratio(&ratios, family);
        Shown { all, fastest: is_time.then(|| fastest(new, old, family)) }
    }

    /// The word, with the ratio that it rests on: of all runs where they show one; else of the fastest, unless all runs
    /// contradict it.
    #[must_use]
    pub fn word(&self, margin: f64) -> (Verdict, Ratio) {
        let word = |ratio: &Ratio| Verdict::at_any_look(ratio, margin);
        let all = self.all;
        let agrees = |fastest: &Ratio| all.low <= fastest.high && fastest.low <= all.high;
        let by_fastest = self.fastest.filter(agrees).map(|fastest| (word(&fastest), fastest));
        match (word(&all), by_fastest) {
            (Verdict::Unknown, Some(shown)) if shown.0 != Verdict::Unknown => shown,
            (by_all, _) => (by_all, all),
        }
    }
}
