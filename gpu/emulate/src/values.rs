//! Types as they lie in registers.

use crate::half::{from_bf16, from_f16, to_bf16, to_f16};

/// A type as it lies in a register.
pub(crate) trait Value: Copy {
    fn of(bits: u64) -> Self;
    fn bits(self) -> u64;
}

macro_rules! integers {
    ($($type:ty as $unsigned:ty),*) => { $(impl Value for $type {
        fn of(bits: u64) -> Self {
            bits as Self
        }
        fn bits(self) -> u64 {
            self as $unsigned as u64
        }
    })* };
}
integers!(u8 as u8, u16 as u16, u32 as u32, u64 as u64, i8 as u8, i16 as u16, i32 as u32, i64 as u64);

impl Value for f32 {
    fn of(bits: u64) -> Self {
        Self::from_bits(bits as u32)
    }
    fn bits(self) -> u64 {
        u64::from(self.to_bits())
    }
}

impl Value for f64 {
    fn of(bits: u64) -> Self {
        Self::from_bits(bits)
    }
    fn bits(self) -> u64 {
        self.to_bits()
    }
}

/// A 16-bit float, or a pair of them, computed with as f32 and rounded once.
macro_rules! halves {
    ($one:ident, $pair:ident, $from:ident, $to:ident) => {
        #[derive(Clone, Copy)]
        pub(crate) struct $one(pub(crate) f32);
        impl Value for $one {
            fn of(bits: u64) -> Self {
                Self($from(bits as u16))
            }
            fn bits(self) -> u64 {
                u64::from($to(f64::from(self.0)))
            }
        }
        impl Float for $one {
            fn map(self, f: impl Fn(f32) -> f32) -> Self {
                Self(f(self.0))
            }
            fn with(self, other: Self, f: impl Fn(f32, f32) -> f32) -> Self {
                Self(f(self.0, other.0))
            }
            fn fma(self, b: Self, c: Self) -> Self {
                // Exact but for the last rounding: the product of two 16-bit floats is an f32.
                let sum = f64::from(self.0) * f64::from(b.0) + f64::from(c.0);
                Self($from($to(sum)))
            }
        }
        #[derive(Clone, Copy)]
        pub(crate) struct $pair($one, $one);
        impl Value for $pair {
            fn of(bits: u64) -> Self {
                Self($one::of(bits), $one::of(bits >> 16))
            }
            fn bits(self) -> u64 {
                self.0.bits() | self.1.bits() << 16
            }
        }
        impl Float for $pair {
            fn map(self, f: impl Fn(f32) -> f32) -> Self {
                Self(self.0.map(&f), self.1.map(&f))
            }
            fn with(self, other: Self, f: impl Fn(f32, f32) -> f32) -> Self {
                Self(self.0.with(other.0, &f), self.1.with(other.1, &f))
            }
            fn fma(self, b: Self, c: Self) -> Self {
                Self(self.0.fma(b.0, c.0), self.1.fma(b.1, c.1))
            }
        }
    };
}

/// Floats that are computed with as f32.
pub(crate) trait Float: Value {
    fn map(self, f: impl Fn(f32) -> f32) -> Self;
    fn with(self, other: Self, f: impl Fn(f32, f32) -> f32) -> Self;
    fn fma(self, b: Self, c: Self) -> Self;
}

impl Float for f32 {
    fn map(self, f: impl Fn(f32) -> f32) -> Self {
        f(self)
    }
    fn with(self, other: Self, f: impl Fn(f32, f32) -> f32) -> Self {
        f(self, other)
    }
    fn fma(self, b: Self, c: Self) -> Self {
        self.mul_add(b, c)
    }
}

halves!(F16, F16Pair, from_f16, to_f16);
halves!(Bf16, Bf16Pair, from_bf16, to_bf16);
