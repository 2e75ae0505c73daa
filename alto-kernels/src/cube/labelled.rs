//! Rows of labelled tokens: taken out of all tokens, put together from chunks, and scaled back to their tokens.
//!
//! Rows are `[tokens, width]` and `[labelled, width]`. `labelled`: `[labelled, 2]`: token, target. All go over vectors, as
//! long as the width and distances of rows allow; what kernels are told of widths and strides is in vectors.

use burn::tensor::Shape;
use burn_cubecl::kernel::into_contiguous;
use burn_cubecl::tensor::CubeTensor;
use cubecl::ir::ElemType;
use cubecl::prelude::*;

use super::hardware::{cubes, units};
use super::table::Table;
use super::tensor::{RowMajor, empty, vector};

/// A labelled token's words: the token, its target.
pub(super) const LABEL_WORDS: usize = 2;
/// The place among labelled tokens of one without a target.
const UNLABELLED: u32 = u32::MAX;

/// The table of labelled tokens.
pub(super) fn table(like: &CubeTensor, labelled: &[(usize, usize)]) -> Table {
    let words: Vec<u32> = labelled.iter().flat_map(|&(token, target)| [token as u32, target as u32]).collect();
    Table::new(like, &words, LABEL_WORDS)
}

/// The rows of `count` labelled tokens from the `first`.
pub(super) fn gathered(x: &RowMajor, labelled: &Table, first: usize, count: usize) -> CubeTensor {
    let rows = empty(x.tensor(), Shape::new([count, x.width]), x.tensor().dtype);
    if x.width == 0 {
        return rows;
    }
    let client = &x.tensor().client;
    let vector = vector(&[x], x.width);
    let vectors = count * x.width / vector;
    let units = units(client, vectors);
    // SAFETY: as many vectors as the rows have; labelled tokens are tokens of x.
    unsafe {
        gather::launch_unchecked(
            client,
            cubes(client, vectors.div_ceil(units)),
            CubeDim::new_1d(units as u32),
            x.arg(),
            labelled.arg(),
            rows.clone().into_buffer_arg(),
            vectors as u32,
            (x.width / vector) as u32,
            (x.stride / vector) as u32,
            first as u32,
            units,
            vector,
            x.elem(),
        );
    }
    rows
}

/// Copies rows to their place in `to`, from `first` on.
pub(super) fn placed(rows: CubeTensor, to: &CubeTensor, first: usize) {
    let rows = RowMajor::new(rows);
    if rows.width == 0 {
        return;
    }
    let client = &to.client;
    let vector = vector(&[&rows], rows.width);
    let vectors = rows.rows * rows.width / vector;
    let units = units(client, vectors);
    // SAFETY: as many vectors as the rows have, which `to` has a place for.
    unsafe {
        place::launch_unchecked(
            client,
            cubes(client, vectors.div_ceil(units)),
            CubeDim::new_1d(units as u32),
            rows.arg(),
            to.clone().into_buffer_arg(),
            vectors as u32,
            (rows.width / vector) as u32,
            (rows.stride / vector) as u32,
            first as u32,
            units,
            vector,
            rows.elem(),
        );
    }
}

/// Each labelled token's row times its `gradient`, `[labelled]`, and zeros elsewhere: `[tokens, width]`.
pub(super) fn scattered(
    unit: CubeTensor,
    gradient: CubeTensor,
    labelled: &[(usize, usize)],
    tokens: usize,
) -> CubeTensor {
    let (unit, gradient) = (RowMajor::new(unit), into_contiguous(gradient));
    let (width, like) = (unit.width, unit.tensor());
    let dx = empty(like, Shape::new([tokens, width]), like.dtype);
    if tokens == 0 || width == 0 {
        return dx;
    }
    let mut places = vec![UNLABELLED; tokens];
    for (place, &(token, _)) in labelled.iter().enumerate() {
        places[token] = place as u32;
    }
    let places = Table::new(like, &places, 1);
    let vector = vector(&[&unit], width);
    let vectors = tokens * width / vector;
    let units = units(&like.client, vectors);
    // SAFETY: as many vectors as dx has; a place for each token, which is one of unit and gradient if any.
    unsafe {
        scatter::launch_unchecked(
            &like.client,
            cubes(&like.client, vectors.div_ceil(units)),
            CubeDim::new_1d(units as u32),
            unit.arg(),
            gradient.into_buffer_arg(),
            places.arg(),
            dx.clone().into_buffer_arg(),
            vectors as u32,
            (width / vector) as u32,
            (unit.stride / vector) as u32,
            units,
            vector,
            unit.elem(),
        );
    }
    dx
}

/// `rows[r] = x[labelled[first + r].token]`; `vectors` is how many `rows` has.
#[cube(launch_unchecked, create_dummy_kernel)]
pub(super) fn gather<E: Float, N: Size>(
    x: &[Vector<E, N>],
    labelled: &[u32],
    rows: &mut [Vector<E, N>],
    vectors: u32,
    width: u32,
    stride: u32,
    first: u32,
    #[comptime] units: usize,
    #[define(N)] _vector: usize,
    #[define(E)] _elem: ElemType,
) {
    let width = width as usize;
    let begin = CUBE_POS_X as usize * units + UNIT_POS as usize;
    for i in range_stepped(begin, vectors as usize, CUBE_COUNT_X as usize * units) {
        let token = labelled[(first as usize + i / width) * LABEL_WORDS] as usize;
        rows[i] = x[token * stride as usize + i % width];
    }
}

/// `to[first + r] = from[r]`; `vectors` is how many `from` has.
#[cube(launch_unchecked, create_dummy_kernel)]
pub(super) fn place<E: Float, N: Size>(
    from: &[Vector<E, N>],
    to: &mut [Vector<E, N>],
    vectors: u32,
    width: u32,
    stride: u32,
    first: u32,
    #[comptime] units: usize,
    #[define(N)] _vector: usize,
    #[define(E)] _elem: ElemType,
) {
    let width = width as usize;
    let begin = CUBE_POS_X as usize * units + UNIT_POS as usize;
    for i in range_stepped(begin, vectors as usize, CUBE_COUNT_X as usize * units) {
        to[first as usize * width + i] = from[i / width * stride as usize + i % width];
    }
}

/// `dx[t] = gradient[n] unit[n]` with `n = places[t]`, or 0 without one; `vectors` is how many `dx` has.
#[cube(launch_unchecked, create_dummy_kernel)]
pub(super) fn scatter<E: Float, N: Size>(
    unit: &[Vector<E, N>],
    gradient: &[f32],
    places: &[u32],
    dx: &mut [Vector<E, N>],
    vectors: u32,
    width: u32,
    stride: u32,
    #[comptime] units: usize,
    #[define(N)] _vector: usize,
    #[define(E)] _elem: ElemType,
) {
    let width = width as usize;
    let begin = CUBE_POS_X as usize * units + UNIT_POS as usize;
    for i in range_stepped(begin, vectors as usize, CUBE_COUNT_X as usize * units) {
        let place = places[i / width];
        let mut entries = Vector::<f32, N>::new(0.0f32);
        if place != UNLABELLED {
            let unit = Vector::<f32, N>::cast_from(unit[place as usize * stride as usize + i % width]);
            entries = unit * Vector::new(gradient[place as usize]);
        }
        dx[i] = Vector::cast_from(entries);
    }
}
