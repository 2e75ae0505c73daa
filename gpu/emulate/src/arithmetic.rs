//! What arithmetic, logical and comparing instructions compute, for all lanes at a time.

use std::array::from_fn;
use std::cmp::Ordering;

use crate::instruction::{One, Three, Two};
use crate::values::{Bf16, Bf16Pair, F16, F16Pair, Float, Value};

macro_rules! one {
    (|$a:ident: $type:ty| $result:expr) => {
        (|a| {
            from_fn(|lane| {
                let $a = <$type>::of(a[lane]);
                Value::bits($result)
            })
        }) as One
    };
}
macro_rules! two {
    (|$a:ident: $first:ty, $b:ident: $second:ty| $result:expr) => {
        (|a, b| {
            from_fn(|lane| {
                let ($a, $b) = (<$first>::of(a[lane]), <$second>::of(b[lane]));
                Value::bits($result)
            })
        }) as Two
    };
}
macro_rules! three {
    (|$a:ident: $first:ty, $b:ident: $second:ty, $c:ident: $third:ty| $result:expr) => {
        (|a, b, c| {
            from_fn(|lane| {
                let ($a, $b, $c) = (<$first>::of(a[lane]), <$second>::of(b[lane]), <$third>::of(c[lane]));
                Value::bits($result)
            })
        }) as Three
    };
}

/// A function for whichever integer type the name says.
macro_rules! by_integer {
    ($name:expr, $make:ident) => {
        match $name {
            "u16" | "b16" => $make!(u16),
            "s16" => $make!(i16),
            "u32" | "b32" => $make!(u32),
            "s32" => $make!(i32),
            "u64" | "b64" => $make!(u64),
            "s64" => $make!(i64),
            _ => return None,
        }
    };
}

/// A function for whichever float type the name says, computed with as f32.
macro_rules! by_float {
    ($name:expr, $make:ident) => {
        match $name {
            "f32" => $make!(f32),
            "f16" => $make!(F16),
            "bf16" => $make!(Bf16),
            "f16x2" => $make!(F16Pair),
            "bf16x2" => $make!(Bf16Pair),
            _ => return None,
        }
    };
}

/// The function of `name.type`, of one operand.
pub(crate) fn one(name: &str, of: &str) -> Option<One> {
    macro_rules! float {
        ($f:expr) => {{
            macro_rules! make {
                ($type:ty) => {
                    one!(|a: $type| a.map($f))
                };
            }
            by_float!(of, make)
        }};
    }
    macro_rules! negate {
        ($type:ty) => {
            one!(|a: $type| a.wrapping_neg())
        };
    }
    macro_rules! not {
        ($type:ty) => {
            one!(|a: $type| !a)
        };
    }
    Some(match (name, of) {
        ("mov", _) => one!(|a: u64| a),
        ("not", "pred") => one!(|a: u64| a ^ 1),
        ("not", _) => by_integer!(of, not),
        ("neg", "s16" | "s32" | "s64") => by_integer!(of, negate),
        ("abs", "s32") => one!(|a: i32| a.wrapping_abs()),
        ("popc", "b32") => one!(|a: u32| a.count_ones()),
        ("clz", "b32") => one!(|a: u32| a.leading_zeros()),
        ("brev", "b32") => one!(|a: u32| a.reverse_bits()),
        ("neg", _) => float!(|a| -a),
        ("abs", _) => float!(f32::abs),
        ("sqrt", _) => float!(f32::sqrt),
        ("rsqrt", _) => float!(|a| (1.0 / f64::from(a).sqrt()) as f32),
        ("rcp", _) => float!(|a| 1.0 / a),
        ("ex2", _) => float!(|a| f64::from(a).exp2() as f32),
        ("lg2", _) => float!(|a| f64::from(a).log2() as f32),
        ("tanh", _) => float!(|a| f64::from(a).tanh() as f32),
        ("sin", _) => float!(|a| f64::from(a).sin() as f32),
        ("cos", _) => float!(|a| f64::from(a).cos() as f32),
        _ => return None,
    })
}

/// The function of `name.type`, of two operands.
pub(crate) fn two(name: &str, of: &str) -> Option<Two> {
    macro_rules! integer {
        (|$a:ident, $b:ident| $f:expr) => {{
            macro_rules! make {
                ($type:ty) => {
                    two!(|$a: $type, $b: $type| $f)
                };
            }
            by_integer!(of, make)
        }};
    }
    macro_rules! shift {
        (|$a:ident, $b:ident| $f:expr) => {{
            macro_rules! make {
                ($type:ty) => {
                    two!(|$a: $type, $b: u32| $f)
                };
            }
            by_integer!(of, make)
        }};
    }
    macro_rules! float {
        ($f:expr) => {{
            macro_rules! make {
                ($type:ty) => {
                    two!(|a: $type, b: $type| a.with(b, $f))
                };
            }
            by_float!(of, make)
        }};
    }
    macro_rules! shift_right {
        ($type:ty) => {
            two!(|a: $type, b: u32| {
                let most = <$type>::BITS - 1;
                // Past all bits, what comes in is all there is: zeros, or the sign.
                if b <= most { a >> b } else { (a >> most) >> 1 }
            })
        };
    }
    let is_float = of.contains('f');
    Some(match (name, of) {
        ("and", "pred") => two!(|a: u64, b: u64| a & b),
        ("or", "pred") => two!(|a: u64, b: u64| a | b),
        ("xor", "pred") => two!(|a: u64, b: u64| a ^ b),
        ("and", _) => integer!(|a, b| a & b),
        ("or", _) => integer!(|a, b| a | b),
        ("xor", _) => integer!(|a, b| a ^ b),
        // Bits shifted out are gone, however far.
        ("shl", _) => shift!(|a, b| a.checked_shl(b).unwrap_or(0)),
        ("shr", _) => by_integer!(of, shift_right),
        ("mul.wide", "u16") => two!(|a: u16, b: u16| u32::from(a) * u32::from(b)),
        ("mul.wide", "s16") => two!(|a: i16, b: i16| i32::from(a) * i32::from(b)),
        ("mul.wide", "u32") => two!(|a: u32, b: u32| u64::from(a) * u64::from(b)),
        ("mul.wide", "s32") => two!(|a: i32, b: i32| i64::from(a) * i64::from(b)),
        ("mul.hi", "u16") => two!(|a: u16, b: u16| ((u32::from(a) * u32::from(b)) >> 16) as u16),
        ("mul.hi", "u32") => two!(|a: u32, b: u32| ((u64::from(a) * u64::from(b)) >> 32) as u32),
        ("mul.hi", "s32") => two!(|a: i32, b: i32| ((i64::from(a) * i64::from(b)) >> 32) as i32),
        ("mul.hi", "u64") => two!(|a: u64, b: u64| ((u128::from(a) * u128::from(b)) >> 64) as u64),
        ("mul.lo", _) => integer!(|a, b| a.wrapping_mul(b)),
        ("add", _) if !is_float => integer!(|a, b| a.wrapping_add(b)),
        ("sub", _) if !is_float => integer!(|a, b| a.wrapping_sub(b)),
        ("min", _) if !is_float => integer!(|a, b| a.min(b)),
        ("max", _) if !is_float => integer!(|a, b| a.max(b)),
        // Division by zero sets all bits.
        ("div", _) if !is_float => integer!(|a, b| if b == 0 { !0 } else { a.wrapping_div(b) }),
        ("rem", _) if !is_float => integer!(|a, b| if b == 0 { a } else { a.wrapping_rem(b) }),
        ("add", "f64") => two!(|a: f64, b: f64| a + b),
        ("sub", "f64") => two!(|a: f64, b: f64| a - b),
        ("mul", "f64") => two!(|a: f64, b: f64| a * b),
        ("add", _) => float!(|a, b| a + b),
        ("sub", _) => float!(|a, b| a - b),
        ("mul", _) => float!(|a, b| a * b),
        ("div", _) => float!(|a, b| a / b),
        // Of a number and NaN, the number.
        ("min", _) => float!(f32::min),
        ("max", _) => float!(f32::max),
        ("min.NaN", _) => float!(|a, b| if a.is_nan() || b.is_nan() { f32::NAN } else { a.min(b) }),
        ("max.NaN", _) => float!(|a, b| if a.is_nan() || b.is_nan() { f32::NAN } else { a.max(b) }),
        _ => return None,
    })
}

/// The function of `name.type`, of three operands.
pub(crate) fn three(name: &str, of: &str) -> Option<Three> {
    macro_rules! multiply_add {
        ($type:ty) => {
            three!(|a: $type, b: $type, c: $type| a.wrapping_mul(b).wrapping_add(c))
        };
    }
    macro_rules! fused {
        ($type:ty) => {
            three!(|a: $type, b: $type, c: $type| a.fma(b, c))
        };
    }
    Some(match (name, of) {
        ("fma.rm", "f32") => three!(|a: f32, b: f32, c: f32| fma_down(a, b, c)),
        ("fma", _) => by_float!(of, fused),
        ("mad.lo", _) => by_integer!(of, multiply_add),
        ("mad.wide", "u32") => {
            three!(|a: u32, b: u32, c: u64| (u64::from(a) * u64::from(b)).wrapping_add(c))
        }
        ("mad.wide", "s32") => {
            three!(|a: i32, b: i32, c: i64| (i64::from(a) * i64::from(b)).wrapping_add(c))
        }
        ("selp", _) => three!(|a: u64, b: u64, p: u64| if p & 1 == 1 { a } else { b }),
        ("bfe", "u32") => three!(|a: u32, at: u32, bits: u32| {
            let (at, bits) = (at & 0xff, bits & 0xff);
            a.checked_shr(at).unwrap_or(0) & 1u32.checked_shl(bits).map_or(!0, |end| end - 1)
        }),
        ("shf.l.wrap", "b32") => three!(|low: u32, high: u32, by: u32| {
            (((u64::from(high) << 32 | u64::from(low)) << (by & 31)) >> 32) as u32
        }),
        ("shf.r.wrap", "b32") => {
            three!(|low: u32, high: u32, by: u32| ((u64::from(high) << 32 | u64::from(low)) >> (by & 31)) as u32)
        }
        ("prmt", "b32") => three!(|a: u32, b: u32, select: u32| permuted(a, b, select)),
        _ => return None,
    })
}

/// The comparison of `name.type`, 0 or 1.
pub(crate) fn compare(name: &str, of: &str) -> Option<Two> {
    macro_rules! test {
        ($test:expr) => {{
            macro_rules! make {
                ($type:ty) => {
                    two!(|a: $type, b: $type| u64::from($test(a.partial_cmp(&b))))
                };
            }
            match of {
                "f32" => make!(f32),
                "f64" => make!(f64),
                "f16" => two!(|a: F16, b: F16| u64::from($test(a.0.partial_cmp(&b.0)))),
                "bf16" => two!(|a: Bf16, b: Bf16| u64::from($test(a.0.partial_cmp(&b.0)))),
                _ => by_integer!(of, make),
            }
        }};
    }
    // There is no order if one is NaN: then comparisons are false, but for those that end in u.
    Some(match name {
        "eq" => test!(|order: Option<Ordering>| order.is_some_and(Ordering::is_eq)),
        "ne" => test!(|order: Option<Ordering>| order.is_some_and(Ordering::is_ne)),
        "lt" | "lo" => test!(|order: Option<Ordering>| order.is_some_and(Ordering::is_lt)),
        "le" | "ls" => test!(|order: Option<Ordering>| order.is_some_and(Ordering::is_le)),
        "gt" | "hi" => test!(|order: Option<Ordering>| order.is_some_and(Ordering::is_gt)),
        "ge" | "hs" => test!(|order: Option<Ordering>| order.is_some_and(Ordering::is_ge)),
        "equ" => test!(|order: Option<Ordering>| order.is_none_or(Ordering::is_eq)),
        "neu" => test!(|order: Option<Ordering>| order.is_none_or(Ordering::is_ne)),
        "ltu" => test!(|order: Option<Ordering>| order.is_none_or(Ordering::is_lt)),
        "leu" => test!(|order: Option<Ordering>| order.is_none_or(Ordering::is_le)),
        "gtu" => test!(|order: Option<Ordering>| order.is_none_or(Ordering::is_gt)),
        "geu" => test!(|order: Option<Ordering>| order.is_none_or(Ordering::is_ge)),
        "num" => test!(|order: Option<Ordering>| order.is_some()),
        "nan" => test!(|order: Option<Ordering>| order.is_none()),
        _ => return None,
    })
}

/// `a b + c`, rounded down.
fn fma_down(a: f32, b: f32, c: f32) -> f32 {
    let nearest = a.mul_add(b, c);
    // The product is exact in f64, and so is the sum wherever its rounding to f32 is close.
    let exact = f64::from(a) * f64::from(b) + f64::from(c);
    if f64::from(nearest) > exact { nearest.next_down() } else { nearest }
}

fn permuted(a: u32, b: u32, select: u32) -> u32 {
    let bytes = (u64::from(b) << 32 | u64::from(a)).to_le_bytes();
    let pick = |at: u32| {
        let choice = select >> (4 * at) & 15;
        let byte = bytes[(choice & 7) as usize];
        // The top bit asks for the sign alone.
        if choice & 8 == 0 {
            byte
        } else if byte & 128 == 0 {
            0
        } else {
            255
        }
    };
    u32::from_le_bytes(from_fn(|at| pick(at as u32)))
}
