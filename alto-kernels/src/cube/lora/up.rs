//! The up projections of all lanes, added to the base product: `Y += scale S B`, and in backward `dX += dS A`.
//!
//! `y`: `[tokens, width]`, in place; `factor`: `[ranks, width]`; `parts`: what [`down`](super::down) gave; `sums`: the same
//! added up, for whoever needs it later. A cube takes tokens of one lane by a part of the width, over all its ranks; it
//! adds up and stages `S` once, unless there are more ranks than a tile is deep.

use cubecl::ir::ElemType;
use cubecl::prelude::*;

use super::work::{Work, total};
use crate::cube::accumulators::{Accumulators, rounded_up};
use crate::cube::stage::stage;
use crate::cube::tile::{ALIGNMENT, Tile};

#[cube(launch_unchecked, create_dummy_kernel)]
pub(in crate::cube) fn up<E: Float, T: Float, N: Size>(
    parts: &[f32],
    factor: &[Vector<f32, N>],
    table: &[u32],
    y: &mut [Vector<E, N>],
    sums: &mut [f32],
    width: u32,
    y_stride: u32,
    factor_stride: u32,
    entries: u32,
    bands: u32,
    band_width: u32,
    part_count: u32,
    packed: u32,
    scaled: u32,
    #[comptime] tile: Tile,
    #[define(E)] _elem: ElemType,
    #[define(T)] _staged: ElemType,
) {
    let bands = bands as usize;
    let (entry, band) = (CUBE_POS / bands, CUBE_POS % bands);
    if entry >= entries as usize {
        terminate!();
    }
    let work = Work::read(table, entry);
    let (y_stride, factor_stride) = (y_stride as usize / tile.vector, factor_stride as usize / tile.vector);
    let (left, right) = comptime!((tile.left_block(), tile.right_block()));
    let mut downs = Shared::<[T]>::new_aligned_slice(comptime!(left.len()), ALIGNMENT);
    let mut factors = Shared::<[T]>::new_aligned_slice(comptime!(right.len()), ALIGNMENT);
    let mut out = Shared::<[f32]>::new_aligned_slice(comptime!(tile.out_len()), ALIGNMENT);
    let mut scale = 1.0f32;
    if scaled != 0 {
        scale = work.scale;
    }

    let mut products = Accumulators::new(tile);
    let first = band * band_width as usize;
    let end = (first + band_width as usize).min(width as usize);
    for column in range_stepped(first, end, tile.n) {
        products.clear(tile);
        for rank in range_stepped(0, work.ranks, tile.k) {
            let ranks = (work.ranks - rank).min(tile.k);
            if column == first || work.ranks > tile.k {
                let keep = band == 0 && column == first;
                let span = if comptime!(tile.padded) { rounded_up(ranks) } else { ranks };
                for i in range_stepped(UNIT_POS as usize, span * left.rows, tile.units) {
                    let (r, c) = (i / span, i % span);
                    let mut sum = 0.0f32;
                    if r < work.rows && c < ranks {
                        let at = work.down + r * work.lane_ranks + rank + c;
                        sum = total(parts, at, part_count as usize, packed as usize);
                        if keep {
                            sums[at] = sum;
                        }
                    }
                    downs[r * left.stride + c] = T::cast_from(sum);
                }
            }
            let at = (work.first_rank + rank) * factor_stride + column / tile.vector;
            stage::<f32, T, N>(factor, at, factor_stride, ranks, end - column, &mut factors, right, tile);
            sync_cube();
            products.multiply::<T>(&downs, &factors, tile.n, ranks, tile);
            sync_cube();
        }
        #[unroll]
        for strip in 0..tile.strips {
            let row = comptime!(strip * tile.strip);
            products.spill(&mut out, strip, tile);
            sync_cube();
            let in_row = comptime!(tile.n / tile.vector);
            for i in range_stepped(UNIT_POS as usize, comptime!(tile.strip * in_row), tile.units) {
                let (r, c) = (i / in_row, i % in_row * tile.vector);
                if row + r < work.rows && column + c < end {
                    let mut vector = Vector::<f32, N>::new(0.0f32);
                    #[unroll]
                    for j in 0..tile.vector {
                        vector.insert(j, out[r * tile.out_stride() + c + j]);
                    }
                    let at = (work.first_row + row + r) * y_stride + (column + c) / tile.vector;
                    let base = Vector::<f32, N>::cast_from(y[at]);
                    y[at] = Vector::cast_from(base + vector * Vector::new(scale));
                }
            }
            sync_cube();
        }
    }
}
