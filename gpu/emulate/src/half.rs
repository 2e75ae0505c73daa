//! The two 16-bit floating-point formats.

/// An f16's value.
pub(crate) fn from_f16(bits: u16) -> f32 {
    let (exponent, fraction) = (u32::from(bits >> 10) & 31, u32::from(bits & 0x3ff));
    let sign = u32::from(bits >> 15) << 31;
    let magnitude = match exponent {
        // Subnormal: the fraction counts 2^-24s.
        0 => (fraction as f32 / (1 << 24) as f32).to_bits(),
        31 => 0x7f80_0000 | fraction << 13,
        _ => (exponent + 112) << 23 | fraction << 13,
    };
    f32::from_bits(sign | magnitude)
}

/// A bf16's value.
pub(crate) fn from_bf16(bits: u16) -> f32 {
    f32::from_bits(u32::from(bits) << 16)
}

/// The nearest f16, ties to even.
pub(crate) fn to_f16(value: f64) -> u16 {
    encode(value, 5, 10)
}

/// The nearest bf16, ties to even.
pub(crate) fn to_bf16(value: f64) -> u16 {
    encode(value, 8, 7)
}

fn encode(value: f64, exponent_bits: u32, fraction_bits: i32) -> u16 {
    let bias = (1 << (exponent_bits - 1)) - 1;
    let infinity = ((1u64 << exponent_bits) - 1) << fraction_bits;
    let sign = u16::from(value.is_sign_negative()) << 15;
    if value.is_nan() {
        // The canonical NaN of both formats.
        return 0x7fff;
    }
    let magnitude = value.abs();
    // Below the least normal exponent, numbers are as far apart as there.
    let exponent = ((magnitude.to_bits() >> 52) as i32 - 1023).max(1 - bias);
    let unit = power_of_two(exponent - fraction_bits);
    // Exact: at most 2^(fraction_bits + 1) units, unless it overflows.
    let units = (magnitude / unit).round_ties_even();
    let bits = if units.is_finite() && magnitude < 1e300 {
        // The hidden bit carries into the exponent, and so does rounding up to the next power.
        (((exponent + bias - 1) as u64) << fraction_bits) + units as u64
    } else {
        infinity
    };
    sign | bits.min(infinity) as u16
}

fn power_of_two(exponent: i32) -> f64 {
    f64::from_bits(((exponent + 1023) as u64) << 52)
}

#[cfg(test)]
mod tests {
    use super::{from_bf16, from_f16, to_bf16, to_f16};

    #[test]
    fn every_number_comes_back() {
        for bits in 0..=u16::MAX {
            let (half, brain) = (from_f16(bits), from_bf16(bits));
            assert!(half.is_nan() || to_f16(f64::from(half)) == bits, "f16 {bits:#x}");
            assert!(brain.is_nan() || to_bf16(f64::from(brain)) == bits, "bf16 {bits:#x}");
        }
        assert_eq!(from_f16(0x3c00), 1.0);
        assert_eq!(from_f16(0x0001), 2.0f32.powi(-24));
        assert_eq!(from_f16(0xfbff), -65504.0);
        assert_eq!(from_bf16(0x3fc0), 1.5);
    }

    #[test]
    fn ties_go_to_even_and_what_is_too_large_to_infinity() {
        let ulp = 2.0f64.powi(-10);
        assert_eq!(to_f16(1.0 + 0.5 * ulp), 0x3c00);
        assert_eq!(to_f16(1.0 + 1.5 * ulp), 0x3c02);
        assert_eq!(to_f16(1.0 + 0.51 * ulp), 0x3c01);
        assert_eq!(to_f16(65519.0), 0x7bff);
        assert_eq!(to_f16(65520.0), 0x7c00);
        assert_eq!(to_bf16(-f64::INFINITY), 0xff80);
        assert_eq!(to_bf16(f64::from(f32::MAX)), 0x7f80);
        assert_eq!(to_f16(2.0f64.powi(-25)), 0);
        assert_eq!(to_f16(1.5 * 2.0f64.powi(-25)), 1);
        assert_eq!(to_f16(0.0), 0);
        assert_eq!(to_f16(-0.0), 0x8000);
    }
}
