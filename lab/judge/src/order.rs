//! Order statistics and means. They agree with NumPy.

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

/// The values in ascending order.
pub(crate) fn sorted(values: &[f64]) -> Vec<f64> {
    let mut values = values.to_vec();
    values.sort_unstable_by(f64::total_cmp);
    values
}

pub(crate) fn quantile_of_sorted(sorted: &[f64], q: f64) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else { return f64::NAN };
    let position = q.clamp(0.0, 1.0) * last as f64;
    let below = position.floor() as usize;
    let above = (below + 1).min(last);
    sorted[below] + (sorted[above] - sorted[below]) * (position - below as f64)
}

/// The geometric mean; NaN for none or for values that are not positive. Of ratios over cells it is the one mean
/// that does not depend on which candidate is called the reference (Fleming and Wallace 1986).
pub fn geometric_mean(values: &[f64]) -> f64 {
    let sum: f64 = values.iter().map(|value| value.ln()).sum();
    (sum / values.len() as f64).exp()
}

/// The two-sided p of a statistic that is further from its expected value by so much than its
/// continuity correction, by the normal approximation: twice the upper tail of the standard normal
/// distribution; 1 where nothing varies.
pub fn two_sided(distance: f64, variance: f64) -> f64 {
    if variance > 0.0 && variance.is_finite() {
        libm::erfc(distance.max(0.0) / variance.sqrt() / std::f64::consts::SQRT_2).min(1.0)
    } else {
        1.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_quantile_of_a_half() {
        let mut random = fastrand::Rng::with_seed(5);
        for length in 1..40 {
            let values: Vec<f64> =
                (0..length).map(|_| f64::from(random.i16(-9..9)) / 7.0).collect();
            assert_eq!(median(&values).to_bits(), quantile(&values, 0.5).to_bits(), "{values:?}");
        }
        assert!(median(&[]).is_nan());
    }
}
