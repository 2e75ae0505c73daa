//! Between host and device, in both directions; nothing else sends or reads.

use std::sync::atomic::{AtomicU64, Ordering};

use burn::tensor::{Bool, DType, Device, Int, Tensor, TensorData};

use crate::backend::BackendError;
use crate::matrix::Matrix;

/// A matrix on the device, rounded to the dtype.
pub(super) fn matrix(matrix: Matrix, device: &Device, dtype: DType) -> Tensor<2> {
    let shape = [matrix.rows(), matrix.columns()];
    Tensor::from_data(TensorData::new(matrix.into_data(), shape), (device, dtype))
}

/// A vector on the device, rounded to the dtype.
pub(super) fn vector(data: Vec<f32>, device: &Device, dtype: DType) -> Tensor<1> {
    let length = data.len();
    Tensor::from_data(TensorData::new(data, [length]), (device, dtype))
}

/// Token ids on the device.
pub(super) fn ids(tokens: &[u32], device: &Device) -> Tensor<1, Int> {
    let ids: Vec<i32> = tokens.iter().map(|&token| token as i32).collect();
    Tensor::from_data(TensorData::new(ids, [tokens.len()]), device)
}

/// A column of flags on the device, `[flags, 1]`.
pub(super) fn flags(flags: Vec<bool>, device: &Device) -> Tensor<2, Bool> {
    let shape = [flags.len(), 1];
    Tensor::from_data(TensorData::new(flags, shape), device)
}

/// Zeros of f32, the dtype of all that belongs to adapters.
pub(super) fn zeros(entries: usize, device: &Device) -> Tensor<1> {
    Tensor::zeros([entries], (device, DType::F32))
}

/// Reads from the device, and counts how often: each read waits until the device has caught up.
#[derive(Debug, Default)]
pub(super) struct Reads(AtomicU64);

impl Reads {
    /// Reads so far.
    pub(super) fn count(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// The entries of f32 tensors, laid end to end on the device and brought over in one transfer; none for no entries.
    pub(super) fn read(&self, tensors: Vec<Tensor<1>>) -> Result<Vec<f32>, BackendError> {
        let mut tensors: Vec<_> = tensors.into_iter().filter(|tensor| tensor.dims() != [0]).collect();
        let all = match tensors.len() {
            0 => return Ok(Vec::new()),
            1 => tensors.remove(0),
            _ => Tensor::cat(tensors, 0),
        };
        self.0.fetch_add(1, Ordering::Relaxed);
        let data = all.try_into_data().map_err(|error| BackendError::Device { source: Box::new(error) })?;
        data.try_into_vec().map_err(|error| BackendError::Device { source: format!("{error:?}").into() })
    }
}
