//! What numbers a model computes in.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A floating-point type, of a frozen model's weights and activations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Dtype {
    /// 32 bits, 24 of them significand.
    #[default]
    F32,
    /// IEEE's 16 bits, 11 of them significand; at most 65504.
    F16,
    /// The first 16 bits of an f32, 8 of them significand.
    Bf16,
}

impl Dtype {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::F32, Self::F16, Self::Bf16];

    /// Its usual name, such as `bf16`.
    pub fn name(self) -> &'static str {
        match self {
            Self::F32 => "f32",
            Self::F16 => "f16",
            Self::Bf16 => "bf16",
        }
    }

    /// Bytes of one number.
    pub fn bytes(self) -> usize {
        match self {
            Self::F32 => 4,
            Self::F16 | Self::Bf16 => 2,
        }
    }

    /// The largest finite number.
    pub fn largest(self) -> f32 {
        match self {
            Self::F32 => f32::MAX,
            Self::F16 => half::f16::MAX.to_f32(),
            Self::Bf16 => half::bf16::MAX.to_f32(),
        }
    }
}

impl fmt::Display for Dtype {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A name that is no dtype's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{found} is no dtype, expected f32, f16 or bf16")]
pub struct UnknownDtype {
    /// The name.
    pub found: String,
}

impl FromStr for Dtype {
    type Err = UnknownDtype;

    fn from_str(name: &str) -> Result<Self, UnknownDtype> {
        let known = Self::ALL.into_iter().find(|dtype| dtype.name() == name);
        known.ok_or_else(|| UnknownDtype { found: name.to_owned() })
    }
}
