//! Is there a difference between two *runs*? Rounds of different runs have nothing in common, so
//! nothing pairs them: both sides are resampled on their own, and ranked together.

use crate::stats::{PairedRatio, RESAMPLES, median, middle, resample, two_sided};

/// The median of `new` over the median of `old`, with the 95 % percentile bootstrap interval of
/// [`RESAMPLES`] resamples of either side, drawn from `seed`. `rounds` is the smaller side's count.
/// Values that are not finite are left out.
pub fn ratio_of_medians(new: &[f64], old: &[f64], seed: u64) -> PairedRatio {
    let finite = |values: &[f64]| -> Vec<f64> {
        values.iter().copied().filter(|value| value.is_finite()).collect()
    };
    let (new, old) = (finite(new), finite(old));
    let rounds = new.len().min(old.len());
    if rounds == 0 {
        return PairedRatio { median: f64::NAN, low: f64::NAN, high: f64::NAN, rounds };
    }
    let mut random = fastrand::Rng::with_seed(seed);
    let mut resampled = |values: &[f64]| median(&resample(values, &mut random));
    let ratios = (0..RESAMPLES).map(|_| resampled(&new) / resampled(&old));
    let (low, high) = middle(ratios.filter(|ratio| ratio.is_finite()));
    PairedRatio { median: median(&new) / median(&old), low, high, rounds }
}

/// The p of the Mann-Whitney test of two independent samples, two-sided, with ties and continuity
/// correction (SciPy's `mannwhitneyu(method="asymptotic")`); 1 where a side is empty or all values
/// are equal.
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
    let total = n + m;
    let variance = n * m / 12.0 * (total + 1.0 - ties / (total * (total - 1.0)));
    two_sided((u - n * m / 2.0).abs() - 0.5, variance)
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
        assert_eq!(mann_whitney(&[1.0; 5], &[1.0; 5]), 1.0);
        assert_eq!(mann_whitney(&[], &[1.0]), 1.0);
    }

    #[test]
    fn the_interval_holds_the_truth_about_as_often_as_it_says() {
        let mut random = fastrand::Rng::with_seed(3);
        let mut draw = |scale: f64| -> Vec<f64> {
            (0..15).map(|_| scale * (1.0 + 0.1 * random.f64() * random.f64())).collect()
        };
        let held = (0..200)
            .filter(|seed| {
                let ratio = ratio_of_medians(&draw(1.2), &draw(1.0), *seed);
                ratio.low <= 1.2 && 1.2 <= ratio.high
            })
            .count();
        assert!((180..=200).contains(&held), "{held} of 200");
    }

    #[test]
    fn nothing_gives_no_ratio() {
        assert!(ratio_of_medians(&[], &[1.0], 0).median.is_nan());
        assert_eq!(ratio_of_medians(&[f64::NAN], &[1.0], 0).rounds, 0);
    }
}
