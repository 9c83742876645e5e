//! One time over another: the only figure that is printed or judged.

use crate::margin::LEAST_ROUNDS;
use serde::{Deserialize, Serialize};

/// Candidate's time over the reference's: below 1 is faster.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ratio {
    /// The estimate: the middle of the means of all pairs of rounds; of [`Pooled`](crate::interval::Pooled), a mean with far
    /// rounds moved nearer.
    #[serde(with = "crate::rounded")]
    pub median: f64,
    /// Lower end of its 95 % interval.
    #[serde(with = "crate::rounded")]
    pub low: f64,
    /// Upper end of its 95 % interval.
    #[serde(with = "crate::rounded")]
    pub high: f64,
    /// Rounds that both were measured in and that gave a ratio.
    pub rounds: usize,
}

/// `1.320 (1.280 .. 1.360)`, to three places unless others are asked for; of too few rounds for an interval
/// `1.320 (5 rounds)`.
impl std::fmt::Display for Ratio {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (Ratio { median, low, high, rounds }, places) = (self, f.precision().unwrap_or(3));
        match rounds {
            _ if self.has_interval() => {
                write!(f, "{median:.places$} ({low:.places$} .. {high:.places$})")
            }
            1 => write!(f, "{median:.places$} (1 round)"),
            _ => write!(f, "{median:.places$} ({rounds} rounds)"),
        }
    }
}

impl Ratio {
    /// The reference's time over the candidate's: a speed, above 1 is faster.
    #[must_use]
    pub fn inverse(&self) -> Ratio {
        let Ratio { median, low, high, rounds } = *self;
        Ratio { median: 1.0 / median, low: 1.0 / high, high: 1.0 / low, rounds }
    }

    /// Returns whether it has enough rounds for an interval; with fewer, `low` and `high` are the extremes, or a confidence
    /// sequence's.
    pub fn has_interval(&self) -> bool {
        self.rounds >= LEAST_ROUNDS
    }

    /// Returns whether it is a ratio of times with an interval around it.
    pub fn is_sound(&self) -> bool {
        self.median > 0.0 && self.low > 0.0 && self.low <= self.high
    }
}

/// Candidate over reference of the rounds that both had a turn in. A round that only one had a turn in is NaN. A
/// round in which either took zero or negative time gives no ratio; if these are more than a quarter, the result is
/// empty.
#[must_use]
pub fn of_rounds(candidate: &[f64], reference: &[f64]) -> Vec<f64> {
    let pairs = candidate.iter().zip(reference);
    let both = pairs.filter(|(ours, theirs)| !ours.is_nan() && !theirs.is_nan());
    let rounds = both.clone().count();
    let ratios: Vec<f64> = both
        .filter(|(ours, theirs)| **ours > 0.0 && **theirs > 0.0)
        .map(|(ours, theirs)| ours / theirs)
        .filter(|ratio| ratio.is_finite())
        .collect();
    if 4 * ratios.len() < 3 * rounds { Vec::new() } else { ratios }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verdict::Verdict;

    #[test]
    fn rounds_without_time_give_no_ratio() {
        assert_eq!(Ratio::paired(&[1.0, 2.0, 3.0, 4.0], &[0.0, 2.0, 3.0, 4.0]).rounds, 3);
        // Noise of less than nothing in more than a quarter of the rounds: nothing can be said.
        let mut lost = [5.0; 16];
        lost[..5].fill(-3.0);
        let none = Ratio::paired(&lost, &[1.0; 16]);
        assert!(none.rounds == 0 && none.verdict(0.0) == Verdict::Unknown && !none.is_sound());
        // The candidate had a turn in every second round.
        let turns: Vec<f64> = (0..20).map(|n| if n % 2 == 0 { 2.0 } else { f64::NAN }).collect();
        let shared = Ratio::paired(&turns, &[1.0; 20]);
        assert_eq!((shared.median, shared.rounds), (2.0, 10));
    }

    #[test]
    fn a_speed_is_the_inverse_of_a_ratio() {
        let ratio = Ratio { median: 0.5, low: 0.4, high: 0.8, rounds: 9 };
        assert_eq!(ratio.inverse(), Ratio { median: 2.0, low: 1.25, high: 2.5, rounds: 9 });
        assert_eq!(format!("{ratio:.2}"), "0.50 (0.40 .. 0.80)");
        assert_eq!(Ratio { rounds: 5, ..ratio }.to_string(), "0.500 (5 rounds)");
    }
}
