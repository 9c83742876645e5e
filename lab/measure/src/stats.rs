//! The drift of a run. Ratios, intervals and verdicts are the judge's (`cachewise_judge`); what is asked for often is
//! passed on from here.

pub use cachewise_judge::margin::LEAST_ROUNDS;
use cachewise_judge::order::two_sided;
pub use cachewise_judge::order::{geometric_mean, median, quantile};
pub use cachewise_judge::{Ratio as PairedRatio, Verdict};
use serde::{Deserialize, Serialize};

/// The p of the Mann-Kendall test for a trend over time, two-sided, with ties and continuity
/// correction (Mann 1945, Kendall 1975); 1 for fewer than four values or all equal.
fn mann_kendall(values: &[f64]) -> f64 {
    let signs = pairs(values).map(|(_, earlier, later)| {
        f64::from(i8::from(later > earlier) - i8::from(later < earlier))
    });
    let s: f64 = signs.sum();
    let n = values.len() as f64;
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let ties = sorted.chunk_by(|a, b| a == b).map(|group| group.len() as f64);
    let ties: f64 = ties.map(|t| t * (t - 1.0) * (2.0 * t + 5.0)).sum();
    let variance = (n * (n - 1.0) * (2.0 * n + 5.0) - ties) / 18.0;
    if values.len() < 4 { 1.0 } else { two_sided(s.abs() - 1.0, variance) }
}

/// Median of the slopes between all pairs, per step of the index (Sen 1968); NaN for under two
/// values.
fn sen_slope(values: &[f64]) -> f64 {
    let slopes = pairs(values).map(|(steps, earlier, later)| (later - earlier) / steps as f64);
    median(&slopes.collect::<Vec<f64>>())
}

/// Distance of two values, the earlier one and the later one, for each pair.
fn pairs(values: &[f64]) -> impl Iterator<Item = (usize, f64, f64)> {
    let from = move |(at, earlier): (usize, &f64)| {
        let earlier = *earlier;
        let later = values[at + 1..].iter().enumerate();
        later.map(move |(between, later)| (between + 1, earlier, *later))
    };
    values.iter().enumerate().flat_map(from)
}

/// Result of the test for drift during a run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "verdict", rename_all = "kebab-case")]
pub enum DriftVerdict {
    /// No trend, or one too small to matter.
    Steady {
        /// p of the Mann-Kendall test.
        #[serde(with = "crate::rounded")]
        p: f64,
        /// Change from the first to the last round, as a fraction (0.03: 3 % slower).
        #[serde(with = "crate::rounded")]
        change: f64,
    },
    /// A trend with p below 1 % that changes times by more than 2 %: the machine was not in one
    /// state (heat, frequency, a growing neighbour). Paired ratios still hold; times do not.
    Drifting {
        /// p of the Mann-Kendall test.
        #[serde(with = "crate::rounded")]
        p: f64,
        /// Change from the first to the last round, as a fraction.
        #[serde(with = "crate::rounded")]
        change: f64,
    },
    TooFewRounds,
}

impl DriftVerdict {
    /// Tests the rounds of several candidates together: a round's value is the mean, over
    /// candidates, of the logarithm of its time over that candidate's median. Candidates with
    /// fewer rounds than the longest (those dropped early) do not take part.
    pub fn of_rounds(candidates: &[&[f64]]) -> DriftVerdict {
        let rounds = candidates.iter().map(|times| times.len()).max().unwrap_or(0);
        if rounds < 8 {
            return DriftVerdict::TooFewRounds;
        }
        let is_member =
            |times: &&&[f64]| times.len() == rounds && times.iter().all(|time| *time > 0.0);
        let members: Vec<_> = candidates.iter().filter(is_member).collect();
        if members.is_empty() {
            return DriftVerdict::TooFewRounds;
        }
        let mut levels = vec![0.0; rounds];
        for times in &members {
            let centre = median(times);
            for (level, time) in levels.iter_mut().zip(**times) {
                *level += (time / centre).ln();
            }
        }
        levels.iter_mut().for_each(|level| *level /= members.len() as f64);
        let p = mann_kendall(&levels);
        let change = (sen_slope(&levels) * (rounds - 1) as f64).exp() - 1.0;
        if p < 0.01 && change.abs() > 0.02 {
            DriftVerdict::Drifting { p, change }
        } else {
            DriftVerdict::Steady { p, change }
        }
    }
}

#[cfg(test)]
#[path = "stats_tests.rs"]
mod tests;
