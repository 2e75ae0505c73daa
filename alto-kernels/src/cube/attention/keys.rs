//! The gradients of keys and values, a cube for each block of them and key-value head.
//!
//! `dv[s] = sum_t p[t, s] dy[t]` and `dk[s] = scale sum_t ds[t, s] q[t]` with the slopes `ds = p (dy · v - dy · y)`, over the
//! queries of all heads of the group that see `s`: in one cube, one after another, so that nothing is added by two.
//! Scores and slopes are transposed, with keys as rows.

use cubecl::ir::ElemType;
use cubecl::prelude::*;

use super::accumulator::{Accumulator, score};
use super::blocks::{WORDS, own_block};
use super::memory::{stage, sync_rows, write};
use super::statistics::stage_statistics;
use super::tile::{Footprint, Tile};

/// Shared tiles of [`key_gradients`].
pub(in super::super) const FOOTPRINT: Footprint = Footprint { rows: 2, columns: 2, scores: 2, weights: 2, sums: 2 };

#[cube(launch_unchecked, create_dummy_kernel)]
pub(in super::super) fn key_gradients<E: Float, N: Size>(
    q: &[E],
    k: &[E],
    v: &[E],
    gradient: &[E],
    statistics: &[f32],
    blocks: &[u32],
    dk: &mut [E],
    dv: &mut [E],
    entries: u32,
    kv_heads: u32,
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
    let (kv_heads, group, kv_head) = (kv_heads as usize, group as usize, CUBE_POS_X as usize);
    let (q_stride, gradient_stride) = (q_stride as usize, gradient_stride as usize);
    let (k_stride, v_stride) = (k_stride as usize, v_stride as usize);
    let start = blocks[block * WORDS] as usize;
    let length = blocks[block * WORDS + 1] as usize;
    let at = blocks[block * WORDS + 2] as usize;
    let tokens = min(length - at, tile.rows);
    let kv_column = kv_head * tile.dim;

    let pitch = comptime!(tile.pitch());
    let mut keys = Shared::<[E]>::new_aligned_slice(comptime!(tile.rows * pitch), 32usize);
    let mut values = Shared::<[E]>::new_aligned_slice(comptime!(tile.rows * pitch), 32usize);
    let mut queries = Shared::<[E]>::new_aligned_slice(comptime!(tile.columns * pitch), 32usize);
    let mut gradients = Shared::<[E]>::new_aligned_slice(comptime!(tile.columns * pitch), 32usize);
    let mut weights = Shared::<[E]>::new_aligned_slice(comptime!(tile.rows * tile.weight_pitch()), 32usize);
    let mut weight_slopes = Shared::<[E]>::new_aligned_slice(comptime!(tile.rows * tile.weight_pitch()), 32usize);
    let mut scores = Shared::<[f32]>::new_aligned_slice(comptime!(tile.rows * tile.score_pitch()), 32usize);
    let mut slopes = Shared::<[f32]>::new_aligned_slice(comptime!(tile.rows * tile.score_pitch()), 32usize);
    let mut log_sums = Shared::<[f32]>::new_slice(tile.columns);
    let mut means = Shared::<[f32]>::new_slice(tile.columns);
    let mut key_sums = Accumulator::new(tile);
    let mut value_sums = Accumulator::new(tile);

    let token = start + at;
    stage::<E, N>(k, token * k_stride + kv_column, k_stride, tokens, &mut keys, tile.rows, tile);
    stage::<E, N>(v, token * v_stride + kv_column, v_stride, tokens, &mut values, tile.rows, tile);
    for member in 0..group {
        let head = kv_head * group + member;
        let column = head * tile.dim;
        // Queries from the first key on.
        for first in range_stepped(at, length, tile.columns) {
            // Whoever read the last queries may not be through.
            sync_cube();
            let query = start + first;
            let ahead = min(length - first, tile.columns);
            stage::<E, N>(q, query * q_stride + column, q_stride, ahead, &mut queries, tile.columns, tile);
            let first_gradient = query * gradient_stride + column;
            stage::<E, N>(gradient, first_gradient, gradient_stride, ahead, &mut gradients, tile.columns, tile);
            let heads = kv_heads * group;
            stage_statistics(
                statistics,
                query,
                head,
                heads,
                ahead,
                &mut log_sums,
                &mut means,
                tile.columns,
                tile.units,
            );
            sync_cube();
            score::<E>(&keys, &queries, &mut scores, tile);
            score::<E>(&values, &gradients, &mut slopes, tile);
            sync_rows(tile);
            let sharing = comptime!(tile.sharing());
            let (unit, part) = (UNIT_POS as usize / sharing, UNIT_POS as usize % sharing);
            for row in range_stepped(unit, tile.rows, comptime!(tile.rows_at_once())) {
                let scored = row * comptime!(tile.score_pitch());
                for column in range_stepped(part, tile.columns, sharing) {
                    let mut weight = 0.0f32;
                    let mut slope = 0.0f32;
                    // Only from the key itself on do queries see it.
                    if column < ahead && first + column >= at + row {
                        weight = fma(scores[scored + column], scale, -log_sums[column]).exp();
                        slope = weight * (slopes[scored + column] - means[column]);
                    }
                    // A lone key has weight 1 whatever its score: what rounding leaves is no slope. NaN stays.
                    if first + column == 0 {
                        slope *= 0.0;
                    }
                    let own = row * comptime!(tile.weight_pitch()) + column;
                    weights[own] = E::cast_from(weight);
                    weight_slopes[own] = E::cast_from(slope);
                }
            }
            sync_rows(tile);
            value_sums.add::<E>(&weights, &gradients, ahead);
            key_sums.add::<E>(&weight_slopes, &queries, ahead);
        }
    }
    let width = kv_heads * tile.dim;
    write::<E>(&key_sums, scale, &mut scores, dk, token * width + kv_column, width, tokens, tile);
    write::<E>(&value_sums, 1.0, &mut scores, dv, token * width + kv_column, width, tokens, tile);
}
