//! Root-mean-square normalization on CubeCL, a cube for a token at a time.
//!
//! `y = x f weight` with `f = 1 / sqrt(mean(x²) + epsilon)`; `dx = f (g - x f² mean(g x))` with `g = dy weight`.
//! `x`, `y`, `dy`, `dx`: `[tokens, width]`; `weight`: `[width]`; `factors`: `[tokens]`, f32. Sums are f32.

use burn::backend::TensorMetadata;
use burn::backend::tensor::FloatTensor;
use burn::tensor::{DType, Shape};
use burn_cubecl::CubeBackend;
use burn_cubecl::kernel::into_contiguous;
use cubecl::ir::ElemType;
use cubecl::prelude::*;

use super::hardware::{cubes, units};
use super::reduce::sum;
use super::tensor::{RowMajor, empty};
use crate::norm::{NormExtension, NormKernel};

#[cube(launch_unchecked, create_dummy_kernel)]
pub(super) fn rms_norm_forward<E: Float>(
    x: &[E],
    weight: &[E],
    y: &mut [E],
    factors: &mut [f32],
    tokens: u32,
    width: u32,
    stride: u32,
    epsilon: f32,
    #[comptime] units: usize,
    #[define(E)] _elem: ElemType,
) {
    let (unit, width) = (UNIT_POS as usize, width as usize);
    let mut scratch = Shared::<[f32]>::new_slice(units);
    for token in range_stepped(CUBE_POS_X as usize, tokens as usize, CUBE_COUNT_X as usize) {
        let row = token * stride as usize;
        let mut squares = 0.0f32;
        for i in range_stepped(unit, width, units) {
            let x = f32::cast_from(x[row + i]);
            squares += x * x;
        }
        let squares = sum(squares, &mut scratch, units);
        let factor = 1.0f32 / (squares / width as f32 + epsilon).sqrt();
        for i in range_stepped(unit, width, units) {
            y[token * width + i] = E::cast_from(f32::cast_from(x[row + i]) * factor * f32::cast_from(weight[i]));
        }
        if unit == 0 {
            factors[token] = factor;
        }
    }
}

#[cube(launch_unchecked, create_dummy_kernel)]
pub(super) fn rms_norm_backward<E: Float>(
    x: &[E],
    weight: &[E],
    factors: &[f32],
    dy: &[E],
    dx: &mut [E],
    tokens: u32,
    width: u32,
    x_stride: u32,
    dy_stride: u32,
    #[comptime] units: usize,
    #[define(E)] _elem: ElemType,
) {
    let (unit, width) = (UNIT_POS as usize, width as usize);
    let mut scratch = Shared::<[f32]>::new_slice(units);
    for token in range_stepped(CUBE_POS_X as usize, tokens as usize, CUBE_COUNT_X as usize) {
        let (x_row, dy_row) = (token * x_stride as usize, token * dy_stride as usize);
        let factor = factors[token];
        let mut products = 0.0f32;
        for i in range_stepped(unit, width, units) {
            products += f32::cast_from(dy[dy_row + i]) * f32::cast_from(weight[i]) * f32::cast_from(x[x_row + i]);
        }
        let mean = sum(products, &mut scratch, units) / width as f32;
        let pull = factor * factor * mean;
        for i in range_stepped(unit, width, units) {
            let g = f32::cast_from(dy[dy_row + i]) * f32::cast_from(weight[i]);
            dx[token * width + i] = E::cast_from(factor * (g - f32::cast_from(x[x_row + i]) * pull));
        }
    }
}

impl NormKernel for CubeBackend {
    fn rms_norm_forward(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        epsilon: f32,
    ) -> (FloatTensor<Self>, FloatTensor<Self>) {
        let (x, weight) = (RowMajor::new(x), into_contiguous(weight));
        let like = x.tensor();
        let y = empty(like, like.shape(), like.dtype);
        let factors = empty(like, Shape::new([x.rows]), DType::F32);
        if x.rows == 0 || x.width == 0 {
            return (y, factors);
        }
        let units = units(&like.client, x.width);
        // SAFETY: cubes go over the tokens of x and y and over their width; weight and factors are as long.
        unsafe {
            rms_norm_forward::launch_unchecked(
                &like.client,
                cubes(&like.client, x.rows),
                CubeDim::new_1d(units as u32),
                x.arg(),
                weight.into_buffer_arg(),
                y.clone().into_buffer_arg(),
                factors.clone().into_buffer_arg(),
                x.rows as u32,
                x.width as u32,
                x.stride as u32,
                epsilon,
                units,
                x.elem(),
            );
        }
        (y, factors)
    }

    fn rms_norm_backward(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        factors: FloatTensor<Self>,
        dy: FloatTensor<Self>,
    ) -> FloatTensor<Self> {
        let (x, dy, weight) = (RowMajor::new(x), RowMajor::new(dy), into_contiguous(weight));
        let like = x.tensor();
        let dx = empty(like, like.shape(), like.dtype);
        if x.rows == 0 || x.width == 0 {
            return dx;
        }
        let units = units(&like.client, x.width);
        // SAFETY: as forward, and dy has the shape of x.
        unsafe {
            rms_norm_backward::launch_unchecked(
                &like.client,
                cubes(&like.client, x.rows),
                CubeDim::new_1d(units as u32),
                x.arg(),
                weight.into_buffer_arg(),
                into_contiguous(factors).into_buffer_arg(),
                dy.arg(),
                dx.clone().into_buffer_arg(),
                x.rows as u32,
                x.width as u32,
                x.stride as u32,
                dy.stride as u32,
                units,
                x.elem(),
            );
        }
        dx
    }
}

impl NormExtension for CubeBackend {
    fn rms_norm(x: FloatTensor<Self>, weight: FloatTensor<Self>, epsilon: f32) -> FloatTensor<Self> {
        Self::rms_norm_forward(x, weight, epsilon).0
    }
}
