//! Flex tensors as slices, and slices as Flex tensors.

use burn::backend::Flex;
use burn::backend::tensor::FloatTensor;
use burn::tensor::{DType, TensorData};

/// A Flex tensor that is known to be f32 and contiguous, so that it can be read as a slice.
#[derive(Debug, Clone)]
pub(super) struct Dense(FloatTensor<Flex>);

impl Dense {
    /// Copies only what isn't contiguous.
    ///
    /// # Panics
    /// If the tensor isn't f32.
    pub(super) fn new(tensor: FloatTensor<Flex>) -> Self {
        assert_f32(&tensor);
        let dense = if tensor.as_slice::<f32>().is_some() { tensor } else { tensor.to_contiguous() };
        Self(dense)
    }

    pub(super) fn slice(&self) -> &[f32] {
        self.0.as_slice().expect("contiguous f32 since it was made")
    }

    pub(super) fn dims<const D: usize>(&self) -> [usize; D] {
        dims(&self.0)
    }
}

fn assert_f32(tensor: &FloatTensor<Flex>) {
    assert_eq!(tensor.dtype(), DType::F32, "the Flex kernels compute in f32, got a tensor of {:?}", tensor.dtype());
}

/// The tensor's shape.
pub(super) fn dims<const D: usize>(tensor: &FloatTensor<Flex>) -> [usize; D] {
    tensor.layout().shape().dims()
}

/// Row-major data as a tensor, without a copy.
pub(super) fn tensor<const D: usize>(data: Vec<f32>, shape: [usize; D]) -> FloatTensor<Flex> {
    FloatTensor::<Flex>::from_data(TensorData::new(data, shape))
}

/// The tensor's memory for change in place; copied first where it is shared or not contiguous.
pub(super) fn into_vec(tensor: FloatTensor<Flex>) -> Vec<f32> {
    assert_f32(&tensor);
    tensor.into_data().try_into_vec().expect("f32, as just checked")
}
