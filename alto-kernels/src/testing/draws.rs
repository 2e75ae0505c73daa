//! Seeded numbers. Every entry is exact in one dtype, so that a kernel and its reference compute from the same numbers.

use burn::tensor::DType;

use super::number::rounded;
use crate::reference::Matrix;

/// A SplitMix64 generator of entries that a dtype represents exactly.
#[derive(Debug, Clone)]
pub struct Draws {
    state: u64,
    dtype: DType,
}

impl Draws {
    /// The same draws for the same seed and dtype.
    pub fn new(seed: u64, dtype: DType) -> Self {
        Self { state: seed, dtype }
    }

    /// Uniform entries between -1 and 1.
    pub fn matrix(&mut self, rows: usize, columns: usize) -> Matrix {
        let dtype = self.dtype;
        self.fill(rows, columns, |bits| rounded(f64::from(bits) / f64::from(1 << 23) - 1.0, dtype))
    }

    /// Whole numbers from `-limit` to `limit`: their sums and products are exact in f32 in any order.
    pub fn integers(&mut self, rows: usize, columns: usize, limit: u32) -> Matrix {
        self.fill(rows, columns, |bits| f64::from(bits % (2 * limit + 1)) - f64::from(limit))
    }

    /// Each entry from 24 random bits.
    fn fill(&mut self, rows: usize, columns: usize, entry: impl Fn(u32) -> f64) -> Matrix {
        Matrix::new(rows, columns, (0..rows * columns).map(|_| entry((self.next() >> 40) as u32)).collect())
    }

    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.state ^ (self.state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}
