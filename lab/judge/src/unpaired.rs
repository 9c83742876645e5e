//! Two *runs*: rounds or launches of different runs have nothing in common, so nothing pairs them, and they are
//! ranked together.

use crate::order::{quantile_of_sorted, two_sided};
use crate::ratio::Ratio;

/// Both sides together up to which the ranks' distribution is counted and not approximated.
const COUNTED: usize = 50;

/// `new` over `old` of runs that nothing pairs.
///
/// The ratio is that of Hodges and Lehmann (1963), the median of the ratios of all pairs, and the
/// interval the 95 % one of the same test (Hollander, Wolfe and Chicken, Nonparametric Statistical Methods,
/// 4.2 and 4.3). `rounds` is the smaller side's count. Values that are not above zero are left out.
pub fn unpaired(new: &[f64], old: &[f64]) -> Ratio {
    let times = |values: &[f64]| -> Vec<f64> {
        values.iter().copied().filter(|value| *value > 0.0 && value.is_finite()).collect()
    };
    let (new, old) = (times(new), times(old));
    let mut ratios: Vec<f64> = new.iter().flat_map(|a| old.iter().map(move |b| a / b)).collect();
    ratios.sort_unstable_by(f64::total_cmp);
    let outside = outside(new.len(), old.len()).min(ratios.len() / 2);
    let end = |at: Option<&f64>| at.copied().unwrap_or(f64::NAN);
    Ratio {
        median: quantile_of_sorted(&ratios, 0.5),
        low: end(ratios.get(outside)),
        high: end(ratios.iter().nth_back(outside)),
        rounds: new.len().min(old.len()),
    }
}

/// The smallest p that so many values a side can have: that of no overlap.
pub fn least_p(values: usize) -> f64 {
    match 2 * values {
        ..=COUNTED => 2.0 * probabilities(values, values)[0],
        _ => 0.0,
    }
}

/// The p of the Mann-Whitney test of two independent samples, two-sided: exact where few values have no
/// ties, else with ties and continuity correction (SciPy's `mannwhitneyu`); 1 where a side is empty or
/// all values are equal.
pub fn mann_whitney(a: &[f64], b: &[f64]) -> f64 {
    let mut all: Vec<(f64, bool)> =
        a.iter().map(|value| (*value, true)).chain(b.iter().map(|value| (*value, false))).collect();
    all.sort_unstable_by(|x, y| x.0.total_cmp(&y.0));
    let (mut rank, mut sum, mut ties) = (0.0, 0.0, 0.0);
    for group in all.chunk_by(|x, y| x.0 == y.0) {
        let t = group.len() as f64;
        let average = rank + (t + 1.0) / 2.0;
        sum += average * group.iter().filter(|(_, of_a)| *of_a).count() as f64;
        ties += t * t * t - t;
        rank += t;
    }
    let (n, m) = (a.len() as f64, b.len() as f64);
    let u = sum - n * (n + 1.0) / 2.0;
    if ties == 0.0 && all.len() <= COUNTED {
        let below = u.min(n * m - u) as usize;
        let tail: f64 = probabilities(a.len(), b.len()).iter().take(below + 1).sum();
        return (2.0 * tail).min(1.0);
    }
    let total = n + m;
    let variance = n * m / 12.0 * (total + 1.0 - ties / (total * (total - 1.0)));
    two_sided((u - n * m / 2.0).abs() - 0.5, variance)
}

/// Numbers of ratios of all pairs that lie below, and above, the 95 % interval.
fn outside(n: usize, m: usize) -> usize {
    if n + m > COUNTED {
        let (n, m) = (n as f64, m as f64);
        let half = 1.96 * (n * m * (n + m + 1.0) / 12.0).sqrt();
        return (n * m / 2.0 - half).max(0.0) as usize;
    }
    let mut below = 0.0;
    let within = probabilities(n, m).iter().position(|probability| {
        below += probability;
        below > 0.025
    });
    within.unwrap_or(0)
}

/// The probability of each count of pairs in which the one side is larger, where the sides do not differ:
/// the coefficients of a Gaussian binomial.
fn probabilities(n: usize, m: usize) -> Vec<f64> {
    let mut counts = vec![0.0; n * m + 1];
    counts[0] = 1.0;
    for i in 1..=n {
        for u in (m + i..counts.len()).rev() {
            counts[u] -= counts[u - m - i];
        }
        for u in i..counts.len() {
            counts[u] += counts[u - i];
        }
    }
    let all: f64 = counts.iter().sum();
    counts.iter().map(|count| count / all).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: [f64; 8] = [1.1, 2.4, 2.4, 3.9, 5.0, 5.5, 6.1, 7.7];
    const B: [f64; 7] = [4.2, 5.0, 8.1, 8.8, 9.0, 9.4, 10.2];

    #[test]
    fn ranks_agree_with_scipy() {
        // scipy.stats.mannwhitneyu(A, B, method="asymptotic")
        let p = mann_whitney(&A, &B);
        assert!((p - 0.020_411_608_113_012_753).abs() < 1e-9, "{p}");
        // scipy.stats.mannwhitneyu([1, 2, 3, 4, 6], [5, 7, 8, 9, 10, 11], method="exact")
        let p = mann_whitney(&[1.0, 2.0, 3.0, 4.0, 6.0], &[5.0, 7.0, 8.0, 9.0, 10.0, 11.0]);
        assert!((p - 4.0 / 462.0).abs() < 1e-12, "{p}");
        assert_eq!(mann_whitney(&[1.0; 5], &[1.0; 5]), 1.0);
        assert_eq!(mann_whitney(&[], &[1.0]), 1.0);
        assert!((least_p(6) - 2.0 / 924.0).abs() < 1e-12);
    }

    #[test]
    fn the_interval_holds_the_truth_about_as_often_as_it_says() {
        for rounds in [6, 10, 15, 40] {
            let mut random = fastrand::Rng::with_seed(3);
            let mut draw = |scale: f64| -> Vec<f64> {
                (0..rounds).map(|_| scale * (1.0 + 0.1 * random.f64() * random.f64())).collect()
            };
            let held = (0..400).filter(|_| {
                let (new, old) = (draw(1.2), draw(1.0));
                let ratio = unpaired(&new, &old);
                assert!(mann_whitney(&new, &old) < 0.05 && ratio.rounds == rounds);
                ratio.low <= 1.2 && 1.2 <= ratio.high
            });
            let held = held.count();
            assert!((372..=396).contains(&held), "{held} of 400 with {rounds}");
        }
    }

    #[test]
    fn nothing_gives_no_ratio() {
        assert!(unpaired(&[], &[1.0]).median.is_nan());
        assert_eq!(unpaired(&[f64::NAN], &[1.0]).rounds, 0);
    }
}
