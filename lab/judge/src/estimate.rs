//! Estimates of the logarithm of a ratio from few rounds: a mean, its error, and what both show.
//!
//! A tuning asks thousands of small questions of some rounds each. [`Middle`] is what an arm's own rounds show, an
//! [`Estimate`] has the scatter of others beside it, and [`Sure`] says from how many standard errors on it shows something.

use crate::margin::{LEAST_POOLED, LEAST_ROUNDS};
use crate::order::median;
use crate::ratio::Ratio;

/// Source of the scatter of rounds, from which an error is estimated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scatter {
    /// These rounds alone: the error of few is an estimate itself, which Student's t allows for.
    Own,
    /// Many other comparisons on the same machine, as a tuning has them.
    Pooled,
}

impl Scatter {
    /// Rounds below which nothing is shown: with its own scatter, those that carry an interval.
    #[must_use]
    pub const fn least_rounds(self) -> usize {
        match self {
            Scatter::Own => LEAST_ROUNDS,
            Scatter::Pooled => LEAST_POOLED,
        }
    }
}

/// The width of an interval in standard errors that holds at every moment of a growing number of rounds at once.
#[must_use]
pub fn always(rounds: usize, scatter: Scatter) -> f64 {
    let n = rounds.max(1) as f64;
    // t of n - 1 degrees over the normal's, at 5 %: 2.2 of 3 rounds, 1.15 of 10.
    let student = match scatter {
        Scatter::Own => 1.0 + 1.2 / (n - 2.0).max(1.0),
        Scatter::Pooled => 1.0,
    };
    student * (2.0 * (1.0 + 1.0 / n) * ((n + 1.0).sqrt() / 0.05).ln()).sqrt()
}

/// The trust that a question asks of an estimate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sure {
    /// One standard error: it seems so.
    Seems,
    /// A new candidate keeps a bound: with one standard error it would in one tuning and not in the next.
    Likely,
    /// Shown at one look.
    Shown,
    /// Shown, where it is looked at after every round.
    Always(Scatter),
}

/// An estimate of a logarithm of a time over another's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The logarithm.
    pub mean: f64,
    /// Its standard error.
    pub error: f64,
    /// Rounds.
    pub rounds: usize,
}

impl Estimate {
    /// The reference over itself.
    pub const REFERENCE: Estimate = Estimate { mean: 0.0, error: 0.0, rounds: usize::MAX };

    /// Less than any.
    pub const NO_LOSS: Estimate = Estimate { mean: f64::NEG_INFINITY, ..Estimate::REFERENCE };

    /// Estimates logarithms that have nothing but their own scatter; no number of rounds brings the error below `floor`.
    #[must_use]
    pub fn of(logs: &[f64], floor: f64) -> Estimate {
        Middle::around_mean(logs).own(floor)
    }

    /// Standard errors that this trust is.
    fn errors(self, sure: Sure) -> f64 {
        self.error
            * match sure {
                Sure::Seems => 1.0,
                Sure::Likely => 1.6,
                Sure::Shown => 2.0,
                Sure::Always(scatter) => always(self.rounds, scatter),
            }
    }

    /// The least that it allows.
    #[must_use]
    pub fn low(self, sure: Sure) -> f64 {
        self.mean - self.errors(sure)
    }

    /// The most that it allows.
    #[must_use]
    pub fn high(self, sure: Sure) -> f64 {
        self.mean + self.errors(sure)
    }

    /// The estimate whose high end is this one's low end: it keeps a bound that this one is not shown to break.
    #[must_use]
    pub fn from_the_other_end(self, sure: Sure) -> Estimate {
        Estimate { mean: self.mean - 2.0 * self.errors(sure), ..self }
    }

    /// Returns whether it is shown to lie above a bound.
    #[must_use]
    pub fn is_above(self, bound: f64, sure: Sure) -> bool {
        self.low(sure) > bound
    }

    /// Returns whether it is shown to keep a bound.
    #[must_use]
    pub fn keeps(self, bound: f64, sure: Sure) -> bool {
        self.high(sure) <= bound
    }

    /// The ratio, with the interval of such a trust.
    #[must_use]
    pub fn ratio(self, sure: Sure) -> Ratio {
        let [median, low, high] = [self.mean, self.low(sure), self.high(sure)].map(f64::exp);
        Ratio { median, low, high, rounds: self.rounds }
    }

    /// The one that loses more, with its error.
    #[must_use]
    pub fn worse(self, other: Estimate) -> Estimate {
        if other.high(Sure::Seems) >= self.high(Sure::Seems) { other } else { self }
    }

    /// The weighted mean of several; NaN for none.
    pub fn mean(parts: impl Iterator<Item = (Estimate, f64)>) -> Estimate {
        let (mut sum, mut mean, mut variance, mut rounds) = (0.0, 0.0, 0.0, None);
        for (part, weight) in parts {
            sum += weight;
            mean += part.mean * weight;
            variance += (part.error * weight).powi(2);
            rounds = Some(rounds.map_or(part.rounds, |least: usize| least.min(part.rounds)));
        }
        let variance: f64 = variance;
        Estimate { mean: mean / sum, error: variance.sqrt() / sum, rounds: rounds.unwrap_or(0) }
    }

    /// Returns whether rounds have shown what they can: any number of further ones would take off a fifth of the error at
    /// most, the rest being the floor. How many that needs is for the scatter to say, which is the machine's.
    #[must_use]
    pub fn is_plenty(self, floor: f64) -> bool {
        // Their scatter is known.
        const ENOUGH: usize = 8;
        self.rounds >= ENOUGH && 0.8 * self.error <= floor
    }
}

/// Mean and scatter of rounds.
#[derive(Clone, Copy, Debug)]
pub struct Middle {
    /// Rounds.
    pub rounds: usize,
    mean: f64,
    scatter: f64,
}

impl Middle {
    /// The mean of logarithms, those far from the median moved nearer, and their scatter.
    #[must_use]
    pub fn of(logs: &[f64]) -> Middle {
        let middle = median(logs);
        let off = away(logs, middle);
        let mean = if logs.is_empty() { UNKNOWN } else { moved_nearer(logs, middle, median(&off)) };
        Middle { rounds: logs.len(), mean, scatter: deviation(&off) }
    }

    /// Mean as of [`Middle::of`], with the scatter around it.
    #[must_use]
    pub fn around_mean(logs: &[f64]) -> Middle {
        let middle = Middle::of(logs);
        Middle { scatter: deviation(&away(logs, middle.mean)), ..middle }
    }

    /// Distances of the logarithms from their mean.
    #[must_use]
    pub fn away(self, logs: &[f64]) -> Vec<f64> {
        away(logs, self.mean)
    }

    /// Mean and scatter where a tail is part of what is measured: the plain mean and its own scatter.
    #[must_use]
    pub fn with_tail(logs: &[f64]) -> Middle {
        if logs.len() < 4 {
            return Middle::of(logs);
        }
        let n = logs.len() as f64;
        let mean = logs.iter().sum::<f64>() / n;
        let squares: f64 = logs.iter().map(|log| (log - mean).powi(2)).sum();
        Middle { rounds: logs.len(), mean, scatter: (squares / (n - 1.0)).sqrt() }
    }

    /// With its own scatter alone.
    #[must_use]
    pub fn own(self, floor: f64) -> Estimate {
        self.estimate(self.scatter.powi(2), floor)
    }

    /// With the scatter of other comparisons on the same machine beside its own.
    #[must_use]
    pub fn pooled(self, pooled: f64, floor: f64) -> Estimate {
        match self.rounds {
            0 => Estimate { mean: self.mean, error: UNKNOWN, rounds: 0 },
            1..4 => self.estimate(pooled.powi(2), floor),
            _ => self.beside(pooled, floor),
        }
    }

    /// Estimate as of [`Middle::pooled`], whatever the number of rounds.
    #[must_use]
    pub fn beside(self, pooled: f64, floor: f64) -> Estimate {
        self.estimate(0.6 * pooled.powi(2) + 0.4 * self.scatter.powi(2), floor)
    }

    fn estimate(self, variance: f64, floor: f64) -> Estimate {
        let Middle { rounds, mean, .. } = self;
        let error = (variance / rounds.max(1) as f64 + floor.powi(2)).sqrt();
        Estimate { mean, error, rounds }
    }
}

/// A logarithm so large, and an error, that nothing is shown by it.
const UNKNOWN: f64 = 9.0;

/// Distances of logarithms from their middle.
#[must_use]
pub fn away(logs: &[f64], middle: f64) -> Vec<f64> {
    logs.iter().map(|log| (log - middle).abs()).collect()
}

/// The standard deviation that such distances show: 1.48 of their median is a normal's, of few values it falls short by
/// some 15 %.
#[must_use]
pub fn deviation(away: &[f64]) -> f64 {
    1.48 * 1.15 * median(away)
}

/// The mean of logarithms, those far from the middle moved nearer, so that one disturbed round decides nothing; of fewer than
/// five that cannot be told, and it is the middle.
fn moved_nearer(logs: &[f64], middle: f64, away: f64) -> f64 {
    if logs.len() < 5 {
        return middle;
    }
    let most = (2.0 * 1.48 * away).max(0.01);
    logs.iter().map(|log| log.clamp(middle - most, middle + most)).sum::<f64>() / logs.len() as f64
}

/// A bound on a loss, and the trust by which it is held. The rounds are looked at after each.
#[derive(Clone, Copy, Debug)]
pub struct Guard {
    /// The loss that is allowed, as a logarithm.
    allowed: f64,
    /// Standard errors beyond it from which on a loss is shown.
    shown_by: f64,
    /// True if it must be shown to be kept; else it holds until it is shown to be broken.
    is_to_prove: bool,
}

/// The ruling of a tuning's referee on a bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ruling {
    /// Not slower than is allowed.
    Kept,
    /// Slower than that: the decision was taken back there.
    Lost,
    /// Time ran out first: the decision was taken back.
    Undecided,
}

impl Guard {
    /// A bound that a candidate must be shown to keep.
    #[must_use]
    pub fn to_prove(allowed: f64) -> Guard {
        Guard { allowed, shown_by: 2.0, is_to_prove: true }
    }

    /// A bound that a candidate keeps until it is shown to break it.
    #[must_use]
    pub fn until_shown(allowed: f64) -> Guard {
        Guard { is_to_prove: false, ..Guard::to_prove(allowed) }
    }

    /// Bound of [`Guard::until_shown`] on a candidate that was refereed before, at other times.
    #[must_use]
    pub fn in_force(allowed: f64) -> Guard {
        Guard { shown_by: 3.0, ..Guard::until_shown(allowed) }
    }

    /// The ruling on an estimate; `None` where more rounds may tell, unless this is the `last` look.
    #[must_use]
    pub fn rules(self, seen: Estimate, last: bool) -> Option<Ruling> {
        // Somebody else's burst spans some rounds: what looks lost is looked at again before it is.
        const SURE_ROUNDS: usize = 4;
        const MOST_ROUNDS: usize = 12;
        let Guard { allowed, shown_by, is_to_prove } = self;
        let is_lost = |kept: bool| if kept { Ruling::Kept } else { Ruling::Lost };
        if seen.mean + 2.5 * seen.error <= allowed {
            Some(Ruling::Kept)
        } else if seen.rounds >= SURE_ROUNDS && seen.mean - shown_by * seen.error > allowed {
            Some(Ruling::Lost)
        } else if (last || seen.rounds >= MOST_ROUNDS) && is_to_prove {
            Some(is_lost(seen.keeps(allowed, Sure::Seems)))
        } else if last || seen.rounds >= MOST_ROUNDS {
            Some(is_lost(!seen.is_above(allowed, Sure::Seems)))
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_width_is_that_of_the_formula() {
        let near = |found: f64, wanted: f64| assert!((found - wanted).abs() < 1e-3, "{found}");
        near(always(1, Scatter::Pooled), 3.6564);
        near(always(100, Scatter::Pooled), 3.2731);
        near(always(0, Scatter::Pooled), 3.6564);
        near(always(3, Scatter::Own) / always(3, Scatter::Pooled), 2.2);
    }

    #[test]
    fn middles_and_scatter_are_those_of_most_values() {
        let near =
            |found: f64, wanted: f64| assert!((found - wanted).abs() < 1e-6, "{found}, {wanted}");
        near(deviation(&away(&[-1.0, 1.0, 3.0], 0.0)), 1.702);
        let mean = |logs: &[f64]| Estimate::of(logs, 0.0).mean;
        // Few are their median; of more, what is far counts as near.
        near(mean(&[0.0, 0.01, 5.0, 0.02]), 0.015);
        near(mean(&[0.0, 0.01, -0.01, 0.02, 5.0]), 0.01192);
        near(mean(&[1.0, 1.0, 1.0, 1.0, 2.0]), 1.002);
        near(mean(&[1.0, 1.0, 1.0, 1.0, -2.0]), 0.998);
    }

    #[test]
    fn eight_rounds_are_plenty_when_the_floor_is_most_of_their_error() {
        let is_plenty = |rounds, error, floor| {
            Estimate { rounds, error, ..Estimate::REFERENCE }.is_plenty(floor)
        };
        assert!(is_plenty(8, 0.0049, 0.004) && is_plenty(9, 0.0, 0.004));
        assert!(!is_plenty(8, 0.0051, 0.004) && !is_plenty(7, 0.0, 0.004));
        let has_plenty = |logs: &[f64]| Middle::of(logs).own(0.004).is_plenty(0.004);
        assert!(has_plenty(&[0.1; 8]) && !has_plenty(&[0.1; 7]) && !has_plenty(&[]));
        let apart = |by: f64| [0.1 - by, 0.1 + by].repeat(8);
        assert!(has_plenty(&apart(0.006)) && !has_plenty(&apart(0.008)));
        assert!(has_plenty(&apart(0.008).repeat(2)), "as many again halve its square");
    }

    #[test]
    fn an_estimate_leans_on_the_scatter_of_others_and_never_falls_below_the_floor() {
        let near = |rounds: &[f64], floor: f64, variance: f64| {
            let found = Middle::of(rounds).pooled(0.1, floor);
            assert!((found.mean - 0.2).abs() < 1e-9, "{found:?}");
            assert!((found.error - variance.sqrt()).abs() < 1e-9, "{found:?}");
        };
        let nothing = Middle::of(&[]).pooled(0.1, 0.1);
        assert!(nothing.rounds == 0 && nothing.mean > 1.0);
        near(&[0.2; 3], 0.03, 0.01 / 3.0 + 0.0009);
        near(&[0.2; 4], 0.03, 0.6 * 0.01 / 4.0 + 0.0009);
        let rare = Middle::with_tail(&[0.0, 0.0, 0.0, -2.0]).pooled(0.0, 0.0);
        assert!((rare.mean + 0.5).abs() < 1e-9 && rare.error > 0.3, "{rare:?}");
        let own = 1.702 * 0.02;
        near(&[0.18, 0.18, 0.22, 0.22], 0.0, (0.006 + 0.4 * own * own) / 4.0);
    }

    #[test]
    fn errors_of_a_mean_add_by_their_squares() {
        let of = |mean, error, rounds| Estimate { mean, error, rounds };
        let both = [(of(0.1, 0.3, 5), 1.0), (of(0.3, 0.4, 4), 1.0)];
        let found = Estimate::mean(both.into_iter());
        assert!((found.mean - 0.2).abs() < 1e-9 && (found.error - 0.25).abs() < 1e-9, "{found:?}");
        assert_eq!(found.rounds, 4);
        assert!(Estimate::mean(std::iter::empty()).mean.is_nan());
    }

    #[test]
    fn a_bound_is_kept_broken_or_looked_at_again() {
        let seen = |mean, rounds| Estimate { mean, error: 0.01, rounds };
        let (kept, lost) = (Some(Ruling::Kept), Some(Ruling::Lost));
        let [prove, shown, in_force] =
            [Guard::to_prove, Guard::until_shown, Guard::in_force].map(|guard| guard(0.02));
        for guard in [prove, shown, in_force] {
            assert_eq!(guard.rules(seen(-0.006, 3), false), kept);
            assert_eq!(guard.rules(seen(0.02, 11), false), None);
            assert_eq!(guard.rules(seen(0.06, 3), false), None, "a burst");
            assert_eq!(guard.rules(seen(0.06, 4), false), lost);
        }
        let close = seen(0.045, 4);
        assert_eq!((prove.rules(close, false), in_force.rules(close, false)), (lost, None));
        for (last, rounds) in [(true, 3), (false, 12)] {
            let rules = |guard: Guard| guard.rules(seen(0.02, rounds), last);
            assert_eq!((rules(prove), rules(shown), rules(in_force)), (lost, kept, kept));
        }
    }
}
