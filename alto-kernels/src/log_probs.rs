//! Log-probabilities of labelled tokens under a linear head, without ever holding the logits.
//!
//! `l[n] = log softmax(x[t_n] Wᵀ)[target_n]`.

use burn::backend::autodiff::Autodiff;
use burn::backend::autodiff::checkpoint::base::Checkpointer;
use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::autodiff::grads::Gradients;
use burn::backend::autodiff::ops::{Backward, Ops, OpsKind};
use burn::backend::tensor::FloatTensor;
use burn::backend::{Backend, Dispatch, Flex, TensorMetadata, backend_extension};
use burn::tensor::Tensor;

/// The natural-log probability of each labelled token.
///
/// - `x`: `[tokens, width]`, the hidden states.
/// - `head`: `[vocabulary, width]`, frozen: it gets no gradient, even if it asks for one.
/// - `targets`: for each token what it is to predict, if anything.
/// - Returns `[labelled]`, f32, one for each `Some`, in order.
///
/// Tokens without a target cost nothing. Forward goes over the vocabulary once, in chunks, and keeps each labelled token's
/// unit gradient `W[target] - softmax W`, in the dtype of `x`; backward only scales it, so logits are neither stored nor
/// computed again, and any function of the log-probabilities can be trained on.
///
/// # Panics
/// If shapes contradict each other or a target is outside the vocabulary.
pub fn linear_log_probs(x: Tensor<2>, head: Tensor<2>, targets: &[Option<u32>]) -> Tensor<1> {
    let ([tokens, width], [vocabulary, head_width]) = (x.dims(), head.dims());
    assert_eq!(width, head_width, "x has width {width}, the head takes {head_width}");
    assert_eq!(targets.len(), tokens, "{} targets for {tokens} tokens", targets.len());
    let labelled = targets.iter().enumerate().filter_map(|(token, target)| Some((token, (*target)? as usize)));
    let labelled: Vec<(usize, usize)> = labelled.collect();
    for &(token, target) in &labelled {
        assert!(target < vocabulary, "token {token} has the target {target}, the vocabulary has {vocabulary}");
    }
    Tensor::from_dispatch(Dispatch::linear_log_probs(x.into_dispatch(), head.into_dispatch(), labelled))
}

/// What a backend computes for [`linear_log_probs`]; `labelled` holds each labelled token with its target, in order.
pub trait LogProbsKernel: Backend {
    /// Log-probabilities `[labelled]`, and if `needs_gradient` the unit gradients `[labelled, width]`.
    fn log_probs_forward(
        x: FloatTensor<Self>,
        head: FloatTensor<Self>,
        labelled: &[(usize, usize)],
        needs_gradient: bool,
    ) -> (FloatTensor<Self>, Option<FloatTensor<Self>>);

    /// Each labelled token's unit gradient times `gradient` `[labelled]`, and zeros elsewhere: `[tokens, width]`.
    fn log_probs_backward(
        unit: FloatTensor<Self>,
        gradient: FloatTensor<Self>,
        labelled: &[(usize, usize)],
        tokens: usize,
    ) -> FloatTensor<Self>;
}

/// The differentiable operation behind [`linear_log_probs`].
#[backend_extension(Autodiff, Flex, Cube: cfg(feature = "cubecl"))]
pub trait LogProbsExtension: Backend {
    /// As [`linear_log_probs`](crate::linear_log_probs), which checks its arguments first.
    fn linear_log_probs(
        x: FloatTensor<Self>,
        head: FloatTensor<Self>,
        labelled: Vec<(usize, usize)>,
    ) -> FloatTensor<Self>;
}

impl LogProbsExtension for Flex {
    fn linear_log_probs(
        x: FloatTensor<Self>,
        head: FloatTensor<Self>,
        labelled: Vec<(usize, usize)>,
    ) -> FloatTensor<Self> {
        Self::log_probs_forward(x, head, &labelled, false).0
    }
}

impl<B: LogProbsKernel + LogProbsExtension, C: CheckpointStrategy> LogProbsExtension for Autodiff<B, C> {
    fn linear_log_probs(
        x: FloatTensor<Self>,
        head: FloatTensor<Self>,
        labelled: Vec<(usize, usize)>,
    ) -> FloatTensor<Self> {
        #[derive(Debug)]
        struct LinearLogProbs;
        impl<B: LogProbsKernel> Backward<B, 1> for LinearLogProbs {
            type State = (FloatTensor<B>, Vec<(usize, usize)>, usize);
            fn backward(self, ops: Ops<Self::State, 1>, gradients: &mut Gradients, _: &mut Checkpointer) {
                let [x] = ops.parents;
                let gradient = gradients.consume::<B>(&ops.node);
                let (unit, labelled, tokens) = ops.state;
                if let Some(node) = x {
                    gradients.register::<B>(node.id, B::log_probs_backward(unit, gradient, &labelled, tokens));
                }
            }
        }
        let nodes = [x.node()];
        let (x, head) = (x.into_primitive(), head.into_primitive());
        match LinearLogProbs.prepare::<C>(nodes).compute_bound().stateful() {
            OpsKind::Tracked(prep) => {
                let tokens = x.shape()[0];
                let (log_probs, unit) = B::log_probs_forward(x, head, &labelled, true);
                prep.finish((unit.expect("asked for"), labelled, tokens), log_probs)
            }
            OpsKind::UnTracked(prep) => prep.finish(B::linear_log_probs(x, head, labelled)),
        }
    }
}
