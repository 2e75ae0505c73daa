//! Loops over f32 that the compiler turns into vector code, for the best instruction set found at run time.
//!
//! A loop goes into [`vectorized`]; what it calls must be `#[inline(always)]`: what stays a function of its own is compiled
//! for the baseline instruction set. Sums run in [`LANES`] partial sums, since the compiler may not reorder float additions
//! by itself.
//!
//! Tried: a function that takes a closure, instead of the macro. Only small closures were inlined, and a whole train step
//! took 8% longer.

/// Partial sums and maxima of a reduction: one AVX-512 register of f32.
const LANES: usize = 16;

/// Runs the expression with the widest vector instructions that this processor has.
macro_rules! vectorized {
    ($run:expr) => {
        pulp::Arch::new().dispatch($crate::flex::vector::Inlined(
            #[inline(always)]
            || $run,
        ))
    };
}
pub(super) use vectorized;

/// A closure that is called through `FnMut`, hence inlined: a call through `FnOnce` goes over a function that isn't.
pub(super) struct Inlined<F>(pub(super) F);

impl<R, F: FnMut() -> R> pulp::NullaryFnOnce for Inlined<F> {
    type Output = R;

    #[inline(always)]
    fn call(mut self) -> R {
        (self.0)()
    }
}

/// `e^x`, within 2 ulp for results that are normal numbers; NaN stays NaN, overflow saturates near `f32::MAX`,
/// underflow at the smallest normal number.
///
/// Cephes' scheme: `x = n ln 2 + r`, a polynomial of degree 6 for `e^r`, `n` into the exponent bits.
#[inline(always)]
pub(super) fn exp(x: f32) -> f32 {
    const ROUND: f32 = 12_582_912.0; // 1.5 * 2^23: adding it rounds to an integer, held in the low bits
    const LN2_HIGH: f32 = 0.693_359_4;
    const LN2_LOW: f32 = -2.121_944_4e-4;
    // Comparisons, not min and max: those would turn NaN into a number.
    let x = if x > 88.376_26 { 88.376_26 } else { x };
    let x = if x < -87.336_54 { -87.336_54 } else { x };
    let shifted = x * std::f32::consts::LOG2_E + ROUND;
    let n = shifted - ROUND;
    let r = x - n * LN2_HIGH - n * LN2_LOW;
    let mut p = 1.987_569_1e-4;
    for c in [1.398_199_9e-3, 8.333_452e-3, 4.166_579_6e-2, 1.666_666_5e-1, 5.000_000_3e-1] {
        p = p * r + c;
    }
    let power = p * r * r + r + 1.0;
    let exponent = (shifted.to_bits() as i32).wrapping_sub(ROUND.to_bits() as i32);
    let scale = f32::from_bits((exponent.wrapping_add(127) << 23) as u32);
    power * scale
}

/// The logistic function.
#[inline(always)]
pub(super) fn sigmoid(x: f32) -> f32 {
    1.0 / (1.0 + exp(-x))
}

/// Sum of `f` over the indices under `len`.
#[inline(always)]
pub(super) fn sum(len: usize, f: impl Fn(usize) -> f32) -> f32 {
    let mut partial = [0.0f32; LANES];
    let whole = len / LANES * LANES;
    for start in (0..whole).step_by(LANES) {
        for (lane, sum) in partial.iter_mut().enumerate() {
            *sum += f(start + lane);
        }
    }
    let rest: f32 = (whole..len).map(&f).sum();
    partial.iter().sum::<f32>() + rest
}

/// `sum(x[i] * y[i])`; the slices are equally long.
#[inline(always)]
pub(super) fn dot(x: &[f32], y: &[f32]) -> f32 {
    let y = &y[..x.len()];
    sum(x.len(), |i| x[i] * y[i])
}

/// The largest entry, minus infinity if there is none. Passes over NaN, which the exponentials taken next bring back.
#[inline(always)]
pub(super) fn max(x: &[f32]) -> f32 {
    let mut partial = [f32::NEG_INFINITY; LANES];
    let chunks = x.chunks_exact(LANES);
    let rest = chunks.remainder();
    let larger = |a: f32, b: f32| if b > a { b } else { a };
    for chunk in chunks {
        for (max, &x) in partial.iter_mut().zip(chunk) {
            *max = larger(*max, x);
        }
    }
    partial.iter().chain(rest).copied().fold(f32::NEG_INFINITY, larger)
}

/// Replaces each `x` by `e^(x - shift)` and returns their sum.
#[inline(always)]
pub(super) fn exp_sum(x: &mut [f32], shift: f32) -> f32 {
    let mut partial = [0.0f32; LANES];
    let mut chunks = x.chunks_exact_mut(LANES);
    for chunk in &mut chunks {
        for (sum, x) in partial.iter_mut().zip(chunk) {
            *x = exp(*x - shift);
            *sum += *x;
        }
    }
    let mut total = partial.iter().sum::<f32>();
    for x in chunks.into_remainder() {
        *x = exp(*x - shift);
        total += *x;
    }
    total
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exp_is_within_two_ulp() {
        for i in -8_700..8_800 {
            let x = i as f32 / 100.0 + 0.001_234;
            let (got, exact) = (exp(x), f64::from(x).exp());
            let ulp = f64::from(f32::from_bits((exact as f32).to_bits() + 1)) - f64::from(exact as f32);
            assert!((f64::from(got) - exact).abs() <= 2.0 * ulp, "exp({x}) = {got}, exactly {exact}");
        }
    }

    #[test]
    fn exp_keeps_nan_and_saturates() {
        assert!(exp(f32::NAN).is_nan());
        assert!(exp(f32::INFINITY) > 2e38);
        assert!(exp(f32::NEG_INFINITY) < 2e-38);
        assert_eq!(exp(0.0), 1.0);
    }

    #[test]
    fn reductions_take_every_entry() {
        for len in [0, 1, 15, 16, 17, 47, 64] {
            let x: Vec<f32> = (0..len).map(|i| (i * 7 % 13) as f32).collect();
            assert_eq!(sum(len, |i| x[i]), x.iter().sum::<f32>());
            assert_eq!(max(&x), x.iter().copied().fold(f32::NEG_INFINITY, f32::max));
            assert_eq!(dot(&x, &x), x.iter().map(|x| x * x).sum::<f32>());
        }
    }
}
