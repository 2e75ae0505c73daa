//! Root-mean-square normalization with a frozen weight, in one pass over memory.
//!
//! `y = x / sqrt(mean(x²) + epsilon) * weight`, per token (Zhang & Sennrich, 2019).

use burn::backend::autodiff::checkpoint::base::Checkpointer;
use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::autodiff::grads::Gradients;
use burn::backend::autodiff::ops::{Backward, Ops, OpsKind};
use burn::backend::autodiff::{Autodiff, NodeId};
use burn::backend::tensor::FloatTensor;
use burn::backend::{Backend, Dispatch, Flex, backend_extension};
use burn::tensor::Tensor;

/// Normalizes each token to a root mean square of about 1, then scales by a frozen weight.
///
/// - `x`: `[tokens, width]`; `weight`: `[width]`, which gets no gradient, even if it asks for one.
/// - `epsilon` is added to the mean square.
/// - Returns `[tokens, width]`.
///
/// # Panics
/// If the widths differ.
pub fn rms_norm(x: Tensor<2>, weight: Tensor<1>, epsilon: f32) -> Tensor<2> {
    let ([_, width], [weights]) = (x.dims(), weight.dims());
    assert_eq!(width, weights, "x has width {width}, the weight {weights}");
    Tensor::from_dispatch(Dispatch::rms_norm(x.into_dispatch(), weight.into_dispatch(), epsilon))
}

/// What a backend computes for [`rms_norm`]; shapes as there.
pub trait NormKernel: Backend {
    /// The output, and each token's factor `1 / sqrt(mean(x²) + epsilon)`, `[tokens]`.
    fn rms_norm_forward(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        epsilon: f32,
    ) -> (FloatTensor<Self>, FloatTensor<Self>);

    /// The gradient of `x` from the output's, with the factors that forward gave.
    fn rms_norm_backward(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        factors: FloatTensor<Self>,
        dy: FloatTensor<Self>,
    ) -> FloatTensor<Self>;
}

/// The differentiable operation behind [`rms_norm`].
#[backend_extension(Autodiff, Flex, Cube: cfg(feature = "cubecl"))]
pub trait NormExtension: Backend {
    /// As [`rms_norm`](crate::rms_norm), which checks its arguments first.
    fn rms_norm(x: FloatTensor<Self>, weight: FloatTensor<Self>, epsilon: f32) -> FloatTensor<Self>;
}

impl NormExtension for Flex {
    fn rms_norm(x: FloatTensor<Self>, weight: FloatTensor<Self>, epsilon: f32) -> FloatTensor<Self> {
        Self::rms_norm_forward(x, weight, epsilon).0
    }
}

impl<B: NormKernel + NormExtension, C: CheckpointStrategy> NormExtension for Autodiff<B, C> {
    fn rms_norm(x: FloatTensor<Self>, weight: FloatTensor<Self>, epsilon: f32) -> FloatTensor<Self> {
        #[derive(Debug)]
        struct RmsNorm;
        impl<B: NormKernel> Backward<B, 1> for RmsNorm {
            type State = (NodeId, FloatTensor<B>, FloatTensor<B>);
            fn backward(self, ops: Ops<Self::State, 1>, gradients: &mut Gradients, checkpointer: &mut Checkpointer) {
                let [node] = ops.parents;
                let dy = gradients.consume::<B>(&ops.node);
                let (x, weight, factors) = ops.state;
                let x = checkpointer.retrieve_node_output(x);
                if let Some(node) = node {
                    gradients.register::<B>(node.id, B::rms_norm_backward(x, weight, factors, dy));
                }
            }
        }
        match RmsNorm.prepare::<C>([x.node()]).compute_bound().stateful() {
            OpsKind::Tracked(mut prep) => {
                let node = prep.checkpoint(&x);
                let (x, weight) = (x.into_primitive(), weight.into_primitive());
                let (y, factors) = B::rms_norm_forward(x, weight.clone(), epsilon);
                prep.finish((node, weight, factors), y)
            }
            OpsKind::UnTracked(prep) => prep.finish(B::rms_norm(x.into_primitive(), weight.into_primitive(), epsilon)),
        }
    }
}
