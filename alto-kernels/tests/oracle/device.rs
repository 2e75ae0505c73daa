//! Matrices to tensors of the device under test and back.
//!
//! The device is Flex in f32, or what the environment says: `ALTO_DEVICE` is `flex`, `cpu`, `wgpu` or `cuda`, as far as
//! the features of those names are on; `ALTO_DTYPE` is `f32`, `f16` or `bf16`, for weights and activations.

use std::env;
use std::sync::OnceLock;

use alto_kernels::reference::Matrix;
use burn::tensor::{DType, Device, Gradients, Tensor, TensorData};

/// How a tensor lies in memory; a kernel must not care.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Layout {
    /// Row-major, without gaps.
    Dense,
    /// The first two dimensions swapped.
    Transposed,
    /// A part of a larger tensor in every dimension.
    Sliced,
}

impl Layout {
    pub(crate) const ALL: [Self; 3] = [Self::Dense, Self::Transposed, Self::Sliced];

    /// What a kernel is given of a stored tensor.
    fn view<const D: usize>(self, stored: Tensor<D>) -> Tensor<D> {
        match self {
            Self::Dense => stored,
            Self::Transposed => stored.swap_dims(0, 1),
            Self::Sliced => {
                let inside = stored.dims().map(|length| 1..length - 2);
                stored.slice(inside)
            }
        }
    }

    /// The stored tensor whose view has these entries.
    fn stored<const D: usize>(self, entries: Tensor<D>) -> Tensor<D> {
        match self {
            Self::Dense => entries,
            Self::Transposed => stored_anew(entries.swap_dims(0, 1)),
            Self::Sliced => {
                let lengths = entries.dims();
                // What lies around the view must not be read.
                let around = Tensor::full(lengths.map(|length| length + 3), f32::NAN, (&device(), entries.dtype()));
                around.slice_assign(lengths.map(|n| 1..n + 1), entries)
            }
        }
    }
}

/// Row-major and of its own memory.
fn stored_anew<const D: usize>(tensor: Tensor<D>) -> Tensor<D> {
    let dtype = tensor.dtype();
    Tensor::from_data(tensor.into_data(), (&device(), dtype))
}

/// A tensor that gradients are asked for, behind a view.
pub(crate) struct Leaf<const D: usize> {
    stored: Tensor<D>,
    layout: Layout,
}

impl<const D: usize> Leaf<D> {
    /// A tensor of this shape with the matrix's entries, in row-major order.
    pub(crate) fn new(matrix: &Matrix, shape: [usize; D], layout: Layout) -> Self {
        // A slice without entries isn't differentiable.
        let layout = if shape.contains(&0) { Layout::Dense } else { layout };
        Self { stored: layout.stored(tensor(matrix, shape)).require_grad(), layout }
    }

    /// As [`new`](Self::new), but in f32 whatever dtype is under test.
    pub(crate) fn f32(matrix: &Matrix, shape: [usize; D], layout: Layout) -> Self {
        let layout = if shape.contains(&0) { Layout::Dense } else { layout };
        Self { stored: layout.stored(tensor_f32(matrix, shape)).require_grad(), layout }
    }

    /// What a kernel is given.
    pub(crate) fn view(&self) -> Tensor<D> {
        self.layout.view(self.stored.clone())
    }

    /// The gradient with respect to what the kernel was given.
    pub(crate) fn gradient(&self, gradients: &Gradients) -> Option<Matrix> {
        self.stored.grad(gradients).map(|gradient| matrix(self.layout.view(gradient)))
    }
}

/// The device under test, with differentiation.
pub(crate) fn device() -> Device {
    static DEVICE: OnceLock<Device> = OnceLock::new();
    DEVICE.get_or_init(|| inner_device().autodiff()).clone()
}

fn inner_device() -> Device {
    match env::var("ALTO_DEVICE").as_deref().unwrap_or("flex") {
        "flex" => Device::flex(),
        #[cfg(feature = "cpu")]
        "cpu" => Device::cpu(),
        #[cfg(feature = "wgpu")]
        "wgpu" => Device::wgpu(burn::tensor::DeviceKind::DefaultDevice),
        #[cfg(feature = "cuda")]
        "cuda" => Device::cuda(0),
        other => panic!("ALTO_DEVICE is {other}, which isn't among the features that this was built with"),
    }
}

/// The dtype under test, of weights and activations; what belongs to adapters is f32 always.
pub(crate) fn dtype() -> DType {
    static DTYPE: OnceLock<DType> = OnceLock::new();
    *DTYPE.get_or_init(|| match env::var("ALTO_DTYPE").as_deref().unwrap_or("f32") {
        "f32" => DType::F32,
        "f16" => DType::F16,
        "bf16" => DType::BF16,
        other => panic!("ALTO_DTYPE is {other}, expected f32, f16 or bf16"),
    })
}

fn of_dtype<const D: usize>(matrix: &Matrix, shape: [usize; D], dtype: DType) -> Tensor<D> {
    let data: Vec<f32> = matrix.data().iter().map(|&entry| entry as f32).collect();
    Tensor::from_data(TensorData::new(data, shape), (&device(), dtype))
}

/// A tensor without a gradient on the differentiable device under test, of the dtype under test.
pub(crate) fn tensor<const D: usize>(matrix: &Matrix, shape: [usize; D]) -> Tensor<D> {
    of_dtype(matrix, shape, dtype())
}

/// As [`tensor`], but in f32 whatever is under test.
pub(crate) fn tensor_f32<const D: usize>(matrix: &Matrix, shape: [usize; D]) -> Tensor<D> {
    of_dtype(matrix, shape, DType::F32)
}

/// A tensor with as many rows and columns as the matrix.
pub(crate) fn tensor2(matrix: &Matrix) -> Tensor<2> {
    tensor(matrix, [matrix.rows(), matrix.columns()])
}

/// All dimensions after the first are columns; a tensor of one dimension is one row.
pub(crate) fn matrix<const D: usize>(tensor: Tensor<D>) -> Matrix {
    let dims = tensor.dims();
    let (rows, columns) = if D == 1 { (1, dims[0]) } else { (dims[0], dims[1..].iter().product()) };
    let data: Vec<f32> = tensor.into_data().convert::<f32>().try_to_vec().expect("f32");
    Matrix::from_f32(rows, columns, &data)
}

/// The gradients of `sum(y * dy)`, reaching `y` in the given layout.
pub(crate) fn backward<const D: usize>(y: Tensor<D>, dy: &Matrix, layout: Layout) -> Gradients {
    let dy = of_dtype(dy, y.dims(), y.dtype());
    let (y, dy) = match layout {
        Layout::Transposed if D > 1 => (y.swap_dims(0, 1), dy.swap_dims(0, 1)),
        _ => (y, dy),
    };
    (y * dy).backward()
}
