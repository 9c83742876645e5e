//! Two blocks of calls make a pair, one block each way; what do the pairs say?
//!
//! Which way comes first in a pair is a coin's choice. If the way makes no difference, the two blocks
//! could as well have changed names, so the difference of their means is symmetric around zero given
//! its size, however the program's times are distributed and whatever they depend on. Then
//! `1 + s tanh(d / u)` has the expectation 1 for every stake `s` and every unit `u` that does not
//! depend on the difference's sign, and so has the product over all pairs: the **wealth** of somebody
//! who bets against "no difference". By Ville's inequality wealth exceeds `1 / error` with
//! probability `error` at most, at whichever pair one stops to look (Ramdas et al. 2023, "Game-theoretic
//! statistics and safe anytime-valid inference"). A disturbed pair at most doubles it, and takes no
//! more than the stake.
//!
//! Small, middling and large stakes are bet in parallel with equal shares: small ones live through
//! much noise, large ones are quick where there is little. The unit is half of what the differences
//! of such blocks usually come to, so a program's bursts, however long, are pairs like others.
//!
//! The bets say that there is a difference; costs are means. The cheaper way has to be the cheaper
//! one by both, which matters where a rare, expensive reader makes the usual pair say one thing and
//! the mean the other. But a mean over bursts says nothing for a long time. What a call can do to
//! an interval is bounded: it reads and writes so many bytes, and evicts as many at most. So a
//! difference beyond that bound ([`MOST_PER_BYTE`]) counts as the bound, and what may hide behind
//! it ([`HIDDEN_PER_BYTE`]) is held against the mean.

use crate::Way;

/// The probability of finding a difference where there is none, in each direction.
pub const ERROR: f64 = 0.002;

/// Shares of the wealth at stake in each pair.
const STAKES: [f64; 3] = [0.15, 0.4, 0.95];

/// The unit of a bet, in usual differences.
const UNIT: f64 = 0.5;

/// The usual difference is the mean of about so many, none of which counts for more than
/// [`OUTLIER`] times the others' mean.
const REMEMBERED: u32 = 32;
const OUTLIER: f64 = 3.0;
const FIRST_FEW: u32 = 4;

/// The most that the wrong way can cost, per byte of a call: its destination is read, and as many
/// bytes that it evicted are, at half a GB/s each. In ns.
pub const MOST_PER_BYTE: f64 = 1.0;

/// What it may cost where a difference is beyond that for other reasons: at 4 GB/s. In ns.
pub const HIDDEN_PER_BYTE: f64 = 0.25;

/// Lengths of blocks that are told apart: each has a usual difference of its own.
pub const LENGTHS: usize = 5;

/// Differences below this share of the cost are none.
pub const LEAST_EFFECT: f64 = 0.005;

/// Intervals before the work in them is taken into account; one of more times the mean is a
/// disturbance, and does not count there.
const WORK_KNOWN: f64 = 8.0;
const WORK_OUTLIER: f64 = 4.0;

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
        self.count = self.count.saturating_add(1);
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

/// What differences of blocks of one length usually come to, whichever way they point.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Usual {
    /// How many there were, as far as that matters.
    pub count: u32,
    /// In the caller's unit of time.
    pub size: f64,
}

impl Usual {
    /// None yet.
    pub const NONE: Usual = Usual { count: 0, size: 0.0 };

    fn add(&mut self, size: f64) {
        self.count = (self.count + 1).min(REMEMBERED);
        // The first few may be nothing by accident: then all others would be outliers.
        let few = self.count < FIRST_FEW || self.size <= 0.0;
        let size = if few { size } else { size.min(OUTLIER * self.size) };
        self.size += (size - self.size) / f64::from(self.count);
    }
}

/// What the work in an interval, in bytes of calls, has to do with its length: sums over intervals.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Work {
    count: f64,
    bytes: f64,
    time: f64,
    squares: f64,
    products: f64,
}

impl Work {
    pub(crate) const NONE: Work =
        Work { count: 0.0, bytes: 0.0, time: 0.0, squares: 0.0, products: 0.0 };

    pub(crate) fn add(&mut self, bytes: f64, time: f64) {
        if self.count >= WORK_KNOWN && time * self.count > WORK_OUTLIER * self.time {
            return;
        }
        self.count += 1.0;
        self.bytes += bytes;
        self.time += time;
        self.squares += bytes * bytes;
        self.products += bytes * time;
    }

    /// ns per byte: the slope of the line through the intervals, less what a few may exaggerate.
    pub(crate) fn per_byte(&self) -> f64 {
        let spread = self.squares - self.bytes * self.bytes / self.count;
        // Sizes that are all the same leave what rounding leaves.
        if self.count < WORK_KNOWN || spread <= 1e-9 * self.squares {
            return 0.0;
        }
        let slope = (self.products - self.bytes * self.time / self.count) / spread;
        slope * self.count / (self.count + WORK_KNOWN / 2.0)
    }
}

/// A pair: the mean interval of its temporal and of its non-temporal block.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pair {
    /// Of the temporal block, in ns.
    pub temporal: f64,
    /// Of the non-temporal one, in ns.
    pub non_temporal: f64,
    /// What would have to be taken from the first less the second, were both blocks given the same
    /// work.
    pub other_work: f64,
    /// Bytes of a call.
    pub bytes: f64,
    /// Which of the [`LENGTHS`] the blocks have.
    pub length: usize,
}

impl Pair {
    /// Temporal less non-temporal, for the same work.
    #[must_use]
    pub fn difference(&self) -> f64 {
        self.temporal - self.non_temporal - self.other_work
    }
}

/// What the pairs of one trial say.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Evidence {
    /// Block means by way, in ns.
    pub costs: [Moments; 2],
    /// Temporal less non-temporal, for the same work and within what a call can do.
    pub difference: Moments,
    /// The sum of what may hide behind differences beyond that.
    hidden: f64,
    /// By length of the blocks.
    usual: [Usual; LENGTHS],
    /// Logarithm of the wealth: first of those who bet that temporal is dearer.
    wealth: [[f64; STAKES.len()]; 2],
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
        hidden: 0.0,
        usual: [Usual::NONE; LENGTHS],
        wealth: [[0.0; STAKES.len()]; 2],
    };

    /// Takes in a pair.
    ///
    /// # Panics
    /// Where its length is none of the [`LENGTHS`].
    pub fn add(&mut self, pair: &Pair) {
        self.costs[0].add(pair.temporal);
        self.costs[1].add(pair.non_temporal);
        let difference = pair.difference();
        let most = MOST_PER_BYTE * pair.bytes;
        if difference.abs() > most {
            self.hidden += HIDDEN_PER_BYTE * pair.bytes;
        }
        self.difference.add(difference.clamp(-most, most));
        // The size of this difference may be in it: of the bet only its sign must not be known.
        let usual = &mut self.usual[pair.length];
        usual.add(difference.abs());
        if usual.size <= 0.0 {
            return;
        }
        let score = libm::tanh(difference / (UNIT * usual.size));
        for (side, sign) in self.wealth.iter_mut().zip([1.0, -1.0]) {
            for (wealth, stake) in side.iter_mut().zip(STAKES) {
                *wealth += libm::log1p(sign * stake * score);
            }
        }
    }

    /// How many pairs there are.
    #[must_use]
    pub fn pairs(&self) -> u32 {
        self.costs[0].count
    }

    /// What differences of blocks of that length usually come to.
    ///
    /// # Panics
    /// Where it is none of the [`LENGTHS`].
    #[must_use]
    pub fn usual(&self, length: usize) -> Usual {
        self.usual[length]
    }

    /// Logarithm of the wealth of those who bet that this way is the cheaper one.
    #[must_use]
    pub fn for_way(&self, cheaper: Way) -> f64 {
        let side = &self.wealth[cheaper.other() as usize];
        let best = side.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let shares: f64 = side.iter().map(|wealth| libm::exp(wealth - best)).sum();
        best + libm::log(shares / STAKES.len() as f64)
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

    /// The cheaper way, if the error of saying so is at most `error`, the difference is worth the
    /// name, and more than what may hide.
    #[must_use]
    pub fn cheaper(&self, error: f64) -> Option<Way> {
        let way = self.leaning();
        let certain = self.for_way(way) >= -libm::log(error);
        let worth = self.effect().abs() >= LEAST_EFFECT;
        (certain && worth && self.difference.sum.abs() >= self.hidden).then_some(way)
    }

    /// What is kept beyond the moments: what may hide in ns, the wealth in thousandths of a natural
    /// logarithm's unit, and of each length the count and size in ps of the usual difference.
    #[must_use]
    pub fn kept(&self) -> [i64; KEPT] {
        let mut kept = [0; KEPT];
        kept[0] = self.hidden as i64;
        let wealth = self.wealth.iter().flatten().map(|wealth| (wealth * 1000.0) as i64);
        let usual = self.usual.iter().flat_map(|usual| {
            let picoseconds = (usual.size * 1000.0) as i64;
            [i64::from(usual.count), picoseconds]
        });
        for (kept, value) in kept[1..].iter_mut().zip(wealth.chain(usual)) {
            *kept = value;
        }
        kept
    }

    /// What was kept.
    #[must_use]
    pub fn restore(costs: [Moments; 2], difference: Moments, kept: &[i64; KEPT]) -> Evidence {
        let mut evidence = Evidence { costs, difference, ..Evidence::NONE };
        // A file may say anything.
        evidence.hidden = kept[0].max(0) as f64;
        let (wealth, usual) = kept[1..].split_at(2 * STAKES.len());
        for (wealth, kept) in evidence.wealth.iter_mut().flatten().zip(wealth) {
            *wealth = (*kept as f64 / 1000.0).clamp(-MOST_KEPT, MOST_KEPT);
        }
        for (usual, kept) in evidence.usual.iter_mut().zip(usual.chunks_exact(2)) {
            let count = kept[0].clamp(0, i64::from(REMEMBERED)) as u32;
            *usual = Usual { count, size: kept[1].max(0) as f64 / 1000.0 };
        }
        evidence
    }
}

/// The largest logarithm of a wealth that is read: nobody comes near it.
const MOST_KEPT: f64 = 1e6;

/// How many numbers [`Evidence::kept`] has.
pub const KEPT: usize = 1 + 2 * STAKES.len() + 2 * LENGTHS;
