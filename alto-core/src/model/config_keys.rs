//! Typed access to a JSON configuration, with errors that name file, key and value.

use std::path::Path;

use serde_json::{Map, Value};

use super::error::ModelError;

/// The largest size taken seriously; products of two still fit 64 bits.
const LARGEST: u64 = i32::MAX as u64;

/// One object of a configuration file. A key that is null counts as absent.
#[derive(Clone, Copy)]
pub(super) struct Keys<'a> {
    pub(super) path: &'a Path,
    /// Written in front of keys in errors, such as `rope_scaling.`.
    pub(super) prefix: &'a str,
    pub(super) map: &'a Map<String, Value>,
}

impl<'a> Keys<'a> {
    pub(super) fn get(&self, key: &str) -> Option<&'a Value> {
        self.map.get(key).filter(|value| !value.is_null())
    }

    /// The error for this key's value.
    pub(super) fn wrong(&self, key: &str, expected: impl Into<String>) -> ModelError {
        let value = self.map.get(key).map_or("missing".to_owned(), Value::to_string);
        let key = format!("{}{key}", self.prefix);
        ModelError::Setting { path: self.path.to_owned(), key, value, expected: expected.into() }
    }

    pub(super) fn size(&self, key: &str) -> Result<Option<usize>, ModelError> {
        let Some(value) = self.get(key) else { return Ok(None) };
        match value.as_u64() {
            Some(size @ 1..=LARGEST) => Ok(Some(size as usize)),
            _ => Err(self.wrong(key, format!("a whole number from 1 to {LARGEST}"))),
        }
    }

    pub(super) fn required_size(&self, key: &str) -> Result<usize, ModelError> {
        self.size(key)?.ok_or_else(|| self.wrong(key, "a whole number of at least 1"))
    }

    pub(super) fn positive(&self, key: &str) -> Result<Option<f64>, ModelError> {
        let Some(value) = self.get(key) else { return Ok(None) };
        match value.as_f64() {
            Some(number) if number.is_finite() && number > 0.0 => Ok(Some(number)),
            _ => Err(self.wrong(key, "a finite positive number")),
        }
    }

    pub(super) fn required_positive(&self, key: &str) -> Result<f64, ModelError> {
        self.positive(key)?.ok_or_else(|| self.wrong(key, "a finite positive number"))
    }

    pub(super) fn flag(&self, key: &str) -> Result<bool, ModelError> {
        let Some(value) = self.get(key) else { return Ok(false) };
        value.as_bool().ok_or_else(|| self.wrong(key, "true or false"))
    }

    pub(super) fn text(&self, key: &str) -> Result<Option<&'a str>, ModelError> {
        let Some(value) = self.get(key) else { return Ok(None) };
        value.as_str().map(Some).ok_or_else(|| self.wrong(key, "text"))
    }

    pub(super) fn object(&self, key: &str) -> Result<Option<&'a Map<String, Value>>, ModelError> {
        let Some(value) = self.get(key) else { return Ok(None) };
        value.as_object().map(Some).ok_or_else(|| self.wrong(key, "an object or null"))
    }

    /// Refuses a number other than this one; absent is fine.
    pub(super) fn only_number(&self, key: &str, number: f64) -> Result<(), ModelError> {
        match self.get(key) {
            Some(value) if value.as_f64() != Some(number) => {
                Err(self.wrong(key, format!("{number}, anything else is not supported")))
            }
            _ => Ok(()),
        }
    }
}
