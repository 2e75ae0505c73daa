//! Rotary position embedding on Flex.

use burn::backend::Flex;
use burn::backend::tensor::FloatTensor;
use rayon::prelude::*;

use super::tensor::{Dense, dims, into_vec, tensor};
use super::vector::vectorized;
use crate::rotary::RotaryKernel;
use crate::rows::Rows;

/// Tokens that one thread takes at a time.
const TILE: usize = 64;

impl RotaryKernel for Flex {
    fn rotate(
        x: FloatTensor<Self>,
        cos: FloatTensor<Self>,
        sin: FloatTensor<Self>,
        rows: &Rows,
        inverse: bool,
    ) -> FloatTensor<Self> {
        let shape @ [_, heads, dim] = dims(&x);
        let (cos, sin, half) = (Dense::new(cos), Dense::new(sin), dim / 2);
        let positions: Vec<usize> = rows.iter().flat_map(|&length| 0..length).collect();
        let direction = if inverse { -1.0 } else { 1.0 };
        let mut y = into_vec(x);
        let width = heads * dim;
        let work = y.par_chunks_mut(TILE * width.max(1)).zip(positions.par_chunks(TILE));
        work.for_each(|(tokens, positions)| {
            vectorized!({
                for (token, position) in tokens.chunks_exact_mut(width).zip(positions) {
                    let cos = &cos.slice()[position * half..(position + 1) * half];
                    let sin = &sin.slice()[position * half..(position + 1) * half];
                    for head in token.chunks_exact_mut(dim) {
                        let (first, second) = head.split_at_mut(half);
                        for (((a, b), cos), sin) in first.iter_mut().zip(second).zip(cos).zip(sin) {
                            let sin = sin * direction;
                            (*a, *b) = (*a * cos - *b * sin, *b * cos + *a * sin);
                        }
                    }
                }
            });
        });
        tensor(y, shape)
    }
}
