//! Agreement of two choices, as far as was measured: the tunings of one machine (`xtask agree`) and of
//! the hosts of a fleet (`cachewise.fleet`).

use crate::margin;
use crate::order::median;

/// Times that differ by no more than this count as the same choice.
pub const TOLERANCE: f64 = margin::HEADLINE;

/// Standard errors in half a 95 % interval.
const WIDE: f64 = 1.96;

/// Standard error of a logarithm of which there are fewer than three rounds, and the least of any: a tuning's own luck.
const FEW: f64 = 0.1;
const FLOOR: f64 = margin::LAUNCHES;

/// Logarithm of a time over another's, and its standard error.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LogRatio {
    /// The logarithm.
    pub log: f64,
    /// Its standard error.
    pub error: f64,
}

impl LogRatio {
    /// The reference over itself.
    pub const REFERENCE: LogRatio = LogRatio { log: 0.0, error: 0.0 };

    /// The median over the rounds that have both times; `None` where none has.
    #[must_use]
    pub fn of_rounds(times: &[f64], reference: &[f64]) -> Option<LogRatio> {
        let is_time = |time: &f64| *time > 0.0 && time.is_finite();
        let pairs =
            times.iter().zip(reference).filter(|(one, other)| is_time(one) && is_time(other));
        let logs: Vec<f64> = pairs.map(|(one, other)| (one / other).ln()).collect();
        if logs.is_empty() {
            return None;
        }
        let log = median(&logs);
        // A normal's standard deviation is 1.48 of its median absolute deviation, and the median's error 1.25 of
        // the mean's.
        let off: Vec<f64> = logs.iter().map(|other| (other - log).abs()).collect();
        let error = match logs.len() {
            ..3 => FEW,
            rounds => 1.25 * 1.48 * median(&off) / (rounds as f64).sqrt(),
        };
        Some(LogRatio { log, error: error.max(FLOOR) })
    }

    /// The mean over the states in which something was measured; `None` for none.
    #[must_use]
    pub fn mean(states: &[LogRatio]) -> Option<LogRatio> {
        let many = states.len() as f64;
        let log = states.iter().map(|state| state.log).sum::<f64>() / many;
        let error = states.iter().map(|state| state.error.powi(2)).sum::<f64>().sqrt() / many;
        (!states.is_empty()).then_some(LogRatio { log, error })
    }

    /// Ratio of this candidate to another, both given against the same reference.
    #[must_use]
    pub fn over(self, other: LogRatio) -> LogRatio {
        LogRatio { log: self.log - other.log, error: self.error.hypot(other.error) }
    }

    /// Returns whether its 95 % interval allows that the time is longer by [`TOLERANCE`] at most.
    #[must_use]
    pub fn may_lose_nothing(self) -> bool {
        self.log - WIDE * self.error <= TOLERANCE.ln_1p()
    }

    /// Returns whether its 95 % interval allows that the times differ by [`TOLERANCE`] at most.
    #[must_use]
    pub fn may_be_level(self) -> bool {
        LogRatio { log: self.log.abs(), ..self }.may_lose_nothing()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(found: Option<LogRatio>, log: f64, error: f64) {
        let found = found.expect("rounds");
        assert!((found.log - log).abs() < 1e-9 && (found.error - error).abs() < 1e-9, "{found:?}");
    }

    #[test]
    fn rounds_without_both_times_are_left_out() {
        let e = 1f64.exp();
        assert_eq!(LogRatio::of_rounds(&[f64::NAN, 1.0, 0.0], &[1.0, f64::NAN, 1.0]), None);
        assert_eq!(LogRatio::of_rounds(&[1.0], &[]), None);
        near(LogRatio::of_rounds(&[e, f64::NAN, e], &[1.0, 1.0, 1.0]), 1.0, FEW);
        near(LogRatio::of_rounds(&[e; 3], &[1.0; 3]), 1.0, FLOOR);
        let apart: Vec<f64> = [-0.2, -0.1, 0.1, 0.2].map(f64::exp).to_vec();
        near(LogRatio::of_rounds(&apart, &[1.0; 4]), 0.0, 1.25 * 1.48 * 0.15 / 2.0);
    }

    #[test]
    fn errors_add_by_their_squares() {
        let of = |log, error| LogRatio { log, error };
        near(LogRatio::mean(&[of(0.1, 0.3), of(0.3, 0.4)]), 0.2, 0.25);
        assert_eq!(LogRatio::mean(&[]), None);
        near(Some(of(0.3, 0.3).over(of(0.1, 0.4))), 0.2, 0.5);
        assert_eq!(of(0.3, 0.2).over(LogRatio::REFERENCE), of(0.3, 0.2));
    }

    #[test]
    fn an_interval_allows_what_lies_in_it() {
        let of = |log, error| LogRatio { log, error };
        let border = 1.03f64.ln();
        assert!(of(border - 1e-9, 0.0).may_lose_nothing() && of(-9.0, 0.0).may_lose_nothing());
        assert!(!of(border + 1e-9, 0.0).may_lose_nothing());
        assert!(of(border + 0.0195, 0.01).may_lose_nothing());
        assert!(!of(border + 0.0197, 0.01).may_lose_nothing());
        assert!(of(-border - 0.0195, 0.01).may_be_level() && !of(-9.0, 0.0).may_be_level());
        assert!(!of(f64::NAN, 0.01).may_be_level() && !of(f64::NAN, 0.01).may_lose_nothing());
    }
}
