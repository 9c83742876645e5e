//! Estimates from few rounds: a mean, its error, and the trust in both.

use super::plan::View;
use cachewise_judge::interval::{self, Scatter};
use cachewise_judge::margin;
use cachewise_measure::stats::median;

/// An arm may be slower than libc by this much in no state, as a logarithm: 2 %, of which 1 % is left
/// for what a minute cannot see until the promise of 3 % is broken.
pub(super) const GUARD: f64 = margin::GUARD;

/// Error that no number of rounds removes: layouts and launches differ by this much (simulation page).
pub(super) const FLOOR: f64 = 0.004;

/// Standard errors by which an arm keeps the guard, or is shown to break it; with one it would be in one tuning
/// and out in the next too often. One that is in use is out only where it is shown to break it.
pub(super) const NEW: f64 = 1.6;

/// An estimate of a logarithm of time over libc's.
#[derive(Clone, Copy, Debug)]
pub(super) struct Estimate {
    pub mean: f64,
    pub error: f64,
    pub rounds: usize,
}

impl Estimate {
    pub(super) const LIBC: Estimate = Estimate { mean: 0.0, error: 0.0, rounds: usize::MAX };

    /// Estimates values that have nothing but their own scatter.
    pub(super) fn of(values: &[f64], floor: f64) -> Estimate {
        let mean = robust_mean(values);
        let variance = scatter(values, mean).powi(2);
        let error = (variance / values.len() as f64 + floor.powi(2)).sqrt();
        Estimate { mean, error, rounds: values.len() }
    }

    /// Estimate that is held against the guard in a view: where nothing need be proven, the other end of the interval.
    pub(super) fn judged(self, view: &View) -> Estimate {
        let less = if view.proven { 0.0 } else { 2.0 * NEW * self.error };
        Estimate { mean: self.mean - less, ..self }
    }

    /// The one that loses more, with its error.
    pub(super) fn worse(self, other: Estimate) -> Estimate {
        if other.mean + other.error >= self.mean + self.error { other } else { self }
    }
}

/// Mean and scatter of an arm's own rounds.
#[derive(Clone, Copy)]
pub(super) struct Middle {
    pub rounds: usize,
    mean: f64,
    scatter: f64,
}

impl Middle {
    pub(super) fn of(rounds: &[f64]) -> Middle {
        let middle = median(rounds);
        let away = median(&off(rounds, middle));
        let mean = if rounds.is_empty() { 9.0 } else { moved_nearer(rounds, middle, away) };
        Middle { rounds: rounds.len(), mean, scatter: deviation_of(away) }
    }

    /// The same where a tail is part of what is measured: the plain mean and its own scatter.
    pub(super) fn with_tail(rounds: &[f64]) -> Middle {
        if rounds.len() < 4 {
            return Middle::of(rounds);
        }
        let n = rounds.len() as f64;
        let mean = rounds.iter().sum::<f64>() / n;
        let squares: f64 = rounds.iter().map(|value| (value - mean).powi(2)).sum();
        Middle { rounds: rounds.len(), mean, scatter: (squares / (n - 1.0)).sqrt() }
    }

    /// With its own scatter alone.
    pub(super) fn own(self, floor: f64) -> Estimate {
        let Middle { rounds, mean, scatter } = self;
        let error = (scatter.powi(2) / rounds.max(1) as f64 + floor.powi(2)).sqrt();
        Estimate { mean, error, rounds }
    }

    /// With the scatter of others.
    pub(super) fn pooled(self, pooled: f64, floor: f64) -> Estimate {
        let Middle { rounds, mean, scatter } = self;
        let variance = match rounds {
            0 => return Estimate { mean, error: 9.0, rounds },
            1..4 => pooled.powi(2),
            _ => 0.6 * pooled.powi(2) + 0.4 * scatter.powi(2),
        };
        let error = (variance / rounds as f64 + floor.powi(2)).sqrt();
        Estimate { mean, error, rounds }
    }
}

/// The width of an interval in standard errors that holds at every moment of a race, where the error is that of all arms
/// together.
pub(super) fn always(rounds: usize) -> f64 {
    interval::always(rounds, Scatter::Pooled)
}

/// Returns whether rounds have shown what they can: any number of further ones would take off a fifth of the
/// error at most, the rest being the floor. How many that needs is for the scatter to say, which is the
/// machine's.
pub(super) fn is_plenty(rounds: usize, error: f64, floor: f64) -> bool {
    // Their scatter is known.
    const ENOUGH: usize = 8;
    rounds >= ENOUGH && 0.8 * error <= floor
}

/// The same of a comparison of its own: its rounds as logarithms.
pub(super) fn has_plenty(log_ratios: &[f64]) -> bool {
    let variance = scatter(log_ratios, median(log_ratios)).powi(2) / log_ratios.len() as f64;
    is_plenty(log_ratios.len(), (variance + FLOOR.powi(2)).sqrt(), FLOOR)
}

/// How far values lie from their middle, as a standard deviation.
pub(super) fn scatter(values: &[f64], middle: f64) -> f64 {
    deviation(&off(values, middle))
}

/// The same of how far they lie from it.
pub(super) fn deviation(off: &[f64]) -> f64 {
    deviation_of(median(off))
}

/// The same of the median of that.
fn deviation_of(away: f64) -> f64 {
    // 1.48 is a normal's; medians of few values fall short of it by some 15 %.
    1.48 * 1.15 * away
}

/// How far each value lies from their middle.
pub(super) fn off(values: &[f64], middle: f64) -> Vec<f64> {
    values.iter().map(|value| (value - middle).abs()).collect()
}

/// The mean of values, those far from the median moved nearer.
pub(super) fn robust_mean(values: &[f64]) -> f64 {
    let middle = median(values);
    moved_nearer(values, middle, median(&off(values, middle)))
}

fn moved_nearer(values: &[f64], middle: f64, away: f64) -> f64 {
    if values.len() < 5 {
        return middle;
    }
    let most = (2.0 * 1.48 * away).max(0.01);
    let sum: f64 = values.iter().map(|v| v.clamp(middle - most, middle + most)).sum();
    sum / values.len() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn middles_and_scatter_are_those_of_most_values() {
        let near =
            |found: f64, wanted: f64| assert!((found - wanted).abs() < 1e-6, "{found}, {wanted}");
        near(scatter(&[-1.0, 1.0, 3.0], 0.0), 1.702);
        // Few are their median; of more, what is far counts as near.
        near(robust_mean(&[0.0, 0.01, 5.0, 0.02]), 0.015);
        near(robust_mean(&[0.0, 0.01, -0.01, 0.02, 5.0]), 0.01192);
        near(robust_mean(&[1.0, 1.0, 1.0, 1.0, 2.0]), 1.002);
        near(robust_mean(&[1.0, 1.0, 1.0, 1.0, -2.0]), 0.998);
    }

    #[test]
    fn eight_rounds_are_plenty_when_the_floor_is_most_of_their_error() {
        assert!(is_plenty(8, 0.0049, 0.004) && is_plenty(9, 0.0, 0.004));
        assert!(!is_plenty(8, 0.0051, 0.004) && !is_plenty(7, 0.0, 0.004));
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
}
