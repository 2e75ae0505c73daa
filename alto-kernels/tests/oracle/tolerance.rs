//! How far f32 may be from the references, relative to the largest entry of the tensor compared.

/// The largest relative error of rounding to f32.
const ROUNDING: f64 = 1.0 / (1 << 24) as f64;

/// How many roundings the error of a kernel may be worth.
///
/// A sum of `terms` products of random signs, added in any order, is off by some `sqrt(terms)` roundings of its own
/// typical size, and the largest entry of a tensor is a few times that. The number of roundings stands for the few
/// steps before and after the sum and for the unluckiest entry of a large tensor. Each is two to four times what the
/// table of shapes comes to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tolerance {
    roundings: f64,
}

impl Tolerance {
    pub(crate) fn over(self, terms: usize) -> f64 {
        self.roundings * ROUNDING * (terms.max(1) as f64).sqrt()
    }
}

/// Up to three products one after another: base or gradient, down, up.
pub(crate) const LORA: Tolerance = Tolerance { roundings: 4.0 };
/// Scores, whose absolute error is the relative error of their exponentials, then a mean of values.
pub(crate) const ATTENTION: Tolerance = Tolerance { roundings: 6.0 };
/// Logits, likewise; their exponentials and a logarithm, 4 roundings each.
pub(crate) const LOG_PROBS: Tolerance = Tolerance { roundings: 12.0 };
/// A sum of squares, none of them negative, then a handful of roundings.
pub(crate) const RMS_NORM: Tolerance = Tolerance { roundings: 4.0 };
/// No sums; an exponential of 4 roundings, then up to eight operations.
pub(crate) const SWIGLU: Tolerance = Tolerance { roundings: 16.0 };
/// Two products and their sum.
pub(crate) const ROTARY: Tolerance = Tolerance { roundings: 3.0 };
/// A dozen operations one after another, and three steps of them.
pub(crate) const ADAMW: Tolerance = Tolerance { roundings: 8.0 };
