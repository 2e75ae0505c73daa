//! How many bytes a batch takes: `fixed + adapter bytes + per_token * tokens + per_squared_token * squared tokens`.

use serde::{Deserialize, Serialize};

use super::least_squares::non_negative;

/// What a step puts on a device: the jobs attached, and the rows it computes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Load {
    /// Weights, gradients and optimizer state of the attached adapters, in bytes: known exactly.
    pub adapter_bytes: u64,
    /// Tokens in the batch.
    pub tokens: u64,
    /// Sum over the rows of their lengths squared; 0 where attention's memory grows with tokens alone.
    #[serde(default)]
    pub squared_tokens: u64,
}

impl Load {
    /// Both loads at once.
    pub fn plus(self, other: Load) -> Load {
        Load {
            adapter_bytes: self.adapter_bytes.saturating_add(other.adapter_bytes),
            tokens: self.tokens.saturating_add(other.tokens),
            squared_tokens: self.squared_tokens.saturating_add(other.squared_tokens),
        }
    }
}

impl std::iter::Sum for Load {
    fn sum<I: Iterator<Item = Load>>(loads: I) -> Load {
        loads.fold(Load::default(), Load::plus)
    }
}

/// One measurement of a profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MemorySample {
    /// What was on the device.
    pub load: Load,
    /// The most bytes in use during the step, adapters included.
    pub peak: u64,
}

/// The numbers of a memory model, each finite and at least 0.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Coefficients {
    /// Bytes in use whatever the batch, such as the base model's weights.
    pub fixed: f64,
    /// Bytes per token.
    pub per_token: f64,
    /// Bytes per squared token; 0 where attention's memory grows with tokens alone.
    pub per_squared_token: f64,
    /// The most by which the profile and the fit differ, in bytes.
    pub margin: f64,
}

/// Predicts the bytes that a load takes.
///
/// The default knows no cost but the adapters' own bytes: enough where the device has no budget.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(try_from = "Stored", into = "Stored")]
pub struct MemoryModel {
    /// Each finite and at least 0, so that a larger load never takes less.
    coefficients: Coefficients,
}

impl MemoryModel {
    /// Fits the coefficients to a profile by least squares, none of them negative, adapter bytes taken as given.
    ///
    /// `quadratic` adds a term in [`Load::squared_tokens`], for attention that keeps a matrix for each row. One
    /// sample more than there are coefficients is required, for a fit that passes through all of them has no
    /// residual and would claim to be exact.
    ///
    /// # Errors
    /// When there are too few samples (3, or 4 if quadratic), when they don't vary enough to tell the coefficients
    /// apart, or when one has a peak under its adapters' bytes.
    pub fn fit(samples: &[MemorySample], quadratic: bool) -> Result<Self, FitError> {
        let needed = if quadratic { 4 } else { 3 };
        if samples.len() < needed {
            return Err(FitError::TooFewSamples { found: samples.len(), needed });
        }
        let mut rest = Vec::with_capacity(samples.len());
        for (sample, MemorySample { load, peak }) in samples.iter().enumerate() {
            let Some(bytes) = peak.checked_sub(load.adapter_bytes) else {
                let (peak, adapter_bytes) = (*peak, load.adapter_bytes);
                return Err(FitError::PeakUnderAdapters { sample, peak, adapter_bytes });
            };
            rest.push(bytes as f64);
        }
        let mut columns = vec![vec![1.0; samples.len()], samples.iter().map(|s| s.load.tokens as f64).collect()];
        if quadratic {
            columns.push(samples.iter().map(|s| s.load.squared_tokens as f64).collect());
        }
        let x = non_negative(&columns, &rest).map_err(|dependent| match dependent.column {
            2 => FitError::SameRows { samples: samples.len() },
            _ => FitError::SameTokens { samples: samples.len(), tokens: samples[0].load.tokens },
        })?;
        let per_squared_token = x.get(2).copied().unwrap_or(0.0);
        let mut model =
            Self { coefficients: Coefficients { fixed: x[0], per_token: x[1], per_squared_token, margin: 0.0 } };
        let residual = |s: &MemorySample| (s.peak as f64 - model.bytes(&s.load)).abs();
        let margin = samples.iter().map(residual).fold(0.0, f64::max);
        model.coefficients.margin = margin;
        Ok(model)
    }

    /// A model of known coefficients.
    ///
    /// # Errors
    /// Names the first coefficient that is negative or not finite.
    pub fn from_coefficients(coefficients: Coefficients) -> Result<Self, ModelError> {
        let Coefficients { fixed, per_token, per_squared_token, margin } = coefficients;
        let named =
            [("fixed", fixed), ("per_token", per_token), ("per_squared_token", per_squared_token), ("margin", margin)];
        match named.into_iter().find(|(_, value)| !value.is_finite() || *value < 0.0) {
            Some((coefficient, value)) => Err(ModelError::BadCoefficient { coefficient, value }),
            None => Ok(Self { coefficients }),
        }
    }

    /// The model's numbers.
    pub fn coefficients(&self) -> Coefficients {
        self.coefficients
    }

    /// Bytes that the load is expected to take at its peak, rounded to the nearest.
    pub fn predict(&self, load: &Load) -> u64 {
        self.bytes(load).round() as u64
    }

    /// Bytes to set aside for the load: the prediction and the margin, rounded up.
    pub fn reserve(&self, load: &Load) -> u64 {
        (self.bytes(load) + self.coefficients.margin).ceil() as u64
    }

    /// The largest difference between the profile and the fit, in bytes.
    pub fn margin(&self) -> u64 {
        self.coefficients.margin.ceil() as u64
    }

    fn bytes(&self, load: &Load) -> f64 {
        let Coefficients { fixed, per_token, per_squared_token, .. } = self.coefficients;
        fixed
            + load.adapter_bytes as f64
            + per_token * load.tokens as f64
            + per_squared_token * load.squared_tokens as f64
    }
}

/// The version of a stored [`MemoryModel`].
pub const MEMORY_MODEL_VERSION: u32 = 1;

/// A memory model as a file has it.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Stored {
    version: u32,
    coefficients: Coefficients,
}

impl From<MemoryModel> for Stored {
    fn from(model: MemoryModel) -> Self {
        Self { version: MEMORY_MODEL_VERSION, coefficients: model.coefficients }
    }
}

impl TryFrom<Stored> for MemoryModel {
    type Error = ModelError;

    fn try_from(stored: Stored) -> Result<Self, ModelError> {
        if stored.version != MEMORY_MODEL_VERSION {
            return Err(ModelError::UnknownVersion { found: stored.version });
        }
        Self::from_coefficients(stored.coefficients)
    }
}

/// Why a profile gives no memory model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FitError {
    /// Fewer samples than leave a residual.
    #[error("the memory profile has {found} samples, it needs at least {needed}")]
    TooFewSamples {
        /// How many there are.
        found: usize,
        /// The least that do.
        needed: usize,
    },
    /// No two token counts, so the bytes per token can't be told from the fixed ones.
    #[error("all {samples} samples of the memory profile have {tokens} tokens, it needs at least two different counts")]
    SameTokens {
        /// How many samples there are.
        samples: usize,
        /// The token count of all of them.
        tokens: u64,
    },
    /// The squared row lengths follow from the token counts, so the bytes per token and per squared token can't be
    /// told apart.
    #[error(
        "in all {samples} samples of the memory profile the squared row lengths follow from the token counts, \
         it needs rows of different lengths"
    )]
    SameRows {
        /// How many samples there are.
        samples: usize,
    },
    /// A measured peak that can't be: the adapters alone take more.
    #[error("sample {sample} of the memory profile has a peak of {peak} bytes, but its adapters take {adapter_bytes}")]
    PeakUnderAdapters {
        /// Index of the sample.
        sample: usize,
        /// Its peak, in bytes.
        peak: u64,
        /// Its adapters' bytes.
        adapter_bytes: u64,
    },
}

/// Why numbers are no memory model.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ModelError {
    /// A coefficient that would make a larger load take less, or that is no number.
    #[error("the memory model's {coefficient} is {value}, expected a finite number of at least 0")]
    BadCoefficient {
        /// Its name.
        coefficient: &'static str,
        /// Its value.
        value: f64,
    },
    /// A file of another version.
    #[error("the memory model has version {found}, expected {MEMORY_MODEL_VERSION}")]
    UnknownVersion {
        /// Its version.
        found: u32,
    },
}
