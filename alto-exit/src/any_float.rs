//! Floats that survive JSON: one that is not finite is written as `"NaN"`, `"inf"` or `"-inf"`.
//!
//! JSON has no such numbers, and a loss that is not finite is what a curve must not lose.
//! Formats that people don't read (`is_human_readable` is false) get the plain float.

use std::fmt;

use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

pub(crate) fn serialize<S: Serializer>(value: &f64, to: S) -> Result<S::Ok, S::Error> {
    if value.is_finite() || !to.is_human_readable() {
        return to.serialize_f64(*value);
    }
    to.serialize_str(if value.is_nan() {
        "NaN"
    } else if *value > 0.0 {
        "inf"
    } else {
        "-inf"
    })
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
    if from.is_human_readable() { from.deserialize_any(AnyFloatVisitor) } else { from.deserialize_f64(AnyFloatVisitor) }
}

/// The same for a number that may be missing.
pub(crate) mod option {
    use super::{AnyFloat, Deserialize, Deserializer, Serialize, Serializer};

    pub(crate) fn serialize<S: Serializer>(value: &Option<f64>, to: S) -> Result<S::Ok, S::Error> {
        value.map(AnyFloat).serialize(to)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<f64>, D::Error> {
        Ok(Option::<AnyFloat>::deserialize(from)?.map(|AnyFloat(value)| value))
    }
}

/// The same for a list of numbers.
pub(crate) mod list {
    use super::{AnyFloat, Deserialize, Deserializer, Serializer};

    pub(crate) fn serialize<S: Serializer>(numbers: &[f64], to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(numbers.iter().map(|&value| AnyFloat(value)))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<f64>, D::Error> {
        let numbers = Vec::<AnyFloat>::deserialize(from)?;
        Ok(numbers.into_iter().map(|AnyFloat(value)| value).collect())
    }
}

/// The same for numbers by name.
pub(crate) mod map {
    use std::collections::BTreeMap;

    use super::{AnyFloat, Deserialize, Deserializer, Serializer};

    pub(crate) fn serialize<S: Serializer>(numbers: &BTreeMap<String, f64>, to: S) -> Result<S::Ok, S::Error> {
        to.collect_map(numbers.iter().map(|(name, &value)| (name, AnyFloat(value))))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<BTreeMap<String, f64>, D::Error> {
        let numbers = BTreeMap::<String, AnyFloat>::deserialize(from)?;
        Ok(numbers.into_iter().map(|(name, AnyFloat(value))| (name, value)).collect())
    }
}

#[derive(Serialize, Deserialize)]
#[serde(transparent)]
struct AnyFloat(#[serde(with = "self")] f64);

struct AnyFloatVisitor;

impl Visitor<'_> for AnyFloatVisitor {
    type Value = f64;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number, \"NaN\", \"inf\" or \"-inf\"")
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<f64, E> {
        Ok(value)
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<f64, E> {
        Ok(value as f64)
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<f64, E> {
        Ok(value as f64)
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<f64, E> {
        match value {
            "NaN" => Ok(f64::NAN),
            "inf" => Ok(f64::INFINITY),
            "-inf" => Ok(f64::NEG_INFINITY),
            _ => Err(E::invalid_value(serde::de::Unexpected::Str(value), &self)),
        }
    }
}
