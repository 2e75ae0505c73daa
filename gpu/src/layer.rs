//! One linear layer with adapters for every lane of a batch.

use alto_kernels::{LoraLane, LoraLanes, multi_lora_linear};
use burn::tensor::{DType, Tensor};

use crate::random::Random;
use crate::run::Run;

/// One layer over one batch.
pub(crate) struct Layer {
    pub(crate) x: Tensor<2>,
    pub(crate) weight: Tensor<2>,
    a: Tensor<2>,
    b: Tensor<2>,
    lanes: LoraLanes,
}

impl Layer {
    pub(crate) fn new(run: &Run, [d_out, d_in]: [usize; 2], tokens: usize) -> Self {
        let (adapters, rank) = (run.sizes.adapters, run.sizes.rank);
        let (inner, mut random) = (&run.device, Random::new());
        let lane = |i: usize| LoraLane {
            rows: tokens * i / adapters..tokens * (i + 1) / adapters,
            ranks: rank * i..rank * (i + 1),
            scale: 2.0,
        };
        Self {
            x: random.tensor([tokens, d_in], 1.0, (inner, run.dtype)),
            weight: random.tensor([d_out, d_in], 0.02, (inner, run.dtype)),
            a: random.tensor([adapters * rank, d_in], 0.02, (inner, DType::F32)),
            b: random.tensor([adapters * rank, d_out], 0.02, (inner, DType::F32)),
            lanes: LoraLanes::new((0..adapters).map(lane).collect()),
        }
    }

    /// The same without adapters.
    pub(crate) fn bare(&self) -> Self {
        let none = |factor: &Tensor<2>| Tensor::zeros([0, factor.dims()[1]], (&factor.device(), DType::F32));
        let (a, b) = (none(&self.a), none(&self.b));
        Self { x: self.x.clone(), weight: self.weight.clone(), a, b, lanes: LoraLanes::new(Vec::new()) }
    }

    pub(crate) fn forward(&self) -> Tensor<2> {
        let Self { x, weight, a, b, lanes } = self;
        multi_lora_linear(x.clone(), weight.clone(), a.clone(), b.clone(), lanes)
    }

    /// Forward, and backward from a gradient of ones.
    pub(crate) fn both_ways(&self) {
        let leaf = |tensor: &Tensor<2>| Tensor::from_inner(tensor.clone()).require_grad();
        let (x, a, b) = (leaf(&self.x), leaf(&self.a), leaf(&self.b));
        let y = multi_lora_linear(x, Tensor::from_inner(self.weight.clone()), a, b, &self.lanes);
        drop(y.backward());
    }
}
