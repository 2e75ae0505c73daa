//! Gradients of all lanes' factors: `dA = dSᵀ X` and `dB = scale Sᵀ dY`, in one launch.
//!
//! `x`: `[tokens, d_in]`; `dy`: `[tokens, d_out]`; `down`: packed `[rows, ranks]` of each lane; `d_down_parts`: the same of
//! `dS`, in parts to add up; `da`, `db`: `[ranks, d_in]` and `[ranks, d_out]`. A cube takes columns of either by ranks of one
//! lane, over its tokens or, where there are many, over some of them; such incomplete sums go to `partials`,
//! `[slots, d_in]` and then `[slots, d_out]`, for [`fold`](super::fold) to add up.

use cubecl::ir::ElemType;
use cubecl::prelude::*;

use super::schedule::COMPLETE;
use super::work::{Work, total};
use crate::cube::accumulators::Accumulators;
use crate::cube::stage::stage_either;
use crate::cube::tile::{ALIGNMENT, Tile};

#[cube(launch_unchecked, create_dummy_kernel)]
pub(in crate::cube) fn gradient<E: Float, T: Float, N: Size>(
    x: &[Vector<E, N>],
    dy: &[Vector<E, N>],
    down: &[f32],
    d_down_parts: &[f32],
    table: &[u32],
    da: &mut [f32],
    db: &mut [f32],
    partials: &mut [f32],
    d_in: u32,
    d_out: u32,
    x_stride: u32,
    dy_stride: u32,
    entries: u32,
    part_count: u32,
    packed: u32,
    slots: u32,
    #[comptime] tile: Tile,
    #[define(E)] _elem: ElemType,
    #[define(T)] _staged: ElemType,
) {
    let (d_in, d_out) = (d_in as usize, d_out as usize);
    let m = comptime!(tile.m());
    let (a_blocks, b_blocks) = (d_in.div_ceil(m), d_out.div_ceil(m));
    let blocks = a_blocks + b_blocks;
    let (entry, block) = (CUBE_POS / blocks, CUBE_POS % blocks);
    if entry >= entries as usize {
        terminate!();
    }
    let work = Work::read(table, entry);
    let (left, right) = comptime!((tile.left_block(), tile.right_block()));
    let mut values = Shared::<[T]>::new_aligned_slice(comptime!(left.len()), ALIGNMENT);
    let mut downs = Shared::<[T]>::new_aligned_slice(comptime!(right.len()), ALIGNMENT);
    let mut out = Shared::<[f32]>::new_aligned_slice(comptime!(tile.out_len()), ALIGNMENT);
    let mut sums = Accumulators::new(tile);

    let of_a = block < a_blocks;
    let mut column = block * m;
    let mut width = d_in;
    let mut stride = x_stride as usize / tile.vector;
    let mut scale = 1.0f32;
    let mut partial = work.slot as usize * d_in;
    if !of_a {
        column = (block - a_blocks) * m;
        width = d_out;
        stride = dy_stride as usize / tile.vector;
        scale = work.scale;
        partial = slots as usize * d_in + work.slot as usize * d_out;
    }
    let columns = width - column;
    for row in range_stepped(0, work.rows, tile.k) {
        let rows = work.rows - row;
        let at = (work.first_row + row) * stride + column / tile.vector;
        stage_either::<E, T, N>(x, dy, of_a, at, stride, rows, columns, &mut values, left, tile);
        for i in range_stepped(UNIT_POS as usize, comptime!(right.rows) * work.ranks, tile.units) {
            let (r, rank) = (i / work.ranks, i % work.ranks);
            let mut sum = 0.0f32;
            if r < rows {
                let at = work.down + (row + r) * work.lane_ranks + rank;
                if of_a {
                    sum = total(d_down_parts, at, part_count as usize, packed as usize);
                } else {
                    sum = down[at];
                }
            }
            downs[r * right.stride + rank] = T::cast_from(sum);
        }
        sync_cube();
        sums.multiply::<T>(&values, &downs, work.ranks, rows.min(tile.k), tile);
        sync_cube();
    }

    #[unroll]
    for strip in 0..tile.strips {
        sums.spill(&mut out, strip, tile);
        sync_cube();
        for i in range_stepped(UNIT_POS as usize, work.ranks * tile.strip, tile.units) {
            let (rank, c) = (i / tile.strip, i % tile.strip);
            let at = column + comptime!(strip * tile.strip) + c;
            if at < width {
                let sum = out[c * tile.out_stride() + rank] * scale;
                if work.slot != COMPLETE {
                    partials[partial + rank * width + at] = sum;
                } else if of_a {
                    da[(work.first_rank + rank) * width + at] = sum;
                } else {
                    db[(work.first_rank + rank) * width + at] = sum;
                }
            }
        }
        sync_cube();
    }
}
