//! From values to lengths, and which values get a tick.

use super::data::{Axis, Bar};
use super::value::{Quantity, Unit};

/// A straight or logarithmic map from values to a length. Monotone, and finite for every finite
/// value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scale {
    low: f64,
    high: f64,
    log: bool,
    start: f64,
    end: f64,
}

impl Scale {
    /// Maps `low` to `start` and `high` to `end`. A logarithm needs both positive and is straight
    /// otherwise; values that coincide get room to either side.
    pub fn new((low, high): (f64, f64), log: bool, (start, end): (f64, f64)) -> Scale {
        let is_range = low.is_finite() && high.is_finite() && low <= high;
        let (mut low, mut high) = if is_range { (low, high) } else { (0.0, 1.0) };
        let log = log && low > 0.0;
        if low == high && log {
            (low, high) = (low / 2.0, high * 2.0);
        } else if low == high {
            let room = if low == 0.0 { 1.0 } else { low.abs() / 2.0 };
            (low, high) = (low - room, high + room);
        }
        Scale { low, high, log, start, end }
    }

    /// For values of a quantity: a logarithm where they are ratios or span more than a decade, from zero
    /// otherwise; with that share of room beyond them, twice as much where only a logarithm shows them.
    pub fn of_values(
        quantity: &Quantity,
        values: impl Iterator<Item = f64>,
        room: f64,
        ends: (f64, f64),
    ) -> Scale {
        let line = quantity.is_ratio().then_some(1.0);
        let (low, high) = range(values.chain(line));
        let wide = high / low > 12.0 && !quantity.is_ratio();
        if low > 0.0 && (quantity.is_ratio() || wide) {
            let factor = if wide { 1.0 + 2.0 * room } else { 1.0 + room };
            return Scale::new((low / factor, high * factor), true, ends);
        }
        Scale::new((low.min(0.0), high * (1.0 + room)), false, ends)
    }

    /// Position of a value; values beyond the ends lie at the ends.
    pub fn at(&self, value: f64) -> f64 {
        let value = if value.is_nan() { self.low } else { value.clamp(self.low, self.high) };
        let share = if self.log {
            (value.ln() - self.low.ln()) / (self.high.ln() - self.low.ln())
        } else {
            (value - self.low) / (self.high - self.low)
        };
        self.start + (self.end - self.start) * share
    }

    /// The value at its end.
    pub fn most(&self) -> f64 {
        self.high
    }

    /// Returns whether it is logarithmic.
    pub fn is_log(&self) -> bool {
        self.log
    }

    /// Places on an axis that get a tick, at most about so many.
    pub fn ticks_of(&self, axis: &Axis, most: usize) -> Vec<f64> {
        if !axis.names.is_empty() || axis.places.len() <= most {
            return axis.places.clone();
        }
        match Unit::of(&axis.name) {
            Unit::Bytes if axis.log => self.binary_ticks(most),
            Unit::Bytes => self.multiples(self.least_step(most).log2().ceil().exp2(), most),
            _ => self.ticks(most),
        }
    }

    /// At most about `most` round values in its range: 1, 2 or 5 times a power of ten.
    pub fn ticks(&self, most: usize) -> Vec<f64> {
        if self.log { self.log_ticks(most) } else { self.straight_ticks(most) }
    }

    fn straight_ticks(&self, most: usize) -> Vec<f64> {
        let rough = self.least_step(most);
        let power = 10_f64.powf(rough.log10().floor());
        let factor = [1.0, 2.0, 5.0].into_iter().find(|factor| factor * power >= rough * 0.999);
        self.multiples(factor.unwrap_or(10.0) * power, most)
    }

    /// Between at most so many values.
    fn least_step(&self, most: usize) -> f64 {
        (self.high - self.low) / most.max(1) as f64
    }

    fn multiples(&self, step: f64, most: usize) -> Vec<f64> {
        if !(step.is_finite() && step > 0.0) {
            return vec![self.low];
        }
        let first = (self.low / step - 1e-9).ceil();
        (0..=most + 1)
            .map(|index| (first + index as f64) * step)
            .take_while(|tick| *tick <= self.high + step * 1e-9)
            .collect()
    }

    fn log_ticks(&self, most: usize) -> Vec<f64> {
        let all = [&[1.0, 2.0, 5.0][..], &[1.0, 3.0], &[1.0]].map(|factors| self.decades(factors));
        if let Some(ticks) = all.iter().find(|ticks| (2..=most).contains(&ticks.len())) {
            return ticks.clone();
        }
        let [.., decades] = all;
        if decades.len() < 2 {
            return self.straight_ticks(most);
        }
        let step = decades.len().div_ceil(most.max(1));
        decades.into_iter().step_by(step).collect()
    }

    fn decades(&self, factors: &[f64]) -> Vec<f64> {
        let first = self.low.log10().floor() as i32;
        let last = self.high.log10().ceil() as i32;
        (first..=last)
            .flat_map(|decade| factors.iter().map(move |factor| factor * 10_f64.powi(decade)))
            .filter(|tick| (self.low * 0.999..=self.high * 1.001).contains(tick))
            .collect()
    }

    /// Powers of two in its range, every fourth, second or every one, so that there are at most
    /// `most`: the ticks of an axis of sizes.
    fn binary_ticks(&self, most: usize) -> Vec<f64> {
        let first = self.low.max(1.0).log2().ceil() as i32;
        let last = self.high.max(1.0).log2().floor() as i32;
        let count = (last - first + 1).max(0) as usize;
        let step = [1, 2, 4, 5, 10].into_iter().find(|step| count.div_ceil(*step) <= most);
        (first..=last)
            .filter(|power| power.rem_euclid(step.unwrap_or(10) as i32) == 0)
            .map(|power| 2_f64.powi(power))
            .collect()
    }
}

impl Axis {
    /// The scale of its places between two lengths.
    pub(crate) fn scale(&self, ends: (f64, f64)) -> Scale {
        let [first, last] = [self.places.first(), self.places.last()];
        let range = (first.copied().unwrap_or(0.0), last.copied().unwrap_or(1.0));
        Scale::new(range, self.log, ends)
    }
}

/// The least and the greatest of the finite values.
pub(crate) fn range(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let ends = (f64::INFINITY, f64::NEG_INFINITY);
    let finite = values.filter(|value| value.is_finite());
    finite.fold(ends, |(low, high), value| (low.min(value), high.max(value)))
}

/// Bars of this many times the next shorter one are cut.
const FAR: f64 = 4.0;

/// The longest bar that is drawn whole, and how many are cut. A few that are far beyond all others would flatten
/// them; figures say how long they are.
pub(crate) fn longest_bar(bars: &[Bar<'_>]) -> (f64, usize) {
    let mut ends: Vec<f64> = bars.iter().map(|bar| bar.point.value.mid.max(0.0)).collect();
    ends.sort_unstable_by(f64::total_cmp);
    let count = ends.len();
    let few = (count / 4).max(1);
    let far = |at: &usize| ends[at - 1] > 0.0 && ends[*at] > FAR * ends[at - 1];
    match (count.saturating_sub(few).max(1)..count).find(far) {
        Some(at) => (1.2 * ends[at - 1], count - at),
        None => (ends.last().copied().unwrap_or(0.0), 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn scales_are_monotone_and_finite(
            low in -1e12_f64..1e12,
            width in 0.0_f64..1e12,
            a in -2e12_f64..2e12,
            b in -2e12_f64..2e12,
            log: bool,
        ) {
            let scale = Scale::new((low, low + width), log, (10.0, 90.0));
            let (a, b) = (a.min(b), a.max(b));
            prop_assert!(scale.at(a).is_finite() && scale.at(a) <= scale.at(b));
            prop_assert!((10.0..=90.0).contains(&scale.at(b)));
        }

        #[test]
        fn ticks_rise_stay_inside_and_are_few(
            low in 1e-6_f64..1e9,
            factor in 1.0_f64..1e9,
            log: bool,
        ) {
            let scale = Scale::new((low, low * factor), log, (0.0, 1.0));
            let Scale { low, high, .. } = scale;
            for ticks in [scale.ticks(6), scale.binary_ticks(6)] {
                prop_assert!(ticks.windows(2).all(|pair| pair[0] < pair[1]), "{ticks:?}");
                prop_assert!(ticks.iter().all(|tick| {
                    (low * 0.998..=high * 1.002).contains(tick)
                }), "{ticks:?} in {low} {high}");
                prop_assert!(ticks.len() <= 8, "{ticks:?}");
            }
        }
    }

    #[test]
    fn sizes_on_a_straight_axis_get_multiples_of_a_power_of_two() {
        let places = [0.0, 1.0, 16.0, 64.0, 256.0, 1024.0, 2047.0, 2048.0, 2049.0];
        let name = "offset".to_owned();
        let axis = Axis { name, log: false, places: places.to_vec(), names: Vec::new() };
        let ticks = axis.scale((0.0, 1.0)).ticks_of(&axis, 5);
        assert_eq!(ticks, [0.0, 512.0, 1024.0, 1536.0, 2048.0]);
    }

    #[test]
    fn sizes_on_a_logarithmic_axis_get_powers_of_two() {
        let sizes = Scale::new((256.0, 67_108_864.0), true, (0.0, 1.0));
        assert_eq!(sizes.binary_ticks(6).len(), 5);
    }
}
