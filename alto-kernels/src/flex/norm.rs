//! Root-mean-square normalization on Flex.

use burn::backend::Flex;
use burn::backend::tensor::FloatTensor;
use rayon::prelude::*;

use super::tensor::{Dense, tensor};
use super::vector::{dot, sum, vectorized};
use crate::norm::NormKernel;

/// Tokens that one thread takes at a time.
const TILE: usize = 64;

impl NormKernel for Flex {
    fn rms_norm_forward(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        epsilon: f32,
    ) -> (FloatTensor<Self>, FloatTensor<Self>) {
        let (x, weight) = (Dense::new(x), Dense::new(weight));
        let [tokens, width] = x.dims();
        let mut y = vec![0.0; tokens * width];
        let mut factors = vec![0.0; tokens];
        let weight = weight.slice();
        let tile = TILE * width.max(1);
        let work = y.par_chunks_mut(tile).zip(x.slice().par_chunks(tile)).zip(factors.par_chunks_mut(TILE));
        work.for_each(|((y, x), factors)| {
            vectorized!({
                let rows = y.chunks_exact_mut(width).zip(x.chunks_exact(width));
                for ((y, x), factor) in rows.zip(factors.iter_mut()) {
                    *factor = 1.0 / (dot(x, x) / width as f32 + epsilon).sqrt();
                    for ((y, x), w) in y.iter_mut().zip(x).zip(weight) {
                        *y = x * *factor * w;
                    }
                }
            });
        });
        (tensor(y, [tokens, width]), tensor(factors, [tokens]))
    }

    fn rms_norm_backward(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        factors: FloatTensor<Self>,
        dy: FloatTensor<Self>,
    ) -> FloatTensor<Self> {
        let (x, weight, factors, dy) = (Dense::new(x), Dense::new(weight), Dense::new(factors), Dense::new(dy));
        let [tokens, width] = x.dims();
        let mut dx = vec![0.0; tokens * width];
        let weight = weight.slice();
        let tile = TILE * width.max(1);
        let inputs = x.slice().par_chunks(tile).zip(dy.slice().par_chunks(tile)).zip(factors.slice().par_chunks(TILE));
        dx.par_chunks_mut(tile).zip(inputs).for_each(|(dx, ((x, dy), factors))| {
            vectorized!({
                let inputs = x.chunks_exact(width).zip(dy.chunks_exact(width)).zip(factors);
                for (dx, ((x, dy), &factor)) in dx.chunks_exact_mut(width).zip(inputs) {
                    // With u = x * factor: dx = factor (w dy - u mean(u w dy)).
                    let projection = sum(width, |i| x[i] * weight[i] * dy[i]) * factor * factor / width as f32;
                    for (((dx, x), dy), w) in dx.iter_mut().zip(x).zip(dy).zip(weight) {
                        *dx = factor * (w * dy - x * projection);
                    }
                }
            });
        });
        tensor(dx, [tokens, width])
    }
}
