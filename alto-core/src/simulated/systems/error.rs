//! Why a cost can't be computed.

use std::path::PathBuf;

use crate::dtype::Dtype;

/// Why a system's cost can't be computed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CostError {
    /// A file that can't be read.
    #[error("{}: can't be read", path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// Not TOML, or a parameter is missing, unknown or of the wrong type.
    #[error("{path} doesn't hold {expected}")]
    Toml {
        /// The file, or what was given instead.
        path: String,
        /// What it should hold.
        expected: &'static str,
        /// What is wrong, with the line.
        #[source]
        source: Box<toml::de::Error>,
    },
    /// A file with a parameter that can't be computed with.
    #[error("{}: no device that can be computed with", path.display())]
    InFile {
        /// The file.
        path: PathBuf,
        /// Which parameter, and why not.
        #[source]
        source: Box<CostError>,
    },
    /// Another version of the format.
    #[error("{name}: version is {found}, expected {expected}")]
    Version {
        /// Of the device.
        name: String,
        /// The version.
        found: u32,
        /// The version that is read.
        expected: u32,
    },
    /// A number that can't be computed with.
    #[error("{name}: {parameter} is {value}, expected a finite number over 0")]
    NotPositive {
        /// Of the device, the model or the system.
        name: String,
        /// Which parameter.
        parameter: &'static str,
        /// Its value.
        value: f64,
    },
    /// A parameter that this system needs.
    #[error("{name}: {parameter} is missing, which {why} needs")]
    Missing {
        /// Of the device.
        name: String,
        /// Which parameter.
        parameter: &'static str,
        /// What needs it.
        why: &'static str,
    },
    /// A dtype that the device has no rate for.
    #[error("{name}: flops.{dtype} is missing, which a model in {dtype} needs")]
    NoRate {
        /// Of the device.
        name: String,
        /// The dtype.
        dtype: Dtype,
    },
    /// A name that nothing shipped has.
    #[error("no {what} is named {name:?}; there are {known}")]
    Unknown {
        /// Device or model.
        what: &'static str,
        /// The name asked for.
        name: String,
        /// The names there are, separated by commas.
        known: String,
    },
    /// A model of fewer blocks than it is to be cut into.
    #[error("{model} has {layers} layers, which can't be cut into {devices} stages")]
    TooManyStages {
        /// The model.
        model: String,
        /// Its blocks.
        layers: usize,
        /// The stages.
        devices: usize,
    },
}

/// Checks that a parameter is a finite number over 0.
pub(super) fn positive(name: &str, parameter: &'static str, value: f64) -> Result<f64, CostError> {
    if value.is_finite() && value > 0.0 {
        return Ok(value);
    }
    Err(CostError::NotPositive { name: name.to_owned(), parameter, value })
}
