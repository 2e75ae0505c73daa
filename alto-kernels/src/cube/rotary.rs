//! Rotary position embedding on CubeCL, one launch each way.
//!
//! For `i` under `half`: `y[i] = x[i] cos - x[i + half] sin`, `y[i + half] = x[i + half] cos + x[i] sin`.
//! `x`, `y`: `[tokens, heads, 2 half]`; `cos`, `sin`: `[positions, half]`, f32 or of the type of `x`; `positions`: each
//! token's place in its row, which is also its angles' place in `cos` and `sin`. A unit turns a vector of pairs at a time.

use burn::backend::TensorMetadata;
use burn::backend::tensor::FloatTensor;
use burn_cubecl::CubeBackend;
use cubecl::ir::ElemType;
use cubecl::prelude::*;

use super::hardware::{cubes, units};
use super::tensor::{RowMajor, empty, vector};
use crate::rotary::{RotaryExtension, RotaryKernel};
use crate::rows::Rows;

/// `half` and strides are in vectors, `pairs` is how many pairs of vectors the output has; `direction` is -1 to turn back.
#[cube(launch_unchecked, create_dummy_kernel)]
pub(super) fn rotate<E: Float, C: Float, N: Size>(
    x: &[Vector<E, N>],
    cos: &[Vector<C, N>],
    sin: &[Vector<C, N>],
    positions: &[u32],
    y: &mut [Vector<E, N>],
    pairs: u32,
    heads: u32,
    half: u32,
    x_stride: u32,
    cos_stride: u32,
    sin_stride: u32,
    direction: f32,
    #[comptime] units: usize,
    #[define(N)] _vector: usize,
    #[define(E)] _elem: ElemType,
    #[define(C)] _angles: ElemType,
) {
    let (heads, half) = (heads as usize, half as usize);
    let first = CUBE_POS_X as usize * units + UNIT_POS as usize;
    for pair in range_stepped(first, pairs as usize, CUBE_COUNT_X as usize * units) {
        let (head, i) = (pair / half, pair % half);
        let token = head / heads;
        let position = positions[token] as usize;
        let cos = Vector::<f32, N>::cast_from(cos[position * cos_stride as usize + i]);
        let sin = Vector::<f32, N>::cast_from(sin[position * sin_stride as usize + i]) * Vector::new(direction);
        let from = token * x_stride as usize + head % heads * 2 * half + i;
        let to = head * 2 * half + i;
        let low = Vector::<f32, N>::cast_from(x[from]);
        let high = Vector::<f32, N>::cast_from(x[from + half]);
        y[to] = Vector::cast_from(low * cos - high * sin);
        y[to + half] = Vector::cast_from(high * cos + low * sin);
    }
}

impl RotaryKernel for CubeBackend {
    fn rotate(
        x: FloatTensor<Self>,
        cos: FloatTensor<Self>,
        sin: FloatTensor<Self>,
        rows: &Rows,
        inverse: bool,
    ) -> FloatTensor<Self> {
        let [_, heads, _] = x.shape().dims();
        let (x, cos, sin) = (RowMajor::new(x), RowMajor::new(cos), RowMajor::new(sin));
        assert_eq!(cos.tensor().dtype, sin.tensor().dtype, "cos and sin have one dtype");
        let like = x.tensor();
        let y = empty(like, like.shape(), like.dtype);
        if x.rows == 0 || x.width == 0 {
            return y;
        }
        let positions = || rows.iter().flat_map(|&length| 0..length as u32).collect();
        let positions = rows.tables().get(like, "position", 0, positions, 1);
        let half = cos.width;
        let vector = vector(&[&x, &cos, &sin], half);
        let pairs = x.rows * x.width / 2 / vector;
        let units = units(&like.client, pairs);
        // SAFETY: as many pairs as x and y have; the tables reach over every row's positions and half a head.
        unsafe {
            rotate::launch_unchecked(
                &like.client,
                cubes(&like.client, pairs.div_ceil(units)),
                CubeDim::new_1d(units as u32),
                x.arg(),
                cos.arg(),
                sin.arg(),
                positions.arg(),
                y.clone().into_buffer_arg(),
                pairs as u32,
                heads as u32,
                (half / vector) as u32,
                (x.stride / vector) as u32,
                (cos.stride / vector) as u32,
                (sin.stride / vector) as u32,
                if inverse { -1.0 } else { 1.0 },
                units,
                vector,
                x.elem(),
                cos.elem(),
            );
        }
        y
    }
}

impl RotaryExtension for CubeBackend {
    fn rotary(x: FloatTensor<Self>, cos: FloatTensor<Self>, sin: FloatTensor<Self>, rows: Rows) -> FloatTensor<Self> {
        Self::rotate(x, cos, sin, &rows, false)
    }
}
