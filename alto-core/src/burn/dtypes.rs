//! Which dtypes a device can train in.

use burn::backend::DispatchDevice;
use burn::tensor::{DType, Device};

use crate::backend::BackendError;
use crate::dtype::Dtype;
use crate::model::ModelWeights;

/// Burn's name for the dtype.
pub(super) fn of_burn(dtype: Dtype) -> DType {
    match dtype {
        Dtype::F32 => DType::F32,
        Dtype::F16 => DType::F16,
        Dtype::Bf16 => DType::BF16,
    }
}

/// What gradients of activations are multiplied by on their way, so that the dtype can hold them.
///
/// Those of a mean over hundreds of tokens lie where f16 has few digits or none. The power of two changes nothing else, and
/// what it makes overflow is a gradient that isn't finite: the step is skipped, and says so.
pub(super) fn gradient_scale(dtype: Dtype) -> f32 {
    match dtype {
        Dtype::F32 | Dtype::Bf16 => 1.0,
        Dtype::F16 => 1024.0,
    }
}

/// Checks that the device has the dtype, and the dtype all weights.
///
/// Without asking first, a device that lacks the dtype may give garbage and no error.
pub(super) fn check(device: &Device, dtype: Dtype, weights: &ModelWeights) -> Result<(), BackendError> {
    if !supports(device, dtype) {
        let supported = Dtype::ALL.into_iter().filter(|&dtype| supports(device, dtype)).map(Dtype::name);
        return Err(BackendError::UnsupportedDtype {
            device: format!("{:?}", device.as_dispatch()),
            dtype,
            supported: supported.collect::<Vec<_>>().join(", "),
        });
    }
    match weights.largest() {
        weight if weight.abs() > dtype.largest() => Err(BackendError::WeightOutOfRange { weight, dtype }),
        _ => Ok(()),
    }
}

fn supports(device: &Device, dtype: Dtype) -> bool {
    match device.as_dispatch() {
        // Flex has them all, but the kernels on it compute in f32 alone.
        DispatchDevice::Flex(_) => dtype == Dtype::F32,
        _ => device.supports_dtype(of_burn(dtype)),
    }
}
