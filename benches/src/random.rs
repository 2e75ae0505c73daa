//! Numbers that are the same everywhere.

use alto_core::matrix::Matrix;
use burn::tensor::{Device, Tensor, TensorData};

/// A linear congruential generator: fast, and the same everywhere.
pub struct Random(pub u64);

impl Random {
    /// The next 31 random bits.
    pub fn bits(&mut self) -> u32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as u32
    }

    /// Uniform within `bound` of zero.
    pub fn uniform(&mut self, bound: f32) -> f32 {
        (self.bits() as f32 / (1u32 << 30) as f32 - 1.0) * bound
    }

    /// A matrix of such entries.
    pub fn matrix(&mut self, rows: usize, columns: usize, bound: f32) -> Matrix {
        Matrix::new(rows, columns, (0..rows * columns).map(|_| self.uniform(bound)).collect())
    }

    /// A tensor of such entries on the Flex device, outside of any graph.
    pub fn tensor<const D: usize>(&mut self, shape: [usize; D], bound: f32) -> Tensor<D> {
        let data: Vec<f32> = (0..shape.iter().product()).map(|_| self.uniform(bound)).collect();
        Tensor::from_data(TensorData::new(data, shape), &Device::flex())
    }
}
