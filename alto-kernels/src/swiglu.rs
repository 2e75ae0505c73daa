//! The gated activation of Llama's feed-forward block, in one pass over memory.
//!
//! `y = silu(gate) * up` with `silu(g) = g / (1 + e^-g)` (Shazeer, 2020).

use burn::backend::autodiff::checkpoint::base::Checkpointer;
use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::autodiff::grads::Gradients;
use burn::backend::autodiff::ops::{Backward, Ops, OpsKind};
use burn::backend::autodiff::{Autodiff, NodeId};
use burn::backend::tensor::FloatTensor;
use burn::backend::{Backend, Dispatch, Flex, backend_extension};
use burn::tensor::Tensor;

/// `silu(gate) * up`, entry by entry; all three are `[tokens, width]`.
///
/// # Panics
/// If the shapes differ.
pub fn swiglu(gate: Tensor<2>, up: Tensor<2>) -> Tensor<2> {
    assert_eq!(gate.dims(), up.dims(), "gate and up have the same shape");
    Tensor::from_dispatch(Dispatch::swiglu(gate.into_dispatch(), up.into_dispatch()))
}

/// What a backend computes for [`swiglu`]; shapes as there.
pub trait SwigluKernel: Backend {
    /// The output.
    fn swiglu_forward(gate: FloatTensor<Self>, up: FloatTensor<Self>) -> FloatTensor<Self>;

    /// Gradients of `gate` and `up` from the output's.
    fn swiglu_backward(
        gate: FloatTensor<Self>,
        up: FloatTensor<Self>,
        dy: FloatTensor<Self>,
    ) -> (FloatTensor<Self>, FloatTensor<Self>);
}

/// The differentiable operation behind [`swiglu`].
#[backend_extension(Autodiff, Flex, Cube: cfg(feature = "cubecl"))]
pub trait SwigluExtension: Backend {
    /// As [`swiglu`](crate::swiglu), which checks its arguments first.
    fn swiglu(gate: FloatTensor<Self>, up: FloatTensor<Self>) -> FloatTensor<Self>;
}

impl SwigluExtension for Flex {
    fn swiglu(gate: FloatTensor<Self>, up: FloatTensor<Self>) -> FloatTensor<Self> {
        Self::swiglu_forward(gate, up)
    }
}

impl<B: SwigluKernel + SwigluExtension, C: CheckpointStrategy> SwigluExtension for Autodiff<B, C> {
    fn swiglu(gate: FloatTensor<Self>, up: FloatTensor<Self>) -> FloatTensor<Self> {
        #[derive(Debug)]
        struct Swiglu;
        impl<B: SwigluKernel> Backward<B, 2> for Swiglu {
            type State = (NodeId, NodeId);
            fn backward(self, ops: Ops<Self::State, 2>, gradients: &mut Gradients, checkpointer: &mut Checkpointer) {
                let dy = gradients.consume::<B>(&ops.node);
                let gate = checkpointer.retrieve_node_output(ops.state.0);
                let up = checkpointer.retrieve_node_output(ops.state.1);
                let (d_gate, d_up) = B::swiglu_backward(gate, up, dy);
                for (node, gradient) in ops.parents.into_iter().zip([d_gate, d_up]) {
                    if let Some(node) = node {
                        gradients.register::<B>(node.id, gradient);
                    }
                }
            }
        }
        match Swiglu.prepare::<C>([gate.node(), up.node()]).compute_bound().stateful() {
            OpsKind::Tracked(mut prep) => {
                let state = (prep.checkpoint(&gate), prep.checkpoint(&up));
                prep.finish(state, B::swiglu_forward(gate.into_primitive(), up.into_primitive()))
            }
            OpsKind::UnTracked(prep) => prep.finish(B::swiglu(gate.into_primitive(), up.into_primitive())),
        }
    }
}
