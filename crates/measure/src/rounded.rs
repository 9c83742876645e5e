//! Floats as records write them: five significant digits, and `null` for what is not a number.
//! Five digits are two more than the best interval here resolves, and keep a record small.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_with::{As, DeserializeAs, Same, SerializeAs};
use std::collections::BTreeMap;

/// A number, several, an interval, and figures by name: what `serde` is told of a field.
pub(crate) type Number = As<Short>;
pub(crate) type Numbers = As<Vec<Short>>;
pub(crate) type Interval = As<(Short, Short)>;
pub(crate) type Figures = As<BTreeMap<Same, Short>>;

const SIGNIFICANT: i32 = 5;

/// `value` rounded to five significant decimal digits.
pub(crate) fn round(value: f64) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return value;
    }
    format!("{value:.*e}", (SIGNIFICANT - 1) as usize).parse().unwrap_or(value)
}

/// How a float is written and read.
pub(crate) struct Short;

impl SerializeAs<f64> for Short {
    fn serialize_as<S: Serializer>(value: &f64, to: S) -> Result<S::Ok, S::Error> {
        value.is_finite().then(|| round(*value)).serialize(to)
    }
}

impl<'de> DeserializeAs<'de, f64> for Short {
    fn deserialize_as<D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
        Ok(Option::deserialize(from)?.unwrap_or(f64::NAN))
    }
}

/// Reads coordinates by name, which are compared and so written down exactly. Until November 2026 records
/// rounded them too: what a power of two was rounded to is that power again.
pub(crate) fn coordinates<'de, D: Deserializer<'de>>(
    from: D,
) -> Result<BTreeMap<String, f64>, D::Error> {
    let mut values: BTreeMap<String, f64> = Figures::deserialize(from)?;
    for value in values.values_mut() {
        let power = value.log2().round().exp2();
        if *value > 0.0 && round(power) == *value {
            *value = power;
        }
    }
    Ok(values)
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
        struct Cell(#[serde(deserialize_with = "coordinates")] BTreeMap<String, f64>);
        let of = |text: &str| serde_json::from_str::<Cell>(text).expect("coordinates").0;
        for (stored, meant) in [(134_220_000.0, 134_217_728.0), (2_097_200.0, 2_097_152.0)] {
            assert_eq!(of(&format!(r#"{{"chunk":{stored}}}"#))["chunk"], meant);
        }
        for kept in [0.0, 0.015625, 3.0, 74_973_184.0, 134_217_728.0, -4096.0] {
            let cell = Cell([("x".to_owned(), kept)].into());
            let text = serde_json::to_string(&cell).expect("text");
            assert_eq!(of(&text)["x"], kept, "{text}");
        }
        let text = serde_json::to_string(&Cell([("x".to_owned(), f64::NAN)].into())).expect("text");
        assert!(of(&text)["x"].is_nan(), "{text}");
    }
}
