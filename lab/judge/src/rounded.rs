//! Floats as records write them: five significant digits, and `null` for what is not a number.
//! Five digits are two more than the best interval here resolves, and keep a record small.

use serde::de::DeserializeOwned;
use serde::ser::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use std::collections::BTreeMap;

const SIGNIFICANT: i32 = 5;

/// `value` rounded to five significant decimal digits.
pub fn round(value: f64) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return value;
    }
    format!("{value:.*e}", (SIGNIFICANT - 1) as usize).parse().unwrap_or(value)
}

/// All floats of a value rounded; what is not a number is `null` in one.
fn rounded(value: Value) -> Value {
    match value {
        Value::Number(number) if number.is_f64() => number.as_f64().map(round).into(),
        Value::Array(values) => values.into_iter().map(rounded).collect(),
        Value::Object(of) => of.into_iter().map(|(name, value)| (name, rounded(value))).collect(),
        other => other,
    }
}

/// Writes a value with its floats rounded.
///
/// # Errors
/// Errors of the serializer.
pub fn serialize<S: Serializer>(value: &impl Serialize, to: S) -> Result<S::Ok, S::Error> {
    rounded(serde_json::to_value(value).map_err(S::Error::custom)?).serialize(to)
}

/// A value that is written with rounded floats.
pub trait Rounded {
    /// Its form in a record.
    type Written: DeserializeOwned;

    /// The value of that form.
    fn read(written: Self::Written) -> Self;
}

impl Rounded for f64 {
    type Written = Option<f64>;

    fn read(written: Option<f64>) -> f64 {
        written.unwrap_or(f64::NAN)
    }
}

impl Rounded for Vec<f64> {
    type Written = Vec<Option<f64>>;

    fn read(written: Self::Written) -> Vec<f64> {
        written.into_iter().map(f64::read).collect()
    }
}

impl Rounded for (f64, f64) {
    type Written = (Option<f64>, Option<f64>);

    fn read((low, high): Self::Written) -> (f64, f64) {
        (f64::read(low), f64::read(high))
    }
}

impl Rounded for BTreeMap<String, f64> {
    type Written = BTreeMap<String, Option<f64>>;

    fn read(written: Self::Written) -> BTreeMap<String, f64> {
        written.into_iter().map(|(name, value)| (name, f64::read(value))).collect()
    }
}

/// Reads a value in which `null` is what is not a number.
///
/// # Errors
/// Errors of the deserializer, and of a value that has another form.
pub fn deserialize<'de, T: Rounded, D: Deserializer<'de>>(from: D) -> Result<T, D::Error> {
    T::Written::deserialize(from).map(T::read)
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
