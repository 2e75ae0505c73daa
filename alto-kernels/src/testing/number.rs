//! Which numbers a dtype has.

use burn::tensor::DType;

/// Bits of the dtype's significand, the hidden one included.
pub(super) fn significand(dtype: DType) -> i32 {
    match dtype {
        DType::F16 => 11,
        DType::BF16 => 8,
        _ => 24,
    }
}

/// The exponent of the dtype's smallest normal number; below it, numbers are as far apart as there.
fn least_exponent(dtype: DType) -> i32 {
    if dtype == DType::F16 { -14 } else { -126 }
}

/// The smallest normal number of f32, f16 or bf16.
pub fn smallest(dtype: DType) -> f64 {
    2.0f64.powi(least_exponent(dtype))
}

/// The largest number of f32, f16 or bf16.
pub fn largest(dtype: DType) -> f64 {
    (2.0 - 2.0f64.powi(1 - significand(dtype))) * 2.0f64.powi(1 - least_exponent(dtype))
}

/// The number nearest to this one that f32, f16 or bf16 has, unless it overflows.
pub fn rounded(number: f64, dtype: DType) -> f64 {
    if number == 0.0 {
        return number;
    }
    let exponent = (number.abs().log2().floor() as i32).max(least_exponent(dtype));
    let unit = 2.0f64.powi(exponent + 1 - significand(dtype));
    (number / unit).round_ties_even() * unit
}

#[cfg(test)]
mod tests {
    use super::*;
    use burn::tensor::{bf16, f16};

    #[test]
    fn numbers_are_those_of_the_types() {
        let exact = f64::from;
        assert_eq!(
            [DType::F32, DType::F16, DType::BF16].map(largest),
            [exact(f32::MAX), f16::MAX.to_f64(), bf16::MAX.to_f64()]
        );
        assert_eq!(
            [DType::F32, DType::F16, DType::BF16].map(smallest),
            [exact(f32::MIN_POSITIVE), f16::MIN_POSITIVE.to_f64(), bf16::MIN_POSITIVE.to_f64()]
        );
        for number in [0.1, -3.3e-5, 1.0 / 3.0, 6e-8, 60_000.0, 257.0] {
            assert_eq!(rounded(number, DType::F32), exact(number as f32));
            assert_eq!(rounded(number, DType::F16), f16::from_f64(number).to_f64());
            assert_eq!(rounded(number, DType::BF16), bf16::from_f64(number).to_f64());
        }
    }
}
