//! Floats as records write them: five significant digits, and `null` for what is not a number.
//! Five digits are two more than the best interval here resolves, and keep a record small.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

const SIGNIFICANT: i32 = 5;

/// `value` rounded to five significant decimal digits.
pub(crate) fn round(value: f64) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return value;
    }
    format!("{value:.*e}", (SIGNIFICANT - 1) as usize).parse().unwrap_or(value)
}

fn writable(value: f64) -> Option<f64> {
    value.is_finite().then(|| round(value))
}

pub(crate) fn serialize<S: Serializer>(value: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    writable(*value).serialize(serializer)
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    Ok(Option::<f64>::deserialize(deserializer)?.unwrap_or(f64::NAN))
}

/// The same for vectors.
pub(crate) mod list {
    use super::*;

    pub(crate) fn serialize<S: Serializer>(
        values: &[f64],
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(values.iter().map(|value| writable(*value)))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Vec<f64>, D::Error> {
        let values = Vec::<Option<f64>>::deserialize(deserializer)?;
        Ok(values.into_iter().map(|value| value.unwrap_or(f64::NAN)).collect())
    }
}

/// The same for pairs.
pub(crate) mod pair {
    use super::*;

    pub(crate) fn serialize<S: Serializer>(
        pair: &(f64, f64),
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        (writable(pair.0), writable(pair.1)).serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<(f64, f64), D::Error> {
        let (low, high) = <(Option<f64>, Option<f64>)>::deserialize(deserializer)?;
        Ok((low.unwrap_or(f64::NAN), high.unwrap_or(f64::NAN)))
    }
}

/// The same for named figures.
pub(crate) mod map {
    use super::*;
    use std::collections::BTreeMap;

    pub(crate) fn serialize<S: Serializer>(
        values: &BTreeMap<String, f64>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_map(values.iter().map(|(name, value)| (name, writable(*value))))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<BTreeMap<String, f64>, D::Error> {
        let values = BTreeMap::<String, Option<f64>>::deserialize(deserializer)?;
        Ok(values.into_iter().map(|(name, value)| (name, value.unwrap_or(f64::NAN))).collect())
    }
}

/// Coordinates by name, which are compared and so written down exactly. Until November 2026 records
/// rounded them too: what a power of two was rounded to is that power again.
pub(crate) mod coordinates {
    use super::*;
    use std::collections::BTreeMap;

    pub(crate) fn serialize<S: Serializer>(
        values: &BTreeMap<String, f64>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let finite = |(name, value): (_, &f64)| (name, value.is_finite().then_some(*value));
        serializer.collect_map(values.iter().map(finite))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<BTreeMap<String, f64>, D::Error> {
        let mut values = map::deserialize(deserializer)?;
        values.values_mut().for_each(|value| *value = restored(*value));
        Ok(values)
    }

    fn restored(value: f64) -> f64 {
        let power = value.log2().round().exp2();
        if value > 0.0 && round(power) == value { power } else { value }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn five_digits_remain() {
        assert_eq!(round(1_234.567_891_2), 1234.6);
        assert_eq!(round(0.000_012_345_678_9), 0.000_012_346);
        assert_eq!(round(-1.000_004), -1.0);
        assert_eq!(round(0.0), 0.0);
        assert!(round(f64::INFINITY).is_infinite());
    }
    #[test]
    fn coordinates_are_exact_and_rounded_powers_are_powers_again() {
        #[derive(Serialize, Deserialize)]
        struct Cell(#[serde(with = "coordinates")] std::collections::BTreeMap<String, f64>);
        let of = |text: &str| serde_json::from_str::<Cell>(text).expect("coordinates").0;
        for (stored, meant) in [(134_220_000.0, 134_217_728.0), (2_097_200.0, 2_097_152.0)] {
            assert_eq!(of(&format!(r#"{{"chunk":{stored}}}"#))["chunk"], meant);
        }
        for kept in [0.0, 0.015625, 3.0, 74_973_184.0, 134_217_728.0, -4096.0] {
            let cell = Cell([("x".to_owned(), kept)].into());
            let text = serde_json::to_string(&cell).expect("text");
            assert_eq!(of(&text)["x"], kept, "{text}");
        }
        assert!(of(r#"{"x":null}"#)["x"].is_nan());
    }
}
