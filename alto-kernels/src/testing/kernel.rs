//! The kernels by name.

use std::fmt;

use burn::tensor::{DType, Device};

use super::comparison::Comparison;
use super::runs;
use super::shapes::Shape;
use super::tolerance::{ADAMW, ATTENTION, LOG_PROBS, LORA, RMS_NORM, ROTARY, SWIGLU, Tolerance};

/// A kernel of this crate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Kernel {
    /// [`multi_lora_linear`](crate::multi_lora_linear).
    MultiLoraLinear,
    /// [`causal_attention`](crate::causal_attention).
    CausalAttention,
    /// [`linear_log_probs`](crate::linear_log_probs).
    LinearLogProbs,
    /// [`rms_norm`](crate::rms_norm).
    RmsNorm,
    /// [`swiglu`](crate::swiglu).
    Swiglu,
    /// [`rotary`](crate::rotary).
    Rotary,
    /// [`grouped_adamw`](crate::grouped_adamw).
    GroupedAdamW,
}

impl Kernel {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::MultiLoraLinear,
        Self::CausalAttention,
        Self::LinearLogProbs,
        Self::RmsNorm,
        Self::Swiglu,
        Self::Rotary,
        Self::GroupedAdamW,
    ];

    /// The function's name.
    pub fn name(self) -> &'static str {
        match self {
            Self::MultiLoraLinear => "multi_lora_linear",
            Self::CausalAttention => "causal_attention",
            Self::LinearLogProbs => "linear_log_probs",
            Self::RmsNorm => "rms_norm",
            Self::Swiglu => "swiglu",
            Self::Rotary => "rotary",
            Self::GroupedAdamW => "grouped_adamw",
        }
    }

    /// How far it may be from its reference.
    pub const fn tolerance(self) -> Tolerance {
        match self {
            Self::MultiLoraLinear => LORA,
            Self::CausalAttention => ATTENTION,
            Self::LinearLogProbs => LOG_PROBS,
            Self::RmsNorm => RMS_NORM,
            Self::Swiglu => SWIGLU,
            Self::Rotary => ROTARY,
            Self::GroupedAdamW => ADAMW,
        }
    }

    /// Runs it forward and, where it is differentiable, backward on a device, from seeded numbers; each tensor that comes out
    /// beside its reference. `dtype` is that of weights and activations; what belongs to adapters is f32 always.
    ///
    /// Ask the device first whether it has the dtype: one that lacks it may give anything.
    ///
    /// # Panics
    /// If the kernel panics, as it does when a launch fails.
    pub fn compare(self, shape: &Shape, device: &Device, dtype: DType) -> Vec<Comparison> {
        let run = runs::Run { kernel: self, shape, device: &device.clone().autodiff(), dtype };
        match self {
            Self::MultiLoraLinear => runs::multi_lora_linear(&run),
            Self::CausalAttention => runs::causal_attention(&run),
            Self::LinearLogProbs => runs::linear_log_probs(&run),
            Self::RmsNorm => runs::rms_norm(&run),
            Self::Swiglu => runs::swiglu(&run),
            Self::Rotary => runs::rotary(&run),
            Self::GroupedAdamW => runs::grouped_adamw(&run),
        }
    }
}

impl fmt::Display for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
