//! Seeded test data, exact in the dtype under test.

use alto_kernels::reference::Matrix;
use alto_kernels::testing;

use crate::device::dtype;

/// The library's generator at the dtype under test.
pub(crate) struct Draws(testing::Draws);

impl Draws {
    pub(crate) fn new(seed: u64) -> Self {
        Self(testing::Draws::new(seed, dtype()))
    }

    /// Uniform entries between -1 and 1.
    pub(crate) fn matrix(&mut self, rows: usize, columns: usize) -> Matrix {
        self.0.matrix(rows, columns)
    }

    /// Whole numbers from `-limit` to `limit`: their sums and products are exact in f32 in any order.
    pub(crate) fn integers(&mut self, rows: usize, columns: usize, limit: u32) -> Matrix {
        self.0.integers(rows, columns, limit)
    }
}
