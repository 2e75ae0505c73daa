//! AdamW for many adapters at once, each with its own settings and step clock.
//!
//! As `torch.optim.AdamW`: `p -= lr wd p`, `m = b1 m + (1 - b1) g`, `v = b2 v + (1 - b2) g²`,
//! `p -= lr / (1 - b1^t) m / (sqrt(v / (1 - b2^t)) + epsilon)`, with `g` scaled by `min(1, clip / (norm + 1e-6))` first.

use std::ops::Range;

use burn::backend::tensor::FloatTensor;
use burn::backend::{Backend, Dispatch, backend_extension};
use burn::tensor::Tensor;

/// The entries of the flat parameters that make up one adapter, and how they are updated.
#[derive(Debug, Clone, PartialEq)]
pub struct AdamWGroup {
    /// The adapter's tensors, each as a range of entries; may be empty.
    pub spans: Vec<Range<usize>>,
    /// Learning rate of this step.
    pub learning_rate: f64,
    /// Decoupled weight decay.
    pub weight_decay: f64,
    /// Decay rates of the moments.
    pub betas: (f64, f64),
    /// Added to the root of the second moment.
    pub epsilon: f64,
    /// Largest gradient norm over all of the group's spans together.
    pub clip: Option<f64>,
    /// Which step this is for the group, from 1.
    pub step: u64,
}

/// All adapters' parameters in one flat tensor, with their moments laid out alike; each is `[entries]`, f32.
///
/// They are updated in place where nothing else holds them, so drop views of them first.
#[derive(Debug, Clone)]
pub struct AdamWState {
    /// The parameters.
    pub parameters: Tensor<1>,
    /// Running means of the gradients.
    pub first: Tensor<1>,
    /// Running means of the squared gradients.
    pub second: Tensor<1>,
}

/// One optimizer step of every group, in one launch for all of them.
///
/// `gradient` is `[entries]`, laid out as the parameters. Entries in no group stay as they are, whatever their gradient.
/// Tensors are inner ones, without autodiff.
/// Returns the updated state, and for each group, `[groups, 2]`: the norm of its gradient before clipping, and the index
/// of the first span in which its gradient is not finite, or -1. Such a group is left as it was, moments included.
///
/// # Panics
/// If shapes differ, a group reaches outside, two spans overlap, or a step is 0.
pub fn grouped_adamw(state: AdamWState, gradient: Tensor<1>, groups: &[AdamWGroup]) -> (AdamWState, Tensor<2>) {
    let AdamWState { parameters, first, second } = state;
    let [entries] = parameters.dims();
    for (what, tensor) in [("the gradient", &gradient), ("the first moment", &first), ("the second moment", &second)] {
        let [found] = tensor.dims();
        assert_eq!(found, entries, "{what} has {found} entries, the parameters have {entries}");
    }
    check(entries, groups);
    let (parameters, first, second, report) = Dispatch::grouped_adamw(
        parameters.into_dispatch(),
        first.into_dispatch(),
        second.into_dispatch(),
        gradient.into_dispatch(),
        groups.to_vec(),
    );
    let [parameters, first, second] = [parameters, first, second].map(Tensor::from_dispatch);
    (AdamWState { parameters, first, second }, Tensor::from_dispatch(report))
}

fn check(entries: usize, groups: &[AdamWGroup]) {
    assert!(groups.iter().all(|group| group.step > 0), "steps count from 1");
    let mut used: Vec<_> = groups.iter().flat_map(|group| &group.spans).filter(|span| !span.is_empty()).collect();
    used.sort_by_key(|span| span.start);
    if let Some(last) = used.last() {
        assert!(last.end <= entries, "a group has the entries {last:?} of only {entries}");
    }
    for pair in used.windows(2) {
        assert!(pair[0].end <= pair[1].start, "two spans share entries: {:?} and {:?}", pair[0], pair[1]);
    }
}

/// What a backend computes for [`grouped_adamw`].
#[backend_extension(Flex, Cube: cfg(feature = "cubecl"))]
pub trait AdamWExtension: Backend {
    /// As [`grouped_adamw`](crate::grouped_adamw), which checks its arguments first: parameters, both moments, and the report.
    fn grouped_adamw(
        parameters: FloatTensor<Self>,
        first: FloatTensor<Self>,
        second: FloatTensor<Self>,
        gradient: FloatTensor<Self>,
        groups: Vec<AdamWGroup>,
    ) -> (FloatTensor<Self>, FloatTensor<Self>, FloatTensor<Self>, FloatTensor<Self>);
}
