//! Causal attention over rows of different lengths, without padding.
//!
//! `o[t] = sum_s softmax_s(scale q[t] . k[s]) v[s]` over the positions `s <= t` of the same row.

use burn::backend::autodiff::Autodiff;
use burn::backend::autodiff::checkpoint::base::Checkpointer;
use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::autodiff::grads::Gradients;
use burn::backend::autodiff::ops::{Backward, Ops, OpsKind};
use burn::backend::tensor::FloatTensor;
use burn::backend::{Backend, Dispatch, Flex, backend_extension};
use burn::tensor::Tensor;

use crate::rows::Rows;

/// Causal self-attention within each row of a ragged batch, with grouped queries.
///
/// - `q`: `[tokens, heads, dim]`; `k`, `v`: `[tokens, kv_heads, dim]`, all rows end to end. Query head `h` attends through
///   key and value head `h / (heads / kv_heads)`.
/// - `rows`: tokens of each row; they add up to all tokens and may be zero.
/// - `scale`: factor on the scores, commonly `1 / sqrt(dim)`.
/// - Returns `[tokens, heads, dim]`.
///
/// Forward keeps one number per token and head besides the output; backward computes the weights anew from it, in blocks
/// of queries, so that no matrix of all scores ever exists (Dao, FlashAttention-2, 2023).
///
/// # Panics
/// If shapes contradict each other, the row lengths don't add up, or heads are wider than a device has shared memory for.
pub fn causal_attention(q: Tensor<3>, k: Tensor<3>, v: Tensor<3>, rows: &Rows, scale: f32) -> Tensor<3> {
    let [tokens, heads, dim] = q.dims();
    let [_, kv_heads, _] = k.dims();
    assert_eq!(k.dims(), v.dims(), "k and v have the same shape");
    assert_eq!(k.dims(), [tokens, kv_heads, dim], "q has {tokens} tokens and heads of {dim}");
    assert!(kv_heads > 0 && heads % kv_heads == 0, "{heads} heads aren't a multiple of {kv_heads} key and value heads");
    assert_eq!(rows.tokens(), tokens, "the row lengths add up to the number of tokens");
    Tensor::from_dispatch(Dispatch::causal_attention(
        q.into_dispatch(),
        k.into_dispatch(),
        v.into_dispatch(),
        rows.clone(),
        scale,
    ))
}

/// Gradients of the three inputs.
pub struct AttentionGradients<B: Backend> {
    /// `[tokens, heads, dim]`.
    pub dq: FloatTensor<B>,
    /// `[tokens, kv_heads, dim]`.
    pub dk: FloatTensor<B>,
    /// `[tokens, kv_heads, dim]`.
    pub dv: FloatTensor<B>,
}

/// What a backend computes for [`causal_attention`]; shapes as there.
pub trait AttentionKernel: Backend {
    /// The output, and per token and head the logarithm of the sum of exponentials, `[tokens, heads]`.
    fn attention_forward(
        q: FloatTensor<Self>,
        k: FloatTensor<Self>,
        v: FloatTensor<Self>,
        rows: &Rows,
        scale: f32,
    ) -> (FloatTensor<Self>, FloatTensor<Self>);

    /// Gradients from the output's, with what forward gave.
    #[expect(clippy::too_many_arguments, reason = "three inputs, two outputs, a gradient and two settings")]
    fn attention_backward(
        q: FloatTensor<Self>,
        k: FloatTensor<Self>,
        v: FloatTensor<Self>,
        output: FloatTensor<Self>,
        log_sums: FloatTensor<Self>,
        gradient: FloatTensor<Self>,
        rows: &Rows,
        scale: f32,
    ) -> AttentionGradients<Self>;
}

/// The differentiable operation behind [`causal_attention`].
#[backend_extension(Autodiff, Flex, Cube: cfg(feature = "cubecl"))]
pub trait AttentionExtension: Backend {
    /// As [`causal_attention`](crate::causal_attention), which checks its arguments first.
    fn causal_attention(
        q: FloatTensor<Self>,
        k: FloatTensor<Self>,
        v: FloatTensor<Self>,
        rows: Rows,
        scale: f32,
    ) -> FloatTensor<Self>;
}

impl AttentionExtension for Flex {
    fn causal_attention(
        q: FloatTensor<Self>,
        k: FloatTensor<Self>,
        v: FloatTensor<Self>,
        rows: Rows,
        scale: f32,
    ) -> FloatTensor<Self> {
        Self::attention_forward(q, k, v, &rows, scale).0
    }
}

/// What backward needs.
#[derive(Debug, Clone)]
struct Saved<B: Backend> {
    q: FloatTensor<B>,
    k: FloatTensor<B>,
    v: FloatTensor<B>,
    output: FloatTensor<B>,
    log_sums: FloatTensor<B>,
    rows: Rows,
    scale: f32,
}

impl<B: AttentionKernel + AttentionExtension, C: CheckpointStrategy> AttentionExtension for Autodiff<B, C> {
    fn causal_attention(
        q: FloatTensor<Self>,
        k: FloatTensor<Self>,
        v: FloatTensor<Self>,
        rows: Rows,
        scale: f32,
    ) -> FloatTensor<Self> {
        #[derive(Debug)]
        struct CausalAttention;
        impl<B: AttentionKernel> Backward<B, 3> for CausalAttention {
            type State = Saved<B>;
            fn backward(self, ops: Ops<Self::State, 3>, gradients: &mut Gradients, _: &mut Checkpointer) {
                let gradient = gradients.consume::<B>(&ops.node);
                let Saved { q, k, v, output, log_sums, rows, scale } = ops.state;
                let AttentionGradients { dq, dk, dv } =
                    B::attention_backward(q, k, v, output, log_sums, gradient, &rows, scale);
                for (node, gradient) in ops.parents.into_iter().zip([dq, dk, dv]) {
                    if let Some(node) = node {
                        gradients.register::<B>(node.id, gradient);
                    }
                }
            }
        }
        let nodes = [q.node(), k.node(), v.node()];
        let (q, k, v) = (q.into_primitive(), k.into_primitive(), v.into_primitive());
        match CausalAttention.prepare::<C>(nodes).compute_bound().stateful() {
            OpsKind::Tracked(prep) => {
                let (output, log_sums) = B::attention_forward(q.clone(), k.clone(), v.clone(), &rows, scale);
                let saved = Saved { q, k, v, output: output.clone(), log_sums, rows, scale };
                prep.finish(saved, output)
            }
            OpsKind::UnTracked(prep) => prep.finish(B::causal_attention(q, k, v, rows, scale)),
        }
    }
}
