//! Is a difference real? Pure functions over samples; every random one takes a seed.
//!
//! Times are skewed and have outliers, so everything here rests on order statistics, and outliers
//! are kept. Comparisons are *paired*: candidate over reference of the same round, because what
//! disturbs a round disturbs both. Figures agree with NumPy and SciPy (`tests/scipy`).

use serde::{Deserialize, Serialize};

/// The middle value (mean of the middle two); NaN for none.
pub fn median(values: &[f64]) -> f64 {
    // Few values need no memory of their own; medians of some rounds are most of what a tuner computes.
    const FEW: usize = 64;
    let mut few = [0.0; FEW];
    match few.get_mut(..values.len()) {
        Some(few) => {
            few.copy_from_slice(values);
            median_of(few)
        }
        None => median_of(&mut values.to_vec()),
    }
}

fn median_of(values: &mut [f64]) -> f64 {
    let Some(last) = values.len().checked_sub(1) else { return f64::NAN };
    let (_, below, behind) = values.select_nth_unstable_by(last / 2, f64::total_cmp);
    let above = if last % 2 == 0 { None } else { behind.iter().copied().min_by(f64::total_cmp) };
    *below + (above.unwrap_or(*below) - *below) * 0.5
}

/// The `q`-quantile, 0 to 1, by linear interpolation between order statistics (type 7 of Hyndman
/// and Fan 1996, NumPy's and R's default); NaN for no values.
pub fn quantile(values: &[f64], q: f64) -> f64 {
    quantile_of_sorted(&sorted(values), q)
}

fn sorted(values: &[f64]) -> Vec<f64> {
    let mut values = values.to_vec();
    values.sort_unstable_by(f64::total_cmp);
    values
}

fn quantile_of_sorted(sorted: &[f64], q: f64) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else { return f64::NAN };
    let position = q.clamp(0.0, 1.0) * last as f64;
    let below = position.floor() as usize;
    let above = (below + 1).min(last);
    sorted[below] + (sorted[above] - sorted[below]) * (position - below as f64)
}

/// Three outcomes of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Takes less time than the reference, by more than the margin.
    Faster,
    /// Takes more time than the reference, by more than the margin.
    Slower,
    /// The interval includes 1, or the difference is within the margin, or rounds are too few.
    CannotTell,
}

impl Verdict {
    /// `faster`, `slower` or `cannot tell`.
    pub const fn name(self) -> &'static str {
        match self {
            Verdict::Faster => "faster",
            Verdict::Slower => "slower",
            Verdict::CannotTell => "cannot tell",
        }
    }
}

impl std::fmt::Display for Verdict {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.name())
    }
}

/// Candidate's time over the reference's of the same rounds: below 1 is faster.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PairedRatio {
    /// Median of the rounds' ratios; of [`in_turns`](PairedRatio::in_turns), of the means of pairs.
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
impl std::fmt::Display for PairedRatio {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (PairedRatio { median, low, high, rounds }, places) =
            (self, f.precision().unwrap_or(3));
        match rounds {
            _ if self.has_interval() => {
                write!(f, "{median:.places$} ({low:.places$} .. {high:.places$})")
            }
            1 => write!(f, "{median:.places$} (1 round)"),
            _ => write!(f, "{median:.places$} ({rounds} rounds)"),
        }
    }
}

/// Differences of less than this are of no interest: a verdict needs more.
pub const MARGIN: f64 = 0.01;

/// Resamples of a bootstrap.
pub const RESAMPLES: usize = 2000;

/// With fewer pairs no 95 % interval of a median exists (2 x 0.5^5 is above 5 %).
pub const LEAST_ROUNDS: usize = 6;

impl PairedRatio {
    /// Compares round by round, over the rounds both have; one that only one had a turn in is NaN. A
    /// round in which either took no time, or less, gives no ratio, and where these are more than a
    /// quarter nothing does: such times cannot be compared. The interval is a percentile bootstrap
    /// (Efron 1979) of [`RESAMPLES`] resamples, drawn from `seed`.
    pub fn new(candidate: &[f64], reference: &[f64], seed: u64) -> PairedRatio {
        let ratios = ratios(candidate, reference);
        PairedRatio::around(&ratios, bootstrap_interval(&ratios, seed, median))
    }

    fn around(ratios: &[f64], (low, high): (f64, f64)) -> PairedRatio {
        PairedRatio { median: median(ratios), low, high, rounds: ratios.len() }
    }

    /// The same with an interval that holds the true median in at least 95 % of cases whatever the
    /// ratios' distribution, for comparisons of few rounds: of fewer than some thirty, a bootstrap of
    /// the median holds it in 91 to 94 % (normal and log-normal ratios, simulated). See
    /// [`median_interval`].
    pub fn exact(candidate: &[f64], reference: &[f64]) -> PairedRatio {
        let ratios = ratios(candidate, reference);
        PairedRatio::around(&ratios, median_interval(&ratios))
    }

    /// The same for candidates whose order in each round was drawn: then the logarithm of a round's
    /// ratio is as likely as its negative where they do not differ, and where they differ by a
    /// factor it is so around that. The estimate is that of Hodges and Lehmann (1963), the median of
    /// the means of all pairs of rounds, and the interval that of the signed-rank test, at least
    /// 95 % (Hollander, Wolfe and Chicken, Nonparametric Statistical Methods, 3.2 and 3.3). Of times
    /// with usual noise it is a fifth narrower than that of the median alone.
    pub fn in_turns(candidate: &[f64], reference: &[f64]) -> PairedRatio {
        let logs = ratios(candidate, reference).into_iter().map(f64::ln);
        let logs: Vec<f64> = logs.filter(|log| log.is_finite()).collect();
        let of_pairs = pairs(&logs).map(|(_, one, other)| (one + other) / 2.0);
        let means = sorted(&logs.iter().copied().chain(of_pairs).collect::<Vec<f64>>());
        let outside = signed_ranks_outside(logs.len()).min(means.len() / 2);
        let end = |at: Option<&f64>| at.map_or(f64::NAN, |mean| mean.exp());
        PairedRatio {
            median: quantile_of_sorted(&means, 0.5).exp(),
            low: end(means.get(outside)),
            high: end(means.iter().nth_back(outside)),
            rounds: logs.len(),
        }
    }

    /// Returns whether it has the rounds that an interval takes; of fewer, its ends are those of all of them.
    pub fn has_interval(&self) -> bool {
        self.rounds >= LEAST_ROUNDS
    }

    /// Returns whether it is a ratio of times with an interval around it.
    pub fn is_sound(&self) -> bool {
        self.median > 0.0 && self.low > 0.0 && self.low <= self.high
    }

    /// Faster or slower only when the interval excludes 1 *and* the median is further than
    /// `margin` from it (0.02: differences below 2 % are of no interest).
    pub fn verdict(&self, margin: f64) -> Verdict {
        if !self.has_interval() {
            Verdict::CannotTell
        } else if self.high < 1.0 && self.median < 1.0 - margin {
            Verdict::Faster
        } else if self.low > 1.0 && self.median > 1.0 + margin {
            Verdict::Slower
        } else {
            Verdict::CannotTell
        }
    }
}

/// Ours over theirs of the rounds both have and in which both took some time; none at all where
/// these are less than three quarters.
fn ratios(candidate: &[f64], reference: &[f64]) -> Vec<f64> {
    // A round in which one of them had no turn is NaN, and no round of both.
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

/// The distribution-free interval of a median that covers at least 95 %: from the k-th smallest to
/// the k-th largest value, the largest k for which both binomial tails together stay under 5 %
/// (David and Nagaraja, Order Statistics, 7.1). Below six values no such interval exists, and the
/// range of all of them is given.
pub fn median_interval(values: &[f64]) -> (f64, f64) {
    let sorted = sorted(values);
    let (Some(first), Some(last)) = (sorted.first(), sorted.last()) else {
        return (f64::NAN, f64::NAN);
    };
    let n = sorted.len();
    // P(exactly i of n below the median); beyond a thousand values they underflow, and the normal
    // approximation is exact enough.
    if n > 1000 {
        let half = 0.98 * (n as f64).sqrt();
        let below = (n as f64 / 2.0 - half).floor().max(0.0) as usize;
        return (sorted[below], sorted[n - 1 - below]);
    }
    let mut probability = 0.5_f64.powi(n as i32);
    let (mut tail, mut k) = (0.0, 0);
    while 2.0 * (tail + probability) <= 0.05 {
        tail += probability;
        probability *= (n - k) as f64 / (k + 1) as f64;
        k += 1;
    }
    if k == 0 { (*first, *last) } else { (sorted[k - 1], sorted[n - k]) }
}

/// How many of the means of pairs of rounds lie below, and how many above, the 95 % interval of the
/// signed-rank test of so many rounds: the most that the sum of positive ranks is at or below with a
/// probability of 2.5 % at most. None below [`LEAST_ROUNDS`], where there is no
/// such interval.
fn signed_ranks_outside(rounds: usize) -> usize {
    let n = rounds as f64;
    if rounds > 200 {
        let deviation = (n * (n + 1.0) * (2.0 * n + 1.0) / 24.0).sqrt();
        return (n * (n + 1.0) / 4.0 - 1.96 * deviation - 1.0).max(0.0) as usize;
    }
    let mut below = 0.0;
    let within = signed_rank_sums(rounds).position(|probability| {
        below += probability;
        below > 0.025
    });
    within.unwrap_or(0).saturating_sub(1)
}

/// The probability of each sum of positive ranks of so many rounds, from 0 on: each rank is in it or not.
pub(crate) fn signed_rank_sums(rounds: usize) -> impl Iterator<Item = f64> {
    let mut of_sum = vec![0.0; rounds * (rounds + 1) / 2 + 1];
    of_sum[0] = 1.0;
    for rank in 1..=rounds {
        for sum in (0..of_sum.len()).rev() {
            let without = if sum >= rank { of_sum[sum - rank] } else { 0.0 };
            of_sum[sum] = (of_sum[sum] + without) / 2.0;
        }
    }
    of_sum.into_iter()
}

/// The 95 % percentile bootstrap interval of a statistic; NaN for no values.
fn bootstrap_interval(values: &[f64], seed: u64, statistic: fn(&[f64]) -> f64) -> (f64, f64) {
    if values.is_empty() {
        return (f64::NAN, f64::NAN);
    }
    let mut random = fastrand::Rng::with_seed(seed);
    middle((0..RESAMPLES).map(|_| statistic(&resample(values, &mut random))))
}

/// As many of these values as they are, drawn at random.
pub(crate) fn resample(values: &[f64], random: &mut fastrand::Rng) -> Vec<f64> {
    (0..values.len()).map(|_| values[random.usize(..values.len())]).collect()
}

/// Ends of the middle 95 % of the outcomes.
pub(crate) fn middle(outcomes: impl Iterator<Item = f64>) -> (f64, f64) {
    let outcomes = sorted(&outcomes.collect::<Vec<f64>>());
    (quantile_of_sorted(&outcomes, 0.025), quantile_of_sorted(&outcomes, 0.975))
}

/// A geometric mean with its interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct GeometricMean {
    /// The mean; NaN for no values.
    #[serde(with = "crate::rounded")]
    pub mean: f64,
    /// Lower end of its 95 % bootstrap interval over the values.
    #[serde(with = "crate::rounded")]
    pub low: f64,
    /// Upper end of its 95 % bootstrap interval over the values.
    #[serde(with = "crate::rounded")]
    pub high: f64,
    /// How many values were positive and finite; others have no logarithm and are left out.
    pub count: usize,
}

impl GeometricMean {
    /// The mean of ratios over cells: the one mean that does not depend on which candidate is
    /// called the reference (Fleming and Wallace 1986).
    pub fn new(values: &[f64], seed: u64) -> GeometricMean {
        let usable: Vec<f64> =
            values.iter().copied().filter(|value| value.is_finite() && *value > 0.0).collect();
        let (low, high) = bootstrap_interval(&usable, seed, geometric_mean);
        GeometricMean { mean: geometric_mean(&usable), low, high, count: usable.len() }
    }
}

/// The geometric mean; NaN for none or for values that are not positive.
pub fn geometric_mean(values: &[f64]) -> f64 {
    let sum: f64 = values.iter().map(|value| value.ln()).sum();
    (sum / values.len() as f64).exp()
}

/// The two-sided p of a statistic that is further from its expected value by so much than its
/// continuity correction, by the normal approximation: twice the upper tail of the standard normal
/// distribution; 1 where nothing varies.
pub(crate) fn two_sided(distance: f64, variance: f64) -> f64 {
    if variance > 0.0 && variance.is_finite() {
        libm::erfc(distance.max(0.0) / variance.sqrt() / std::f64::consts::SQRT_2).min(1.0)
    } else {
        1.0
    }
}

/// The p of the Mann-Kendall test for a trend over time, two-sided, with ties and continuity
/// correction (Mann 1945, Kendall 1975); 1 for fewer than four values or all equal.
fn mann_kendall(values: &[f64]) -> f64 {
    let signs = pairs(values).map(|(_, earlier, later)| {
        f64::from(i8::from(later > earlier) - i8::from(later < earlier))
    });
    let s: f64 = signs.sum();
    let n = values.len() as f64;
    let sorted = sorted(values);
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

/// How far apart two values stand, the earlier one and the later one, for each pair.
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
    /// Fewer than eight rounds.
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
