//! Many comparisons at once: the p of each, and which of them stand.
//!
//! Twelve rounds and more: the signed-rank test (Wilcoxon 1945), whatever the noise is like. Fewer, which
//! are launches or runs and so means of many calls: Student's t of the logarithms, since no rank test of
//! six can stand a correction for many comparisons.

use crate::interval::signed_rank_sums;
use crate::order::two_sided;

/// From so many on ranks alone can show a difference after a correction for hundreds of comparisons.
const RANKS_SUFFICE: usize = 12;

/// The two-sided p of the hypothesis that these ratios lie around `bound`; 1 for fewer than three, and for
/// any that is not above 0.
pub fn p_around(ratios: &[f64], bound: f64) -> f64 {
    let logs: Vec<f64> = ratios.iter().map(|ratio| (ratio / bound).ln()).collect();
    if logs.len() < 3 || logs.iter().any(|log| !log.is_finite()) {
        1.0
    } else if logs.len() < RANKS_SUFFICE {
        student(&logs)
    } else {
        signed_rank(&logs)
    }
}

/// p-value of the hypothesis that the values are symmetric around 0.
fn signed_rank(values: &[f64]) -> f64 {
    let mut by_size: Vec<f64> = values.iter().copied().filter(|value| *value != 0.0).collect();
    by_size.sort_unstable_by(|a, b| a.abs().total_cmp(&b.abs()));
    let n = by_size.len();
    let positive: usize = (1..=n).filter(|rank| by_size[rank - 1] > 0.0).sum();
    let all = n * (n + 1) / 2;
    let less = positive.min(all - positive);
    if n > 200 {
        let size = n as f64;
        let distance = all as f64 / 2.0 - less as f64 - 0.5;
        return two_sided(distance, size * (size + 1.0) * (2.0 * size + 1.0) / 24.0);
    }
    let below: f64 = signed_rank_sums(n).take(less + 1).sum();
    (2.0 * below).min(1.0)
}

/// p-value of the hypothesis that their mean is 0.
fn student(values: &[f64]) -> f64 {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    let error = (squares / (n - 1.0) / n).sqrt();
    match error > 0.0 {
        true => 1.0 - within((mean / error).abs(), values.len() - 1),
        false => f64::from(mean == 0.0),
    }
}

/// Part of Student's distribution that lies within `t` of 0 (Abramowitz and Stegun, 26.7.3 and 26.7.4).
pub(crate) fn within(t: f64, freedom: usize) -> f64 {
    let angle = (t / (freedom as f64).sqrt()).atan();
    let (sine, cosine) = angle.sin_cos();
    let is_odd = freedom % 2 == 1;
    let (mut term, mut sum) = if is_odd { (cosine, 0.0) } else { (1.0, 0.0) };
    let first = if is_odd { 1 } else { 0 };
    let mut power = first;
    while power + 2 <= freedom {
        sum += term;
        power += 2;
        term *= cosine * cosine * (power - 1) as f64 / power as f64;
    }
    if is_odd { (angle + sine * sum) * std::f64::consts::FRAC_2_PI } else { sine * sum }
}

/// Marks the p that stand together with a chance of `level` at most that any of them is wrong (Holm 1979).
pub fn holm(p: &[f64], level: f64) -> Vec<bool> {
    let mut order: Vec<usize> = (0..p.len()).filter(|at| !p[*at].is_nan()).collect();
    order.sort_unstable_by(|a, b| p[*a].total_cmp(&p[*b]));
    let mut stand = vec![false; p.len()];
    for (rank, at) in order.into_iter().enumerate() {
        if p[at] > level / (p.len() - rank) as f64 {
            break;
        }
        stand[at] = true;
    }
    stand
}

/// Marks the p that stand where one in twenty of those that do is expected to be wrong: the correction of
/// Benjamini and Hochberg (1995) for how many there are.
pub fn discoveries(p: &[f64]) -> Vec<bool> {
    let mut sorted: Vec<f64> = p.iter().copied().filter(|p| !p.is_nan()).collect();
    sorted.sort_unstable_by(f64::total_cmp);
    let all = p.len() as f64;
    let mut ranks = sorted.iter().enumerate();
    let last = ranks.rfind(|(rank, p)| **p <= 0.05 * (rank + 1) as f64 / all);
    p.iter().map(|p| last.is_some_and(|(_, last)| p <= last)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(found: f64, expected: f64) {
        assert!((found - expected).abs() < 1e-4, "{found} is not {expected}");
    }

    /// Expected values are from `scipy.stats.t.sf`, `ttest_1samp` and `wilcoxon`.
    #[test]
    fn they_agree_with_tables() {
        for (t, freedom, p) in [(2.571, 5, 0.049_97), (2.776, 4, 0.050_02), (12.706, 1, 0.050_0)] {
            near(1.0 - within(t, freedom), p);
        }
        near(1.0 - within(4.303, 2), 0.049_99);
        near(1.0 - within(2.365, 7), 0.049_97);
        near(1.0 - within(2.306, 8), 0.050_0);
        let rising: Vec<f64> = (1..=15).map(|at| 1.0 + f64::from(at) / 100.0).collect();
        near(p_around(&rising, 1.0), 2.0 / f64::from(1 << 15));
        assert!(p_around(&rising, 1.08) > 0.5, "around the middle one");
        assert_eq!(p_around(&[1.0, 2.0], 1.0), 1.0, "too few");
        assert_eq!(p_around(&[1.0, 2.0, -1.0], 1.0), 1.0, "no ratio");
        assert_eq!(p_around(&[1.5; 6], 1.0), 0.0);
        assert_eq!(p_around(&[1.5; 6], 1.5), 1.0);
    }

    #[test]
    fn many_comparisons_are_corrected_for() {
        assert_eq!(discoveries(&[0.04]), [true]);
        assert_eq!(discoveries(&[0.2, 0.04]), [false, false]);
        assert_eq!(discoveries(&[0.04, 0.03]), [true, true], "both, or neither");
        assert_eq!(discoveries(&[0.9, 0.001, f64::NAN]), [false, true, false]);
        assert!(discoveries(&[]).is_empty());
        let holm = |p: &[f64]| holm(p, 0.05);
        assert_eq!(holm(&[0.04, 0.03]), [false, false], "neither is below a half of 5 %");
        assert_eq!(holm(&[0.04, 0.02, f64::NAN]), [false, false, false]);
        assert_eq!(holm(&[0.04, 0.02]), [true, true]);
        assert_eq!(holm(&[0.9, 0.01]), [false, true]);
    }
}
