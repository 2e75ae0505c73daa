//! The gradient of the queries, a cube for each block of them and head.
//!
//! `dq[t] = scale sum_s ds[t, s] k[s]` with the slopes `ds = p (dy · v - dy · y)`.

use cubecl::ir::ElemType;
use cubecl::prelude::*;

use super::accumulator::{Accumulator, score};
use super::blocks::{WORDS, own_block};
use super::memory::{stage, sync_rows, write};
use super::statistics::stage_statistics;
use super::tile::{Footprint, Tile};

/// Shared tiles of [`query_gradients`].
pub(in super::super) const FOOTPRINT: Footprint = Footprint { rows: 2, columns: 2, scores: 2, weights: 1, sums: 1 };

#[cube(launch_unchecked, create_dummy_kernel)]
pub(in super::super) fn query_gradients<E: Float, N: Size>(
    q: &[E],
    k: &[E],
    v: &[E],
    gradient: &[E],
    statistics: &[f32],
    blocks: &[u32],
    dq: &mut [E],
    entries: u32,
    heads: u32,
    group: u32,
    q_stride: u32,
    k_stride: u32,
    v_stride: u32,
    gradient_stride: u32,
    scale: f32,
    #[comptime] tile: Tile,
    #[define(N)] _vector: usize,
    #[define(E)] _elem: ElemType,
) {
    let block = own_block();
    if block >= entries as usize {
        terminate!();
    }
    let (heads, head) = (heads as usize, CUBE_POS_X as usize);
    let (q_stride, gradient_stride) = (q_stride as usize, gradient_stride as usize);
    let (k_stride, v_stride) = (k_stride as usize, v_stride as usize);
    let start = blocks[block * WORDS] as usize;
    let length = blocks[block * WORDS + 1] as usize;
    let at = blocks[block * WORDS + 2] as usize;
    let tokens = min(length - at, tile.rows);
    let column = head * tile.dim;
    let kv_column = head / group as usize * tile.dim;

    let pitch = comptime!(tile.pitch());
    let mut queries = Shared::<[E]>::new_aligned_slice(comptime!(tile.rows * pitch), 32usize);
    let mut gradients = Shared::<[E]>::new_aligned_slice(comptime!(tile.rows * pitch), 32usize);
    let mut keys = Shared::<[E]>::new_aligned_slice(comptime!(tile.columns * pitch), 32usize);
    let mut values = Shared::<[E]>::new_aligned_slice(comptime!(tile.columns * pitch), 32usize);
    let mut weights = Shared::<[E]>::new_aligned_slice(comptime!(tile.rows * tile.weight_pitch()), 32usize);
    let mut scores = Shared::<[f32]>::new_aligned_slice(comptime!(tile.rows * tile.score_pitch()), 32usize);
    let mut slopes = Shared::<[f32]>::new_aligned_slice(comptime!(tile.rows * tile.score_pitch()), 32usize);
    let mut log_sums = Shared::<[f32]>::new_slice(tile.rows);
    let mut means = Shared::<[f32]>::new_slice(tile.rows);
    let mut sums = Accumulator::new(tile);

    let token = start + at;
    stage::<E, N>(q, token * q_stride + column, q_stride, tokens, &mut queries, tile.rows, tile);
    let first_gradient = token * gradient_stride + column;
    stage::<E, N>(gradient, first_gradient, gradient_stride, tokens, &mut gradients, tile.rows, tile);
    stage_statistics(statistics, token, head, heads, tokens, &mut log_sums, &mut means, tile.rows, tile.units);
    // What the last query sees.
    let seen = at + tokens;
    for first in range_stepped(0, seen, tile.columns) {
        // Whoever read the last keys and values may not be through.
        sync_cube();
        let ahead = min(seen - first, tile.columns);
        stage::<E, N>(k, (start + first) * k_stride + kv_column, k_stride, ahead, &mut keys, tile.columns, tile);
        stage::<E, N>(v, (start + first) * v_stride + kv_column, v_stride, ahead, &mut values, tile.columns, tile);
        sync_cube();
        score::<E>(&queries, &keys, &mut scores, tile);
        score::<E>(&gradients, &values, &mut slopes, tile);
        sync_rows(tile);
        let sharing = comptime!(tile.sharing());
        let (unit, part) = (UNIT_POS as usize / sharing, UNIT_POS as usize % sharing);
        for row in range_stepped(unit, tile.rows, comptime!(tile.rows_at_once())) {
            let scored = row * comptime!(tile.score_pitch());
            let (log_sum, mean) = (log_sums[row], means[row]);
            // Keys up to the query itself.
            let visible = min(max(at + row + 1, first) - first, tile.columns);
            for column in range_stepped(part, tile.columns, sharing) {
                let mut slope = 0.0f32;
                if column < visible {
                    let weight = fma(scores[scored + column], scale, -log_sum).exp();
                    slope = weight * (slopes[scored + column] - mean);
                }
                // A lone key has weight 1 whatever its score: what rounding leaves is no slope. NaN stays.
                if at + row == 0 {
                    slope *= 0.0;
                }
                weights[row * comptime!(tile.weight_pitch()) + column] = E::cast_from(slope);
            }
        }
        sync_rows(tile);
        sums.add::<E>(&weights, &keys, ahead);
    }
    let width = heads * tile.dim;
    write::<E>(&sums, scale, &mut scores, dq, token * width + column, width, tokens, tile);
}
