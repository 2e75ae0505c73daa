//! Burn tensors as arguments of launches.

use burn::backend::TensorMetadata;
use burn::tensor::{DType, Shape};
use burn_cubecl::kernel::into_contiguous;
use burn_cubecl::tensor::CubeTensor;
use cubecl::ir::ElemType;
use cubecl::prelude::BufferArg;

/// Rows whose entries are dense, at any distance from one another: `[rows, width]`.
///
/// All dimensions of the tensor after its first are one row. Devices may lay rows out with a gap between them.
pub(super) struct RowMajor {
    tensor: CubeTensor,
    /// Rows.
    pub(super) rows: usize,
    /// Entries in a row.
    pub(super) width: usize,
    /// Entries from a row's first to the next row's first.
    pub(super) stride: usize,
}

impl RowMajor {
    /// As the tensor lies if its rows are dense, else a copy.
    pub(super) fn new(tensor: CubeTensor) -> Self {
        let shape = tensor.shape();
        let width: usize = shape[1..].iter().product();
        let dense = {
            let mut next = 1;
            let dims = shape[1..].iter().zip(&tensor.meta.strides()[1..]).rev();
            let mut dense = true;
            for (&length, &stride) in dims {
                dense &= length == 1 || stride == next;
                next *= length;
            }
            dense && tensor.meta.strides()[0] >= width
        };
        let tensor = if dense { tensor } else { into_contiguous(tensor) };
        let (rows, stride) = (shape[0], tensor.meta.strides()[0]);
        Self { tensor, rows, width, stride }
    }

    pub(super) fn tensor(&self) -> &CubeTensor {
        &self.tensor
    }

    pub(super) fn into_tensor(self) -> CubeTensor {
        self.tensor
    }

    pub(super) fn elem(&self) -> ElemType {
        elem(&self.tensor)
    }

    /// Whether every row is made of vectors of so many entries, aligned to their size.
    pub(super) fn is_made_of(&self, entries: usize) -> bool {
        let offset = self.tensor.handle.offset_start.unwrap_or(0) as usize;
        self.width.is_multiple_of(entries)
            && self.stride.is_multiple_of(entries)
            && offset.is_multiple_of(entries * self.tensor.dtype.size())
    }

    /// As an argument `&[E]` of a launch; row `r` begins at `r * stride`.
    pub(super) fn arg(&self) -> BufferArg {
        self.tensor.clone().into_buffer_arg()
    }
}

/// Entries in the longest vectors that all of these can be read in: none reaches over a row's end or lies askew in memory.
///
/// `width` divides every row evenly, such as the width of one of its heads.
pub(super) fn vector(rows: &[&RowMajor], width: usize) -> usize {
    let fits = |&vector: &usize| {
        let fits = |rows: &&RowMajor| {
            let bytes = (vector * rows.tensor.dtype.size()) as u64;
            let offset = rows.tensor.handle.offset_start.unwrap_or(0);
            rows.stride.is_multiple_of(vector) && offset.is_multiple_of(bytes)
        };
        width.is_multiple_of(vector) && rows.iter().all(fits)
    };
    let client = &rows[0].tensor.client;
    let largest = rows.iter().map(|rows| rows.tensor.dtype.size()).max().unwrap_or(size_of::<f32>());
    client.io_optimized_vector_sizes(largest).find(fits).unwrap_or(1)
}

/// A dense tensor of whatever entries the memory holds.
pub(super) fn empty(like: &CubeTensor, shape: impl Into<Shape>, dtype: DType) -> CubeTensor {
    let shape = shape.into();
    // A buffer can't be empty.
    let buffer = like.client.empty(shape.num_elements().max(1) * dtype.size());
    CubeTensor::new_contiguous(like.client.clone(), like.device.clone(), shape, buffer, dtype)
}

/// The type that a kernel is compiled for.
pub(super) fn elem(tensor: &CubeTensor) -> ElemType {
    burn::backend::cubecl::dtype_to_storage_type(tensor.dtype)
}
