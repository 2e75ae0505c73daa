//! Rotary position embedding in the half-split layout of Hugging Face's Llama and Qwen checkpoints.
//!
//! For `i` under `dim / 2`: `y[i] = x[i] cos - x[i + dim/2] sin`, `y[i + dim/2] = x[i + dim/2] cos + x[i] sin`, at the angle
//! of position and `i` (Su et al., 2021).

use burn::backend::autodiff::Autodiff;
use burn::backend::autodiff::checkpoint::base::Checkpointer;
use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::autodiff::grads::Gradients;
use burn::backend::autodiff::ops::{Backward, Ops, OpsKind};
use burn::backend::tensor::FloatTensor;
use burn::backend::{Backend, Dispatch, Flex, backend_extension};
use burn::tensor::Tensor;

use crate::rows::Rows;

/// Rotates each head of each token by its position within its row.
///
/// - `x`: `[tokens, heads, dim]`, all rows end to end; `dim` is even.
/// - `rows`: tokens of each row; they add up to all tokens.
/// - `cos`, `sin`: `[positions, dim / 2]`, f32 or of the dtype of `x`, for at least as many positions as the longest row
///   has.
/// - Returns `[tokens, heads, dim]`.
///
/// # Panics
/// If shapes contradict each other or a row is longer than the tables.
pub fn rotary(x: Tensor<3>, rows: &Rows, cos: Tensor<2>, sin: Tensor<2>) -> Tensor<3> {
    let ([tokens, _, dim], [positions, half]) = (x.dims(), cos.dims());
    assert_eq!(cos.dims(), sin.dims(), "cos and sin have the same shape");
    assert_eq!(dim, 2 * half, "heads of {dim} take tables of width {}, these have {half}", dim / 2);
    assert_eq!(rows.tokens(), tokens, "the row lengths add up to the number of tokens");
    let longest = rows.longest();
    assert!(longest <= positions, "a row has {longest} tokens, the tables {positions} positions");
    let (cos, sin) = (cos.into_dispatch(), sin.into_dispatch());
    Tensor::from_dispatch(Dispatch::rotary(x.into_dispatch(), cos, sin, rows.clone()))
}

/// What a backend computes for [`rotary`]; shapes as there.
pub trait RotaryKernel: Backend {
    /// Rotates by each position's angle, or back if `inverse`.
    fn rotate(
        x: FloatTensor<Self>,
        cos: FloatTensor<Self>,
        sin: FloatTensor<Self>,
        rows: &Rows,
        inverse: bool,
    ) -> FloatTensor<Self>;
}

/// The differentiable operation behind [`rotary`].
#[backend_extension(Autodiff, Flex, Cube: cfg(feature = "cubecl"))]
pub trait RotaryExtension: Backend {
    /// As [`rotary`](crate::rotary), which checks its arguments first.
    fn rotary(x: FloatTensor<Self>, cos: FloatTensor<Self>, sin: FloatTensor<Self>, rows: Rows) -> FloatTensor<Self>;
}

impl RotaryExtension for Flex {
    fn rotary(x: FloatTensor<Self>, cos: FloatTensor<Self>, sin: FloatTensor<Self>, rows: Rows) -> FloatTensor<Self> {
        Self::rotate(x, cos, sin, &rows, false)
    }
}

impl<B: RotaryKernel + RotaryExtension, C: CheckpointStrategy> RotaryExtension for Autodiff<B, C> {
    fn rotary(x: FloatTensor<Self>, cos: FloatTensor<Self>, sin: FloatTensor<Self>, rows: Rows) -> FloatTensor<Self> {
        #[derive(Debug)]
        struct Rotary;
        impl<B: RotaryKernel> Backward<B, 1> for Rotary {
            type State = (FloatTensor<B>, FloatTensor<B>, Rows);
            fn backward(self, ops: Ops<Self::State, 1>, gradients: &mut Gradients, _: &mut Checkpointer) {
                let [node] = ops.parents;
                let dy = gradients.consume::<B>(&ops.node);
                let (cos, sin, rows) = ops.state;
                if let Some(node) = node {
                    gradients.register::<B>(node.id, B::rotate(dy, cos, sin, &rows, true));
                }
            }
        }
        let nodes = [x.node()];
        let (x, cos, sin) = (x.into_primitive(), cos.into_primitive(), sin.into_primitive());
        match Rotary.prepare::<C>(nodes).compute_bound().stateful() {
            OpsKind::Tracked(prep) => {
                let y = B::rotate(x, cos.clone(), sin.clone(), &rows, false);
                prep.finish((cos, sin, rows), y)
            }
            OpsKind::UnTracked(prep) => prep.finish(B::rotary(x, cos, sin, rows)),
        }
    }
}
