//! Numbers of no meaning, quickly: a block of random ones over and over.

use alto_core::matrix::Matrix;
use alto_core::model::{BlockWeights, Linear, ModelConfig, ModelWeights};
use burn::tensor::{DType, Device, Tensor, TensorData};

/// A prime, so that rows of a matrix differ.
const BLOCK: usize = 1_048_573;

/// A source of numbers within 1 of zero.
#[derive(Debug)]
pub(crate) struct Random {
    block: Vec<f32>,
    next: usize,
}

impl Random {
    pub(crate) fn new() -> Self {
        let mut state = 1u64;
        let mut draw = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as f32 / (1u32 << 30) as f32 - 1.0
        };
        Self { block: (0..BLOCK).map(|_| draw()).collect(), next: 0 }
    }

    /// So many numbers within `bound` of zero.
    pub(crate) fn numbers(&mut self, count: usize, bound: f32) -> Vec<f32> {
        let mut numbers = Vec::with_capacity(count);
        let mut from = self.next;
        while numbers.len() < count {
            let piece = &self.block[from..BLOCK.min(from + count - numbers.len())];
            numbers.extend(piece.iter().map(|number| number * bound));
            from = 0;
        }
        self.next = (self.next + count) % BLOCK;
        numbers
    }

    pub(crate) fn matrix(&mut self, rows: usize, columns: usize, bound: f32) -> Matrix {
        Matrix::new(rows, columns, self.numbers(rows * columns, bound))
    }

    /// A tensor of such numbers, outside of any graph.
    pub(crate) fn tensor<const D: usize>(&mut self, shape: [usize; D], bound: f32, on: (&Device, DType)) -> Tensor<D> {
        Tensor::from_data(TensorData::new(self.numbers(shape.iter().product(), bound), shape), on)
    }

    /// The weights of a model with tied embeddings, of a spread that keeps activations in range.
    pub(crate) fn model(&mut self, config: &ModelConfig) -> ModelWeights {
        let ones = || vec![1.0; config.hidden];
        let mut linear = |linear: Linear| {
            let [d_out, d_in] = linear.shape(config);
            self.matrix(d_out, d_in, 1.0 / (d_in as f32).sqrt())
        };
        let mut block = || BlockWeights {
            attention_norm: ones(),
            q: linear(Linear::Q),
            k: linear(Linear::K),
            v: linear(Linear::V),
            o: linear(Linear::O),
            feed_forward_norm: ones(),
            gate: linear(Linear::Gate),
            up: linear(Linear::Up),
            down: linear(Linear::Down),
        };
        let blocks = (0..config.layers).map(|_| block()).collect();
        ModelWeights {
            embedding: self.matrix(config.vocabulary, config.hidden, 0.05),
            blocks,
            norm: ones(),
            head: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_within_bounds_and_do_not_repeat_row_by_row() {
        let mut random = Random::new();
        let matrix = random.matrix(1_025, 1_024, 0.5);
        assert!(matrix.data().iter().all(|number| number.abs() <= 0.5));
        assert_ne!(matrix.data()[..1_024], matrix.data()[1_024 * 1_024..]);
        assert!(matrix.data().iter().any(|&number| number > 0.4) && matrix.data().iter().any(|&number| number < -0.4));
        assert_ne!(random.numbers(8, 1.0), random.numbers(8, 1.0));
    }
}
