//! The output, a cube for each block of queries and head.
//!
//! Goes over the keys a block at a time, with sums of exponentials relative to a reference that is near the largest score so
//! far (online softmax: Milakov & Gimelshein, 2018). The reference stays until a score exceeds it by [`SLACK`]: sums that
//! matrix units hold cost dearly to scale, and with this a row scales its sums once or never after its first block.

use cubecl::ir::ElemType;
use cubecl::prelude::*;

use super::accumulator::{Accumulator, score};
use super::blocks::{WORDS, own_block};
use super::memory::{stage, sync_rows, write};
use super::tile::{Footprint, Tile};

/// Shared tiles of [`attend`].
pub(in super::super) const FOOTPRINT: Footprint = Footprint { rows: 1, columns: 2, scores: 1, weights: 1, sums: 1 };

/// How far scores may be over the reference: exponentials of up to 400, far from the largest f16.
const SLACK: f32 = 6.0;

#[cube(launch_unchecked, create_dummy_kernel)]
pub(in super::super) fn attend<E: Float, N: Size>(
    q: &[E],
    k: &[E],
    v: &[E],
    blocks: &[u32],
    output: &mut [E],
    log_sums: &mut [f32],
    entries: u32,
    heads: u32,
    group: u32,
    q_stride: u32,
    k_stride: u32,
    v_stride: u32,
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
    let (q_stride, k_stride, v_stride) = (q_stride as usize, k_stride as usize, v_stride as usize);
    let start = blocks[block * WORDS] as usize;
    let length = blocks[block * WORDS + 1] as usize;
    let at = blocks[block * WORDS + 2] as usize;
    let tokens = min(length - at, tile.rows);
    let column = head * tile.dim;
    let kv_column = head / group as usize * tile.dim;

    let pitch = comptime!(tile.pitch());
    let mut queries = Shared::<[E]>::new_aligned_slice(comptime!(tile.rows * pitch), 32usize);
    let mut keys = Shared::<[E]>::new_aligned_slice(comptime!(tile.columns * pitch), 32usize);
    let mut values = Shared::<[E]>::new_aligned_slice(comptime!(tile.columns * pitch), 32usize);
    let mut weights = Shared::<[E]>::new_aligned_slice(comptime!(tile.rows * tile.weight_pitch()), 32usize);
    let mut scores = Shared::<[f32]>::new_aligned_slice(comptime!(tile.rows * tile.score_pitch()), 32usize);
    let mut factors = Shared::<[f32]>::new_slice(tile.rows);
    // Of each row's units, for themselves.
    let mut references = Shared::<[f32]>::new_slice(comptime!(tile.rows * tile.sharing()));
    let mut sums = Shared::<[f32]>::new_slice(comptime!(tile.rows * tile.sharing()));
    let mut outputs = Accumulator::new(tile);

    stage::<E, N>(q, (start + at) * q_stride + column, q_stride, tokens, &mut queries, tile.rows, tile);
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
        sync_rows(tile);
        weigh::<E>(&scores, &mut weights, &mut references, &mut sums, &mut factors, at, first, scale, tile);
        sync_rows(tile);
        if first > 0 {
            outputs.scale(&factors, &mut scores);
        }
        outputs.add::<E>(&weights, &values, ahead);
    }

    sync_cube();
    let unit = UNIT_POS as usize;
    for row in range_stepped(unit, tile.rows, tile.units) {
        let mut sum = 0.0f32;
        for i in 0..comptime!(tile.sharing()) {
            sum += sums[row * comptime!(tile.sharing()) + i];
        }
        factors[row] = 1.0 / sum;
        if row < tokens {
            let reference = references[row * comptime!(tile.sharing())];
            log_sums[(start + at + row) * heads + head] = reference + sum.ln();
        }
    }
    sync_cube();
    outputs.scale(&factors, &mut scores);
    let width = heads * tile.dim;
    write::<E>(&outputs, 1.0, &mut scores, output, (start + at) * width + column, width, tokens, tile);
}

/// From scores of queries from `at` on for keys from `first` on to their exponentials, and to the factors by which the sums
/// of earlier keys change.
#[cube]
fn weigh<E: Float>(
    scores: &[f32],
    weights: &mut [E],
    references: &mut [f32],
    sums: &mut [f32],
    factors: &mut [f32],
    at: usize,
    first: usize,
    scale: f32,
    #[comptime] tile: Tile,
) {
    let sharing = comptime!(tile.sharing());
    let (unit, part) = (UNIT_POS as usize / sharing, UNIT_POS as usize % sharing);
    for row in range_stepped(unit, tile.rows, comptime!(tile.rows_at_once())) {
        let (own, scored) = (row * sharing + part, row * comptime!(tile.score_pitch()));
        // Keys up to the query itself.
        let visible = min(max(at + row + 1, first) - first, tile.columns);
        let mut reference = scores[scored] * scale;
        let mut sum = 0.0f32;
        let mut factor = 1.0f32;
        let mut top = reference;
        if first > 0 {
            top = references[own];
        }
        for column in 0..visible {
            top = max(top, scores[scored + column] * scale);
        }
        if first > 0 {
            reference = references[own];
            sum = sums[own];
            if top > reference + SLACK {
                factor = (reference - top).exp();
                reference = top;
            }
        } else {
            reference = top;
        }
        sum *= factor;
        for column in range_stepped(part, tile.columns, sharing) {
            let mut weight = 0.0f32;
            if column < visible {
                weight = fma(scores[scored + column], scale, -reference).exp();
            }
            weights[row * comptime!(tile.weight_pitch()) + column] = E::cast_from(weight);
            sum += weight;
        }
        references[own] = reference;
        sums[own] = sum;
        if part == 0 {
            factors[row] = factor;
        }
    }
}
