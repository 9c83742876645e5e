//! Intervals of the true ratio, at 95 %: three rules, one result.
//!
//! | rule | for |
//! |---|---|
//! | [`paired`] | rounds or launches that both sides share, of a number settled before |
//! | [`unpaired`] | two runs that have no round in common |
//! | [`Pooled`] | rounds that are looked at after each one, as a race does |

use crate::estimate::away;
use crate::family::within;
use crate::margin::{LEAST_LOOKED, RUNS};
use crate::order::{median, quantile_of_sorted, sorted};
use crate::ratio::{Ratio, of_rounds};
pub use crate::unpaired::{least_p, mann_whitney, unpaired};

/// Rounds of which all means of pairs are formed; more are first averaged in as many blocks.
const MOST_PAIRED: usize = 500;

/// The ratio of paired rounds, whose order was drawn in each: then the logarithm of a round's ratio is as likely as its
/// negative where the sides do not differ, and where they differ by a factor it is so around that.
///
/// The estimate is that of Hodges and Lehmann (1963), the median of the means of all pairs of rounds, and the
/// interval that of the signed-rank test, at least 95 % (Hollander, Wolfe and Chicken, Nonparametric Statistical
/// Methods, 3.2 and 3.3).
#[must_use]
pub fn paired(ratios: &[f64]) -> Ratio {
    let logs: Vec<f64> =
        ratios.iter().map(|ratio| ratio.ln()).filter(|log| log.is_finite()).collect();
    let blocks = blocks(&logs);
    let mut means = Vec::with_capacity(blocks.len() * (blocks.len() + 1) / 2);
    for (at, one) in blocks.iter().enumerate() {
        means.extend(blocks[at..].iter().map(|other| f64::midpoint(*one, *other)));
    }
    means.sort_unstable_by(f64::total_cmp);
    let outside = signed_ranks_outside(blocks.len()).min(means.len() / 2);
    let end = |at: Option<&f64>| at.map_or(f64::NAN, |mean| mean.exp());
    Ratio {
        median: quantile_of_sorted(&means, 0.5).exp(),
        low: end(means.get(outside)),
        high: end(means.iter().nth_back(outside)),
        rounds: logs.len(),
    }
}

impl Ratio {
    /// The ratio of paired rounds: [`of_rounds`], then [`paired`].
    #[must_use]
    pub fn paired(candidate: &[f64], reference: &[f64]) -> Ratio {
        paired(&of_rounds(candidate, reference))
    }
}

/// Means of neighbours, so many as [`MOST_PAIRED`] at most.
fn blocks(logs: &[f64]) -> Vec<f64> {
    let of_block = logs.len().div_ceil(MOST_PAIRED).max(1);
    logs.chunks(of_block).map(|block| block.iter().sum::<f64>() / block.len() as f64).collect()
}

/// Numbers of means of pairs of rounds that lie below, and above, the 95 % interval of the
/// signed-rank test of so many rounds: the most that the sum of positive ranks is at or below with a
/// probability of 2.5 % at most. None below six rounds, where there is no such interval.
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

/// The scatter of the rounds of several comparisons, which run beside each other: of few rounds each, together they know it.
#[derive(Clone, Copy, Debug)]
pub struct Pooled {
    /// Standard deviation of the logarithm of one round's ratio.
    pub scatter: f64,
    /// Its degrees of freedom.
    freedom: usize,
}

/// The part of all rounds that may be moved nearer to their middle. A program with two modes has more rounds than this in
/// the rarer one; those are what it does, and no disturbance.
const DISTURBED: f64 = 0.1;

/// The part of all rounds of several comparisons that lies so far from their middles that a disturbance is likelier than
/// scatter, in standard deviations.
const FAR: f64 = 2.5;

/// The width of an interval of so many rounds over that of a normal distribution with independent looks, from simulation:
/// tails are heavier, comparisons share the reference's runs, and of few rounds a second mode may be missing
/// (`tests/race.rs`).
fn widened(rounds: usize) -> f64 {
    1.2 + 0.2 / rounds as f64
}

impl Pooled {
    /// The scatter of these comparisons, each a list of ratios.
    #[must_use]
    pub fn of(comparisons: &[&[f64]]) -> Pooled {
        let all: Vec<Vec<f64>> =
            comparisons.iter().map(|one| logs(one)).filter(|logs| logs.len() > 1).collect();
        let mut off: Vec<f64> = Vec::new();
        for logs in &all {
            off.extend(away(logs, median(logs)));
        }
        let freedom = off.len().saturating_sub(all.len());
        if freedom == 0 {
            return Pooled { scatter: f64::NAN, freedom };
        }
        let few = (off.len() as f64 / freedom as f64).sqrt();
        let robust = 1.48 * median(&off) * few;
        let most = limit(&off, FAR * robust);
        let squares: f64 = off.iter().map(|off| off.min(most).powi(2)).sum();
        let scatter = robust.max((squares / freedom as f64).sqrt());
        Pooled { scatter, freedom }
    }

    /// A scatter that is known beforehand, as so many comparisons of so many rounds would estimate it.
    #[must_use]
    pub fn known(scatter: f64, rounds: usize, comparisons: usize) -> Pooled {
        Pooled { scatter, freedom: comparisons * rounds.saturating_sub(1) }
    }

    /// Half the width of an interval of so many rounds that holds for a family of so many at once, at every look.
    #[must_use]
    pub fn half(self, rounds: usize, family: usize) -> f64 {
        let error = (self.scatter / (rounds as f64).sqrt()).max(RUNS);
        widened(rounds) * student(spent(rounds, family), self.freedom) * error
    }

    /// The ratio of one of the comparisons. The interval holds for a family of so many at once, at every look.
    #[must_use]
    pub fn ratio(self, ratios: &[f64], family: usize) -> Ratio {
        let logs = logs(ratios);
        let rounds = logs.len();
        let middle = median(&logs);
        if rounds < LEAST_LOOKED || self.freedom == 0 {
            return Ratio { median: middle.exp(), low: f64::NAN, high: f64::NAN, rounds };
        }
        let off = away(&logs, middle);
        let most = limit(&off, FAR * self.scatter);
        let near = |log: &f64| log.clamp(middle - most, middle + most);
        let mean = logs.iter().map(near).sum::<f64>() / rounds as f64;
        // One comparison may scatter more than the others.
        let own = (logs.iter().map(|log| (near(log) - mean).powi(2)).sum::<f64>()
            / (rounds - 1) as f64)
            .sqrt();
        let half = Pooled { scatter: self.scatter.max(own), ..self }.half(rounds, family);
        let [low, high] = [mean - half, mean + half].map(f64::exp);
        Ratio { median: mean.exp(), low, high, rounds }
    }
}

fn logs(ratios: &[f64]) -> Vec<f64> {
    ratios.iter().map(|ratio| ratio.ln()).filter(|log| log.is_finite()).collect()
}

/// The distance from the middle beyond which a round is moved nearer: `far`, or more where that would move more than
/// [`DISTURBED`] of them.
fn limit(off: &[f64], far: f64) -> f64 {
    let sorted = sorted(off);
    let moved = (DISTURBED * sorted.len() as f64) as usize;
    sorted.get(sorted.len() - 1 - moved).map_or(far, |stays| stays.max(far))
}

/// The chance of an error that a look after so many rounds may spend on one of a family, of 5 % for all looks together: less
/// the later it is, since looks that lie near each other are nearly one.
fn spent(rounds: usize, family: usize) -> f64 {
    0.05 / family.max(1) as f64 / (1.6 * (1.0 + (1.0 + rounds as f64 / 3.0).log2()))
}

/// Half the width of an interval at every look, in standard deviations of a sum over so many rounds.
pub(crate) fn half_widths(rounds: usize, family: usize) -> f64 {
    match rounds {
        ..LEAST_LOOKED => f64::INFINITY,
        _ => widened(rounds) * student(spent(rounds, family), rounds - 1),
    }
}

/// Student's t that is exceeded, to both sides together, with this chance.
fn student(chance: f64, freedom: usize) -> f64 {
    // The t of more degrees is smaller by less than 4 %.
    let freedom = freedom.min(60);
    let (mut low, mut high) = (0.0, 1.0);
    while 1.0 - within(high, freedom) > chance {
        high *= 2.0;
    }
    for _ in 0..30 {
        let middle = f64::midpoint(low, high);
        match 1.0 - within(middle, freedom) > chance {
            true => low = middle,
            false => high = middle,
        }
    }
    high
}

/// The distribution-free interval of the median of single values, at least 95 %: from the k-th smallest to the k-th
/// largest, the largest k for which both binomial tails together stay under 5 % (David and Nagaraja, Order
/// Statistics, 7.1). Below six values no such interval exists, and the range of all of them is given.
#[must_use]
pub fn of_median(values: &[f64]) -> (f64, f64) {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verdict::Verdict;

    fn anytime(ratios: &[f64]) -> Ratio {
        Pooled::of(&[ratios]).ratio(ratios, 1)
    }

    /// Rounds of two programs of which one takes `factor` of the other's time, with noise and with neighbours that
    /// take half of the CPU in some runs.
    fn rounds(random: &mut fastrand::Rng, rounds: usize, factor: f64, noise: f64) -> Vec<f64> {
        let mut run = || {
            let normal = (0..12).map(|_| random.f64()).sum::<f64>() - 6.0;
            let neighbour = if random.u32(..20) == 0 { 1.5 } else { 1.0 };
            neighbour * (noise * normal).exp()
        };
        (0..rounds).map(|_| factor * run() / run()).collect()
    }

    #[test]
    fn a_signed_rank_interval_has_the_ranks_of_the_tables() {
        // Hollander, Wolfe and Chicken, table A.4: the sum of ranks of 10 rounds is at or below 8 with
        // a probability of 2.4 %, of 15 at or below 25 with 2.4 %, of 6 at or below 0 with 1.6 %.
        for (rounds, outside) in [(5, 0), (6, 0), (10, 8), (15, 25)] {
            assert_eq!(signed_ranks_outside(rounds), outside, "{rounds} rounds");
        }
        // The approximation goes on where the exact count ends: one round more moves the middle by 100 and the
        // end by some 88.
        let (exact, approximate) = (signed_ranks_outside(200), signed_ranks_outside(201));
        assert!((80..96).contains(&(approximate - exact)), "{exact}, {approximate}");
    }

    #[test]
    fn a_paired_interval_is_of_logarithms() {
        // Six rounds leave none of the 21 means of 0, 0, 0, 0, ln 2 and ln 2 outside.
        let turns = paired(&[1.0, 2.0, 1.0, 1.0, 2.0, 1.0]);
        assert!((turns.low - 1.0).abs() < 1e-12 && (turns.high - 2.0).abs() < 1e-12, "{turns:?}");
        let inverse = paired(&[1.0, 0.5, 1.0, 1.0, 0.5, 1.0]);
        assert!((turns.median * inverse.median - 1.0).abs() < 1e-12, "{turns:?} {inverse:?}");
        let none = paired(&[]);
        assert!(none.low.is_nan() && none.high.is_nan() && none.median.is_nan());
        assert_eq!(none.rounds, 0);
    }

    #[test]
    fn many_rounds_are_averaged_in_blocks() {
        let ratios = rounds(&mut fastrand::Rng::with_seed(2), 20_011, 1.25, 0.1);
        let found = paired(&ratios);
        assert_eq!(found.rounds, 20_011);
        assert!(found.low < 1.25 && 1.25 < found.high && found.high - found.low < 0.02, "{found}");
    }

    #[test]
    fn one_outlier_moves_no_word() {
        let mut ratios = vec![0.8; 15];
        ratios[7] = 1000.0;
        assert_eq!(paired(&ratios).verdict(0.05), Verdict::Faster);
        assert_eq!(anytime(&ratios).verdict(0.05), Verdict::Faster);
    }

    #[test]
    fn a_paired_interval_holds_the_truth_in_95_of_100_cases() {
        let mut random = fastrand::Rng::with_seed(5);
        for count in [6, 10, 20, 60] {
            let held = (0..1000).filter(|_| {
                let found = paired(&rounds(&mut random, count, 1.1, 0.05));
                (found.low..=found.high).contains(&1.1)
            });
            // 95 % less three standard errors of 1000 cases.
            let held = held.count();
            assert!(held >= 929, "{count} rounds: {held} of 1000");
        }
    }

    #[test]
    fn an_anytime_interval_holds_the_truth_after_every_round_in_95_of_100_cases() {
        for noise in [0.01, 0.05, 0.2] {
            let mut random = fastrand::Rng::with_seed(5);
            // Each end by itself is what puts a contestant out.
            let mut wrong = [0, 0];
            for _ in 0..1000 {
                let all = rounds(&mut random, 60, 0.9, noise);
                let ends = (LEAST_LOOKED..=60).map(|round| anytime(&all[..round]));
                let (above, below) = ends.fold((false, false), |(above, below), found| {
                    (above || found.low > 0.9, below || found.high < 0.9)
                });
                wrong[0] += usize::from(above);
                wrong[1] += usize::from(below);
            }
            assert!(wrong.iter().all(|wrong| *wrong <= 50), "{noise}: {wrong:?} of 1000");
        }
    }

    #[test]
    fn words_are_right_in_95_of_100_cases_whatever_is_true() {
        for (factor, wrong) in [
            (1.0, &[Verdict::Faster, Verdict::Slower][..]),
            (0.9, &[Verdict::Slower, Verdict::Same]),
            (1.1, &[Verdict::Faster, Verdict::Same]),
        ] {
            let mut random = fastrand::Rng::with_seed(11);
            let word = |_: &usize| {
                let found = paired(&rounds(&mut random, 15, factor, 0.03));
                wrong.contains(&found.verdict(crate::margin::ROW))
            };
            let count = (0..1000).filter(word).count();
            // 5 % and three standard errors of 1000 cases.
            assert!(count <= 70, "{factor}: {count} of 1000");
        }
    }

    #[test]
    fn the_interval_of_a_median_has_the_ranks_of_the_tables() {
        // Conover, Practical Nonparametric Statistics, table A3: 95 % for n = 15 is ranks 4 and 12.
        let of = |n: i32| of_median(&(1..=n).map(f64::from).collect::<Vec<_>>());
        assert_eq!([15, 6, 5].map(of), [(4.0, 12.0), (1.0, 6.0), (1.0, 5.0)]);
        let (low, high) = of(2000);
        assert!((950.0..960.0).contains(&low) && (1040.0..1050.0).contains(&high), "{low} {high}");
        assert!(of_median(&[]).0.is_nan());
    }
}
