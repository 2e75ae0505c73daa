//! The gated activation on Flex.

use burn::backend::Flex;
use burn::backend::tensor::FloatTensor;
use rayon::prelude::*;

use super::tensor::{Dense, tensor};
use super::vector::{sigmoid, vectorized};
use crate::swiglu::SwigluKernel;

/// Entries that one thread takes at a time.
const TILE: usize = 16 * 1024;

impl SwigluKernel for Flex {
    fn swiglu_forward(gate: FloatTensor<Self>, up: FloatTensor<Self>) -> FloatTensor<Self> {
        let (gate, up) = (Dense::new(gate), Dense::new(up));
        let mut y = vec![0.0; gate.slice().len()];
        let inputs = gate.slice().par_chunks(TILE).zip(up.slice().par_chunks(TILE));
        y.par_chunks_mut(TILE).zip(inputs).for_each(|(y, (gate, up))| {
            vectorized!({
                for ((y, &g), &u) in y.iter_mut().zip(gate).zip(up) {
                    *y = g * sigmoid(g) * u;
                }
            });
        });
        tensor(y, gate.dims::<2>())
    }

    fn swiglu_backward(
        gate: FloatTensor<Self>,
        up: FloatTensor<Self>,
        dy: FloatTensor<Self>,
    ) -> (FloatTensor<Self>, FloatTensor<Self>) {
        let (gate, up, dy) = (Dense::new(gate), Dense::new(up), Dense::new(dy));
        let mut d_gate = vec![0.0; gate.slice().len()];
        let mut d_up = vec![0.0; gate.slice().len()];
        let inputs = gate.slice().par_chunks(TILE).zip(up.slice().par_chunks(TILE)).zip(dy.slice().par_chunks(TILE));
        let outputs = d_gate.par_chunks_mut(TILE).zip(d_up.par_chunks_mut(TILE));
        outputs.zip(inputs).for_each(|((d_gate, d_up), ((gate, up), dy))| {
            vectorized!({
                let inputs = gate.iter().zip(up).zip(dy);
                for ((d_gate, d_up), ((&g, &u), &dy)) in d_gate.iter_mut().zip(d_up.iter_mut()).zip(inputs) {
                    let s = sigmoid(g);
                    *d_up = dy * g * s;
                    *d_gate = dy * u * s * (1.0 + g * (1.0 - s));
                }
            });
        });
        (tensor(d_gate, gate.dims::<2>()), tensor(d_up, gate.dims::<2>()))
    }
}
