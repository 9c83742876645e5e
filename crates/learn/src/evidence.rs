//! Two blocks of calls make a pair, one block each way; what do the pairs say?
//!
//! Which way comes first in a pair is a coin's choice. If the way makes no difference, the two blocks
//! could as well have changed names, so the difference of their means is symmetric around zero given
//! its size, however the program's times are distributed and whatever they depend on. Then
//! `1 + tanh(r d)` has the expectation 1 for every rate `r`, and so has the product over all pairs:
//! the **wealth** of somebody who bets against "no difference" (de la Pena 1999 for the exponential
//! form; `1 + tanh x = e^x / cosh x`). By Ville's inequality wealth exceeds `1 / error` with
//! probability `error` at most, at whichever pair one stops to look. One disturbed pair moves it by
//! a factor of two at most.
//!
//! Rates suited to every size of difference are bet on in parallel, with equal shares. The unit of
//! a difference is the mean block seen before it, so that the rates need no unit.
//!
//! The bets say that there is a difference; costs are means. The cheaper way has to be the cheaper
//! one by both, which matters where a rare, expensive reader makes the usual pair say one thing and
//! the mean the other.

use crate::Way;

/// The probability of finding a difference where there is none, in each direction.
pub const ERROR: f64 = 0.000_5;

/// Bets per unit of difference: for differences from half an interval down to about 1 %.
const RATES: [f64; 4] = [2.0, 8.0, 32.0, 128.0];

/// A difference of more blocks than this counts as so many: a process that was stopped for a
/// second says nothing about copies.
const MOST: f64 = 8.0;

/// Differences below this share of the cost are none.
pub const LEAST_EFFECT: f64 = 0.005;

/// Count, sum and sum of squares.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Moments {
    /// How many.
    pub count: u32,
    /// Their sum.
    pub sum: f64,
    /// The sum of their squares.
    pub squares: f64,
}

impl Moments {
    /// Nothing yet.
    pub const NONE: Moments = Moments { count: 0, sum: 0.0, squares: 0.0 };

    /// Takes a value in.
    pub fn add(&mut self, value: f64) {
        self.count += 1;
        self.sum += value;
        self.squares += value * value;
    }

    /// The mean; 0 of nothing.
    #[must_use]
    pub fn mean(&self) -> f64 {
        if self.count == 0 { 0.0 } else { self.sum / f64::from(self.count) }
    }

    /// The standard error of the mean; 0 below two values.
    #[must_use]
    pub fn error(&self) -> f64 {
        if self.count < 2 {
            return 0.0;
        }
        let count = f64::from(self.count);
        let variance = (self.squares - self.sum * self.sum / count) / (count - 1.0);
        libm::sqrt(variance.max(0.0) / count)
    }

    /// From a mean and its error, as [`mean`](Moments::mean) and [`error`](Moments::error) gave them.
    #[must_use]
    pub fn restore(count: u32, mean: f64, error: f64) -> Moments {
        let n = f64::from(count);
        let variance = error * error * n;
        Moments { count, sum: mean * n, squares: variance * (n - 1.0).max(0.0) + mean * mean * n }
    }
}

/// What the pairs of one trial say.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Evidence {
    /// Block means by way, in the caller's unit of time.
    pub costs: [Moments; 2],
    /// Temporal less non-temporal, in the same unit.
    pub difference: Moments,
    /// Logarithm of the wealth: first of those who bet that temporal is dearer.
    wealth: [[f64; RATES.len()]; 2],
}

impl Default for Evidence {
    fn default() -> Evidence {
        Evidence::NONE
    }
}

impl Evidence {
    /// Nothing yet.
    pub const NONE: Evidence = Evidence {
        costs: [Moments::NONE; 2],
        difference: Moments::NONE,
        wealth: [[0.0; RATES.len()]; 2],
    };

    /// Takes in a pair: the mean interval of its temporal and of its non-temporal block.
    pub fn add(&mut self, temporal: f64, non_temporal: f64) {
        let [t, n] = self.costs;
        let unit = (t.mean() + n.mean()) / 2.0;
        self.costs[0].add(temporal);
        self.costs[1].add(non_temporal);
        if unit <= 0.0 {
            // The first pair is there for its unit; its difference has none to bet in.
            return;
        }
        let difference = ((temporal - non_temporal) / unit).clamp(-MOST, MOST);
        self.difference.add(difference * unit);
        for (side, sign) in self.wealth.iter_mut().zip([1.0, -1.0]) {
            for (wealth, rate) in side.iter_mut().zip(RATES) {
                // ln(1 + tanh x) = ln 2 - ln(1 + e^-2x).
                let bet = (sign * rate * difference).clamp(-20.0, 20.0);
                *wealth += core::f64::consts::LN_2 - libm::log1p(libm::exp(-2.0 * bet));
            }
        }
    }

    /// How many pairs there are.
    #[must_use]
    pub fn pairs(&self) -> u32 {
        self.costs[0].count
    }

    /// Logarithm of the wealth of those who bet that this way is the cheaper one.
    #[must_use]
    pub fn for_way(&self, cheaper: Way) -> f64 {
        let side = &self.wealth[cheaper.other() as usize];
        let best = side.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let shares: f64 = side.iter().map(|wealth| libm::exp(wealth - best)).sum();
        best + libm::log(shares / RATES.len() as f64)
    }

    /// By how much of the mean cost the ways differ; positive where temporal is dearer.
    #[must_use]
    pub fn effect(&self) -> f64 {
        let mean = (self.costs[0].mean() + self.costs[1].mean()) / 2.0;
        if mean > 0.0 { self.difference.mean() / mean } else { 0.0 }
    }

    /// The way whose mean is lower.
    #[must_use]
    pub fn leaning(&self) -> Way {
        if self.difference.sum > 0.0 { Way::NonTemporal } else { Way::Temporal }
    }

    /// The cheaper way, if the error of saying so is at most `error` and the difference is worth
    /// the name.
    #[must_use]
    pub fn cheaper(&self, error: f64) -> Option<Way> {
        let way = self.leaning();
        let certain = self.for_way(way) >= -libm::log(error);
        (certain && self.effect().abs() >= LEAST_EFFECT).then_some(way)
    }

    /// The wealth in thousandths of a natural logarithm's unit, to be kept.
    #[must_use]
    pub fn kept_wealth(&self) -> [i64; 2 * RATES.len()] {
        let mut kept = [0; 2 * RATES.len()];
        for (kept, wealth) in kept.iter_mut().zip(self.wealth.iter().flatten()) {
            *kept = (wealth * 1000.0) as i64;
        }
        kept
    }

    /// What was kept.
    #[must_use]
    pub fn restore(
        costs: [Moments; 2],
        difference: Moments,
        kept: [i64; 2 * RATES.len()],
    ) -> Evidence {
        let mut evidence = Evidence { costs, difference, ..Evidence::NONE };
        for (wealth, kept) in evidence.wealth.iter_mut().flatten().zip(kept) {
            *wealth = kept as f64 / 1000.0;
        }
        evidence
    }
}

/// How many numbers [`Evidence::kept_wealth`] has.
pub const KEPT: usize = 2 * RATES.len();
