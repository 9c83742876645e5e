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
}
