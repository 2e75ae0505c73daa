//! A linear layer under many LoRA adapters at once.
//!
//! `y[t] = x[t] Wᵀ + scale_i (x[t] A_iᵀ) B_i` for the tokens `t` of lane `i`.

use burn::backend::autodiff::checkpoint::base::Checkpointer;
use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::autodiff::grads::Gradients;
use burn::backend::autodiff::ops::{Backward, Ops, OpsKind};
use burn::backend::autodiff::{Autodiff, NodeId};
use burn::backend::tensor::FloatTensor;
use burn::backend::{Backend, Dispatch, Flex, backend_extension};
use burn::tensor::Tensor;

use crate::lanes::LoraLanes;

/// A frozen linear layer with an adapter of its own for each lane of a ragged batch.
///
/// - `x`: `[tokens, d_in]`, all lanes end to end.
/// - `weight`: `[d_out, d_in]`, frozen. It gets no gradient, even if it asks for one, and is never copied.
/// - `a`, `b`: `[ranks, d_in]` and `[ranks, d_out]`, the adapters' factors stacked along the rank dimension. Of PEFT's
///   tensors, `a` stacks the `lora_A` as they are and `b` the `lora_B` transposed. They are f32, whatever `x` and `weight`
///   are.
/// - Returns `[tokens, d_out]`. Tokens in no lane go through the base weight alone.
///
/// The base product runs once over the whole batch; each lane's `x A` is kept for backward, not computed again.
/// Lanes may be empty, and their ranks may differ or exceed the layer's width.
///
/// # Panics
/// If shapes contradict each other or a lane reaches outside; on a CubeCL device also if the factors aren't f32, or `x` and
/// `weight` differ in their dtype.
pub fn multi_lora_linear(x: Tensor<2>, weight: Tensor<2>, a: Tensor<2>, b: Tensor<2>, lanes: &LoraLanes) -> Tensor<2> {
    check(x.dims(), weight.dims(), a.dims(), b.dims(), lanes);
    Tensor::from_dispatch(Dispatch::multi_lora_linear(
        x.into_dispatch(),
        weight.into_dispatch(),
        a.into_dispatch(),
        b.into_dispatch(),
        lanes.clone(),
    ))
}

fn check(x: [usize; 2], weight: [usize; 2], a: [usize; 2], b: [usize; 2], lanes: &LoraLanes) {
    let [d_out, d_in] = weight;
    assert_eq!(x[1], d_in, "x has width {}, the weight takes {d_in}", x[1]);
    assert_eq!(a[1], d_in, "a has width {}, the weight takes {d_in}", a[1]);
    assert_eq!(b[1], d_out, "b has width {}, the weight gives {d_out}", b[1]);
    assert_eq!(a[0], b[0], "a has {} ranks, b has {}", a[0], b[0]);
    lanes.check(x[0], a[0]);
}

/// What a backend computes for [`multi_lora_linear`]; shapes as there.
pub trait LoraKernel: Backend {
    /// The output, and what backward needs of the down projections.
    fn lora_forward(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        a: FloatTensor<Self>,
        b: FloatTensor<Self>,
        lanes: &LoraLanes,
    ) -> (FloatTensor<Self>, FloatTensor<Self>);

    /// Gradients of `x` if `needs_dx`, and of `a` and `b`, from the output's; `down` is what forward kept.
    #[expect(clippy::too_many_arguments, reason = "the operands of six products")]
    fn lora_backward(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        a: FloatTensor<Self>,
        b: FloatTensor<Self>,
        down: FloatTensor<Self>,
        dy: FloatTensor<Self>,
        lanes: &LoraLanes,
        needs_dx: bool,
    ) -> (Option<FloatTensor<Self>>, FloatTensor<Self>, FloatTensor<Self>);
}

/// The differentiable operation behind [`multi_lora_linear`].
#[backend_extension(Autodiff, Flex, Cube: cfg(feature = "cubecl"))]
pub trait LoraExtension: Backend {
    /// As [`multi_lora_linear`](crate::multi_lora_linear), which checks its arguments first.
    fn multi_lora_linear(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        a: FloatTensor<Self>,
        b: FloatTensor<Self>,
        lanes: LoraLanes,
    ) -> FloatTensor<Self>;
}

impl LoraExtension for Flex {
    fn multi_lora_linear(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        a: FloatTensor<Self>,
        b: FloatTensor<Self>,
        lanes: LoraLanes,
    ) -> FloatTensor<Self> {
        Self::lora_forward(x, weight, a, b, &lanes).0
    }
}

/// What backward needs besides `x`.
#[derive(Debug, Clone)]
struct Saved<B: Backend> {
    x: NodeId,
    weight: FloatTensor<B>,
    a: FloatTensor<B>,
    b: FloatTensor<B>,
    down: FloatTensor<B>,
    lanes: LoraLanes,
}

impl<B: LoraKernel + LoraExtension, C: CheckpointStrategy> LoraExtension for Autodiff<B, C> {
    fn multi_lora_linear(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        a: FloatTensor<Self>,
        b: FloatTensor<Self>,
        lanes: LoraLanes,
    ) -> FloatTensor<Self> {
        #[derive(Debug)]
        struct MultiLoraLinear;
        impl<B: LoraKernel> Backward<B, 3> for MultiLoraLinear {
            type State = Saved<B>;
            fn backward(self, ops: Ops<Self::State, 3>, gradients: &mut Gradients, checkpointer: &mut Checkpointer) {
                let [x_node, a_node, b_node] = ops.parents;
                let dy = gradients.consume::<B>(&ops.node);
                let Saved { x, weight, a, b, down, lanes } = ops.state;
                let x = checkpointer.retrieve_node_output(x);
                let (dx, da, db) = B::lora_backward(x, weight, a, b, down, dy, &lanes, x_node.is_some());
                if let (Some(node), Some(dx)) = (x_node, dx) {
                    gradients.register::<B>(node.id, dx);
                }
                for (node, gradient) in [(a_node, da), (b_node, db)] {
                    if let Some(node) = node {
                        gradients.register::<B>(node.id, gradient);
                    }
                }
            }
        }
        let nodes = [x.node(), a.node(), b.node()];
        match MultiLoraLinear.prepare::<C>(nodes).compute_bound().stateful() {
            OpsKind::Tracked(mut prep) => {
                let node = prep.checkpoint(&x);
                let (x, weight) = (x.into_primitive(), weight.into_primitive());
                let (a, b) = (a.into_primitive(), b.into_primitive());
                let (y, down) = B::lora_forward(x, weight.clone(), a.clone(), b.clone(), &lanes);
                prep.finish(Saved { x: node, weight, a, b, down, lanes }, y)
            }
            OpsKind::UnTracked(prep) => {
                let (x, weight) = (x.into_primitive(), weight.into_primitive());
                prep.finish(B::multi_lora_linear(x, weight, a.into_primitive(), b.into_primitive(), lanes))
            }
        }
    }
}
