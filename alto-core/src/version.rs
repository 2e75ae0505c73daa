//! Refuses files of a version that this code doesn't know.

use serde::de::Error;
use serde::{Deserialize, Deserializer};

/// A version number that must be `KNOWN`.
pub(crate) fn known<'de, const KNOWN: u32, D: Deserializer<'de>>(from: D) -> Result<u32, D::Error> {
    match u32::deserialize(from)? {
        found if found == KNOWN => Ok(found),
        found => Err(D::Error::custom(format_args!("version {found} is unknown, expected {KNOWN}"))),
    }
}
