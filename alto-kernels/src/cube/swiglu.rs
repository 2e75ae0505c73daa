//! The gated activation on CubeCL, one launch each way.
//!
//! `y = gate s up` with `s = 1 / (1 + e^-gate)`; `d_up = dy gate s`; `d_gate = dy up s (1 + gate (1 - s))`.
//! All are `[tokens, width]`, rows of inputs at any distance; in vectors as long as widths and distances allow.

use burn::backend::TensorMetadata;
use burn::backend::tensor::FloatTensor;
use burn_cubecl::CubeBackend;
use cubecl::ir::ElemType;
use cubecl::prelude::*;

use super::hardware::{cubes, units};
use super::tensor::{RowMajor, empty, vector};
use crate::swiglu::{SwigluExtension, SwigluKernel};

/// `width` and strides are in vectors, `vectors` is how many the output has.
#[cube(launch_unchecked, create_dummy_kernel)]
pub(super) fn swiglu_forward<E: Float, N: Size>(
    gate: &[Vector<E, N>],
    up: &[Vector<E, N>],
    y: &mut [Vector<E, N>],
    vectors: u32,
    width: u32,
    gate_stride: u32,
    up_stride: u32,
    #[comptime] units: usize,
    #[define(N)] _vector: usize,
    #[define(E)] _elem: ElemType,
) {
    let (vectors, width) = (vectors as usize, width as usize);
    let first = CUBE_POS_X as usize * units + UNIT_POS as usize;
    for i in range_stepped(first, vectors, CUBE_COUNT_X as usize * units) {
        let (row, column) = (i / width, i % width);
        let gate = Vector::<f32, N>::cast_from(gate[row * gate_stride as usize + column]);
        let up = Vector::<f32, N>::cast_from(up[row * up_stride as usize + column]);
        y[i] = Vector::cast_from(gate * sigmoid::<N>(gate) * up);
    }
}

#[cube(launch_unchecked, create_dummy_kernel)]
pub(super) fn swiglu_backward<E: Float, N: Size>(
    gate: &[Vector<E, N>],
    up: &[Vector<E, N>],
    dy: &[Vector<E, N>],
    d_gate: &mut [Vector<E, N>],
    d_up: &mut [Vector<E, N>],
    vectors: u32,
    width: u32,
    gate_stride: u32,
    up_stride: u32,
    dy_stride: u32,
    #[comptime] units: usize,
    #[define(N)] _vector: usize,
    #[define(E)] _elem: ElemType,
) {
    let (vectors, width) = (vectors as usize, width as usize);
    let first = CUBE_POS_X as usize * units + UNIT_POS as usize;
    for i in range_stepped(first, vectors, CUBE_COUNT_X as usize * units) {
        let (row, column) = (i / width, i % width);
        let gate = Vector::<f32, N>::cast_from(gate[row * gate_stride as usize + column]);
        let up = Vector::<f32, N>::cast_from(up[row * up_stride as usize + column]);
        let dy = Vector::<f32, N>::cast_from(dy[row * dy_stride as usize + column]);
        let (s, one) = (sigmoid::<N>(gate), Vector::<f32, N>::new(1.0f32));
        d_up[i] = Vector::cast_from(dy * gate * s);
        d_gate[i] = Vector::cast_from(dy * up * s * (one + gate * (one - s)));
    }
}

#[cube]
fn sigmoid<N: Size>(x: Vector<f32, N>) -> Vector<f32, N> {
    let one = Vector::<f32, N>::new(1.0f32);
    one / (one + (-x).exp())
}

impl SwigluKernel for CubeBackend {
    fn swiglu_forward(gate: FloatTensor<Self>, up: FloatTensor<Self>) -> FloatTensor<Self> {
        let (gate, up) = (RowMajor::new(gate), RowMajor::new(up));
        let like = gate.tensor();
        let y = empty(like, like.shape(), like.dtype);
        if gate.rows == 0 || gate.width == 0 {
            return y;
        }
        let vector = vector(&[&gate, &up], gate.width);
        let vectors = gate.rows * gate.width / vector;
        let units = units(&like.client, vectors);
        // SAFETY: as many vectors as y has; both inputs have its shape.
        unsafe {
            swiglu_forward::launch_unchecked(
                &like.client,
                cubes(&like.client, vectors.div_ceil(units)),
                CubeDim::new_1d(units as u32),
                gate.arg(),
                up.arg(),
                y.clone().into_buffer_arg(),
                vectors as u32,
                (gate.width / vector) as u32,
                (gate.stride / vector) as u32,
                (up.stride / vector) as u32,
                units,
                vector,
                gate.elem(),
            );
        }
        y
    }

    fn swiglu_backward(
        gate: FloatTensor<Self>,
        up: FloatTensor<Self>,
        dy: FloatTensor<Self>,
    ) -> (FloatTensor<Self>, FloatTensor<Self>) {
        let (gate, up, dy) = (RowMajor::new(gate), RowMajor::new(up), RowMajor::new(dy));
        let like = gate.tensor();
        let [d_gate, d_up] = [(); 2].map(|()| empty(like, like.shape(), like.dtype));
        if gate.rows == 0 || gate.width == 0 {
            return (d_gate, d_up);
        }
        let vector = vector(&[&gate, &up, &dy], gate.width);
        let vectors = gate.rows * gate.width / vector;
        let units = units(&like.client, vectors);
        // SAFETY: as forward, and the gradients have the same shape.
        unsafe {
            swiglu_backward::launch_unchecked(
                &like.client,
                cubes(&like.client, vectors.div_ceil(units)),
                CubeDim::new_1d(units as u32),
                gate.arg(),
                up.arg(),
                dy.arg(),
                d_gate.clone().into_buffer_arg(),
                d_up.clone().into_buffer_arg(),
                vectors as u32,
                (gate.width / vector) as u32,
                (gate.stride / vector) as u32,
                (up.stride / vector) as u32,
                (dy.stride / vector) as u32,
                units,
                vector,
                gate.elem(),
            );
        }
        (d_gate, d_up)
    }
}

impl SwigluExtension for CubeBackend {
    fn swiglu(gate: FloatTensor<Self>, up: FloatTensor<Self>) -> FloatTensor<Self> {
        Self::swiglu_forward(gate, up)
    }
}
