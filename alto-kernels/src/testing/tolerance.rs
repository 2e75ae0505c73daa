//! How far a kernel may be from the references, relative to the largest entry of the tensor compared.

use burn::tensor::DType;

use super::number::significand;

/// The largest relative error of rounding to f32.
const ROUNDING: f64 = 1.0 / (1 << 24) as f64;

/// How many roundings the error of a kernel may be worth.
///
/// A sum of `terms` products of random signs, added in any order, is off by some `sqrt(terms)` roundings of its own
/// typical size, and the largest entry of a tensor is a few times that. The number of roundings stands for the few
/// steps before and after the sum and for the unluckiest entry of a large tensor. Each is two to four times what the
/// table of shapes comes to.
#[derive(Debug, Clone, Copy)]
pub struct Tolerance {
    roundings: f64,
}

impl Tolerance {
    /// Of a tensor whose entries are sums of so many terms, computed from numbers of this dtype; relative to its largest.
    pub fn over(self, terms: usize, dtype: DType) -> f64 {
        self.roundings * ROUNDING * (terms.max(1) as f64).sqrt() + storage(dtype)
    }

    const fn of(roundings: f64) -> Self {
        Self { roundings }
    }
}

/// What 16-bit inputs and outputs add: sums are made in f32, so that only what is stored is rounded, a few times one after
/// another, however long the sums are.
fn storage(dtype: DType) -> f64 {
    const STORED: f64 = 4.0;
    if dtype == DType::F32 { 0.0 } else { STORED * 2.0f64.powi(-significand(dtype)) }
}

/// Up to three products one after another: base or gradient, down, up.
pub(super) const LORA: Tolerance = Tolerance::of(4.0);
/// Scores, whose absolute error is the relative error of their exponentials, then a mean of values.
pub(super) const ATTENTION: Tolerance = Tolerance::of(6.0);
/// Logits, likewise; their exponentials and a logarithm, 4 roundings each.
pub(super) const LOG_PROBS: Tolerance = Tolerance::of(12.0);
/// A sum of squares, none of them negative, then a handful of roundings.
pub(super) const RMS_NORM: Tolerance = Tolerance::of(4.0);
/// No sums; an exponential of 4 roundings, then up to eight operations.
pub(super) const SWIGLU: Tolerance = Tolerance::of(16.0);
/// Two products and their sum.
pub(super) const ROTARY: Tolerance = Tolerance::of(3.0);
/// A dozen operations one after another, and three steps of them.
pub(super) const ADAMW: Tolerance = Tolerance::of(8.0);
