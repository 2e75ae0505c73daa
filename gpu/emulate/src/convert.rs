//! Conversions from one type to another.

use std::array::from_fn;

use crate::half::{from_bf16, from_f16, to_bf16, to_f16};
use crate::instruction::{One, Two};
use crate::values::Value;

/// The function of `cvt.{options}.{to}.{from}`.
pub(crate) fn convert(options: &[&str], to: &str, from: &str) -> Option<One> {
    if options.contains(&"sat") {
        return match (to, from) {
            ("f32", "f32") => Some(|a| a.map(|bits| saturated(f32::of(bits)).bits())),
            _ => None,
        };
    }
    let is_float = |name: &str| matches!(name, "f16" | "bf16" | "f32" | "f64");
    match (is_float(from), is_float(to)) {
        (false, false) => integer_to_integer(to, from),
        (false, true) => integer_to_float(to, from),
        (true, false) => float_to_integer(options, to, from),
        (true, true) => float_to_float(options, to, from),
    }
}

/// The function of `cvt.rn.{pair}.f32`, whose first operand becomes the upper half.
pub(crate) fn convert_pair(to: &str) -> Option<Two> {
    fn pair(to: fn(f64) -> u16, upper: u64, lower: u64) -> u64 {
        let half = |bits: u64| u64::from(to(f64::from(f32::of(bits))));
        half(upper) << 16 | half(lower)
    }
    match to {
        "f16x2" => Some(|a, b| from_fn(|lane| pair(to_f16, a[lane], b[lane]))),
        "bf16x2" => Some(|a, b| from_fn(|lane| pair(to_bf16, a[lane], b[lane]))),
        _ => None,
    }
}

/// NaN becomes 0.
fn saturated(value: f32) -> f32 {
    if value.is_nan() { 0.0 } else { value.clamp(0.0, 1.0) }
}

/// By the narrower: a longer one extends it by its sign, if it has one.
fn integer_to_integer(to: &str, from: &str) -> Option<One> {
    macro_rules! make {
        ($to:ty, $from:ty) => {
            Some(|a| a.map(|bits| (<$from>::of(bits) as $to).bits()))
        };
    }
    macro_rules! with_source {
        ($to:ty) => {
            match from {
                "u8" => make!($to, u8),
                "s8" => make!($to, i8),
                "u16" => make!($to, u16),
                "s16" => make!($to, i16),
                "u32" => make!($to, u32),
                "s32" => make!($to, i32),
                "u64" => make!($to, u64),
                "s64" => make!($to, i64),
                _ => None,
            }
        };
    }
    match to {
        "u8" => with_source!(u8),
        "s8" => with_source!(i8),
        "u16" => with_source!(u16),
        "s16" => with_source!(i16),
        "u32" => with_source!(u32),
        "s32" => with_source!(i32),
        "u64" => with_source!(u64),
        "s64" => with_source!(i64),
        _ => None,
    }
}

fn integer_to_float(to: &str, from: &str) -> Option<One> {
    macro_rules! make {
        ($from:ty) => {
            match to {
                "f32" => Some(|a| a.map(|bits| (<$from>::of(bits) as f32).bits())),
                "f64" => Some(|a| a.map(|bits| (<$from>::of(bits) as f64).bits())),
                "f16" => Some(|a| a.map(|bits| u64::from(to_f16(<$from>::of(bits) as f64)))),
                "bf16" => Some(|a| a.map(|bits| u64::from(to_bf16(<$from>::of(bits) as f64)))),
                _ => None,
            }
        };
    }
    match from {
        "u8" => make!(u8),
        "u16" => make!(u16),
        "s16" => make!(i16),
        "u32" => make!(u32),
        "s32" => make!(i32),
        "u64" => make!(u64),
        "s64" => make!(i64),
        _ => None,
    }
}

/// Out of range becomes the nearest in it, and NaN 0.
fn float_to_integer(options: &[&str], to: &str, from: &str) -> Option<One> {
    if from != "f32" {
        return None;
    }
    macro_rules! make {
        ($round:expr) => {
            match to {
                "u32" => Some(|a| a.map(|bits| ($round(f64::from(f32::of(bits))) as u32).bits())),
                "s32" => Some(|a| a.map(|bits| ($round(f64::from(f32::of(bits))) as i32).bits())),
                "u64" => Some(|a| a.map(|bits| ($round(f64::from(f32::of(bits))) as u64).bits())),
                "s64" => Some(|a| a.map(|bits| ($round(f64::from(f32::of(bits))) as i64).bits())),
                _ => None,
            }
        };
    }
    match options.iter().find(|option| option.starts_with('r')) {
        Some(&"rzi") => make!(f64::trunc),
        Some(&"rni") => make!(f64::round_ties_even),
        Some(&"rmi") => make!(f64::floor),
        Some(&"rpi") => make!(f64::ceil),
        _ => None,
    }
}

fn float_to_float(options: &[&str], to: &str, from: &str) -> Option<One> {
    macro_rules! make {
        ($from:expr) => {
            match to {
                "f32" => Some(|a| a.map(|bits| (f64::from($from(bits)) as f32).bits())),
                "f64" => Some(|a| a.map(|bits| f64::from($from(bits)).bits())),
                "f16" => Some(|a| a.map(|bits| u64::from(to_f16(f64::from($from(bits)))))),
                "bf16" => Some(|a| a.map(|bits| u64::from(to_bf16(f64::from($from(bits)))))),
                _ => None,
            }
        };
    }
    match (options.iter().find(|option| option.starts_with('r')), from, to) {
        // To whole numbers of the same type.
        (Some(&"rni"), "f32", "f32") => Some(|a| a.map(|bits| f32::of(bits).round_ties_even().bits())),
        (Some(&"rzi"), "f32", "f32") => Some(|a| a.map(|bits| f32::of(bits).trunc().bits())),
        (Some(&"rmi"), "f32", "f32") => Some(|a| a.map(|bits| f32::of(bits).floor().bits())),
        (Some(&"rpi"), "f32", "f32") => Some(|a| a.map(|bits| f32::of(bits).ceil().bits())),
        (None | Some(&"rn"), "f16", _) => make!(|bits: u64| from_f16(bits as u16)),
        (None | Some(&"rn"), "bf16", _) => make!(|bits: u64| from_bf16(bits as u16)),
        (None | Some(&"rn"), "f32", _) => make!(f32::of),
        (None | Some(&"rn"), "f64", _) => make!(f64::of),
        _ => None,
    }
}
