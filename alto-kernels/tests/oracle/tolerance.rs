//! The library's tolerances at the dtype under test.

use alto_kernels::testing::Kernel;
pub(crate) use alto_kernels::testing::{largest, rounded, smallest};

use crate::device::dtype;

/// How far a kernel may be from its reference.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tolerance(Kernel);

impl Tolerance {
    /// Of sums of so many terms, relative to the largest entry of the tensor compared.
    pub(crate) fn over(self, terms: usize) -> f64 {
        self.0.tolerance().over(terms, dtype())
    }
}

pub(crate) const LORA: Tolerance = Tolerance(Kernel::MultiLoraLinear);
pub(crate) const ATTENTION: Tolerance = Tolerance(Kernel::CausalAttention);
pub(crate) const LOG_PROBS: Tolerance = Tolerance(Kernel::LinearLogProbs);
pub(crate) const RMS_NORM: Tolerance = Tolerance(Kernel::RmsNorm);
pub(crate) const SWIGLU: Tolerance = Tolerance(Kernel::Swiglu);
pub(crate) const ROTARY: Tolerance = Tolerance(Kernel::Rotary);
pub(crate) const ADAMW: Tolerance = Tolerance(Kernel::GroupedAdamW);
