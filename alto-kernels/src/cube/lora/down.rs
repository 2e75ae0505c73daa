//! The down projections of all lanes: `S = X Aᵀ`, and in backward `dS = scale dY Bᵀ`.
//!
//! `x`: `[tokens, width]`; `factor`: `[ranks, width]`; `parts`: of each part of the width, one after another, the packed
//! `[rows, ranks]` of every lane. A cube takes tokens by ranks of one lane over one part of the width.
//! Tried: a single pass over the width leaves most of a device idle unless a batch has very many tokens; parts are added up
//! by the kernels that read them, so that they cost no launch and the order of additions is fixed.

use cubecl::ir::ElemType;
use cubecl::prelude::*;

use super::work::Work;
use crate::cube::accumulators::Accumulators;
use crate::cube::stage::stage;
use crate::cube::tile::{ALIGNMENT, Tile};

#[cube(launch_unchecked, create_dummy_kernel)]
pub(in crate::cube) fn down<E: Float, T: Float, N: Size>(
    x: &[Vector<E, N>],
    factor: &[Vector<f32, N>],
    table: &[u32],
    parts: &mut [f32],
    width: u32,
    x_stride: u32,
    factor_stride: u32,
    entries: u32,
    part_count: u32,
    part_width: u32,
    packed: u32,
    scaled: u32,
    #[comptime] tile: Tile,
    #[define(E)] _elem: ElemType,
    #[define(T)] _staged: ElemType,
) {
    let part_count = part_count as usize;
    let (entry, part) = (CUBE_POS / part_count, CUBE_POS % part_count);
    if entry >= entries as usize {
        terminate!();
    }
    let work = Work::read(table, entry);
    let (x_stride, factor_stride) = (x_stride as usize / tile.vector, factor_stride as usize / tile.vector);
    let (x_row, factor_row) = (work.first_row * x_stride, work.first_rank * factor_stride);
    let (left, right) = comptime!((tile.left_block(), tile.right_block()));
    let mut xs = Shared::<[T]>::new_aligned_slice(comptime!(left.len()), ALIGNMENT);
    let mut factors = Shared::<[T]>::new_aligned_slice(comptime!(right.len()), ALIGNMENT);
    let mut out = Shared::<[f32]>::new_aligned_slice(comptime!(tile.out_len()), ALIGNMENT);
    let mut sums = Accumulators::new(tile);

    let first = part * part_width as usize;
    let end = (first + part_width as usize).min(width as usize);
    for column in range_stepped(first, end, tile.k) {
        let at = column / tile.vector;
        let columns = (end - column).min(tile.k);
        stage::<E, T, N>(x, x_row + at, x_stride, work.rows, columns, &mut xs, left, tile);
        stage::<f32, T, N>(factor, factor_row + at, factor_stride, work.ranks, columns, &mut factors, right, tile);
        sync_cube();
        // A constant saves registers, and few blocks aren't full.
        let depth = if comptime!(tile.padded) { tile.k.runtime() } else { columns };
        sums.multiply::<T>(&xs, &factors, work.ranks, depth, tile);
        sync_cube();
    }

    let mut scale = 1.0f32;
    if scaled != 0 {
        scale = work.scale;
    }
    #[unroll]
    for strip in 0..tile.strips {
        let row = comptime!(strip * tile.strip);
        sums.spill(&mut out, strip, tile);
        sync_cube();
        if row < work.rows {
            let rows = (work.rows - row).min(tile.strip);
            let to = part * packed as usize + work.down + row * work.lane_ranks;
            for i in range_stepped(UNIT_POS as usize, rows * work.ranks, tile.units) {
                let (r, c) = (i / work.ranks, i % work.ranks);
                parts[to + r * work.lane_ranks + c] = out[r * tile.out_stride() + c] * scale;
            }
        }
        sync_cube();
    }
}
