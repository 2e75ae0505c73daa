//! What all parts of a run share.

use alto_core::burn::BurnBackend;
use alto_core::model::ModelWeights;
use burn::tensor::{DType, Device};

use crate::device::{Place, named};
use crate::sizes::Sizes;
use crate::torch::TorchTimes;

/// The device, what is timed on it, and what PyTorch took for the same.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) place: Place,
    /// Without differentiation.
    pub(crate) device: Device,
    /// Of weights and activations in what is timed.
    pub(crate) dtype: DType,
    pub(crate) sizes: Sizes,
    pub(crate) torch: TorchTimes,
}

impl Run {
    /// A model of these weights on the device.
    ///
    /// # Panics
    /// If the device can't hold it in the dtype.
    pub(crate) fn backend(&self, weights: ModelWeights) -> BurnBackend {
        let backend = BurnBackend::with_dtype(self.sizes.config(), weights, &self.device, named(self.dtype));
        backend.unwrap_or_else(|error| panic!("{error}"))
    }
}
