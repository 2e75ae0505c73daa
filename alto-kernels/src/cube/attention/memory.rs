//! Tiles on their way into shared memory and out of it.

use cubecl::prelude::*;

use super::accumulator::Accumulator;
use super::tile::Tile;

/// Waits until all that work on the same rows of scores are here: with matrix units the plane, else the cube.
#[cube]
pub(super) fn sync_rows(#[comptime] tile: Tile) {
    if comptime!(tile.matrix) {
        sync_plane();
    } else {
        sync_cube();
    }
}

/// Copies one head of `tokens` tokens to a tile of `height`, with zeros around; its first entry is at `first`.
#[cube]
pub(super) fn stage<E: Float, N: Size>(
    source: &[E],
    first: usize,
    stride: usize,
    tokens: usize,
    target: &mut [E],
    #[comptime] height: usize,
    #[comptime] tile: Tile,
) {
    let vector = N::value();
    let entries = comptime!(height * tile.width / vector);
    let steps = comptime!(entries.div_ceil(tile.units));
    // The compiler unrolls what takes a known number of steps, so that all loads are on their way. With matrix units the
    // sums leave registers for two.
    if comptime!(entries.is_multiple_of(tile.units) && (steps <= 2 || !tile.matrix)) {
        for step in 0..steps {
            let entry = step * tile.units + UNIT_POS as usize;
            stage_entry::<E, N>(source, first, stride, tokens, target, entry, tile);
        }
    } else {
        for entry in range_stepped(UNIT_POS as usize, entries, tile.units) {
            stage_entry::<E, N>(source, first, stride, tokens, target, entry, tile);
        }
    }
}

#[cube]
fn stage_entry<E: Float, N: Size>(
    source: &[E],
    first: usize,
    stride: usize,
    tokens: usize,
    target: &mut [E],
    entry: usize,
    #[comptime] tile: Tile,
) {
    let vector = N::value();
    let source = source.as_vectorized().with_vector_size::<N>();
    let target = target.as_vectorized_mut().with_vector_size_mut::<N>();
    let across = comptime!(tile.width / vector);
    let (token, column) = (entry / across, entry % across);
    let mut entries = Vector::<E, N>::new(E::new(0.0));
    if token < tokens && column < comptime!(tile.dim / vector) {
        entries = source[(first + token * stride) / vector + column];
    }
    target[token * comptime!(tile.pitch() / vector) + column] = entries;
}

/// Writes `factor` times the sums of `tokens` tokens to one head of `target`, through a tile of scores.
#[cube]
pub(super) fn write<E: Float>(
    sums: &Accumulator,
    factor: f32,
    scratch: &mut [f32],
    target: &mut [E],
    first: usize,
    stride: usize,
    tokens: usize,
    #[comptime] tile: Tile,
) {
    // Whoever read the scratch last may not be through.
    sync_cube();
    if comptime!(tile.matrix) {
        #[unroll]
        for chunk in 0..comptime!(tile.chunks()) {
            sums.store_fragments(chunk, scratch);
            sync_cube();
            copy::<E>(scratch, chunk * tile.columns, factor, target, first, stride, tokens, tile);
            sync_cube();
        }
    } else {
        for chunk in 0..tile.chunks() {
            sums.store_shared(chunk, scratch);
            sync_cube();
            copy::<E>(scratch, chunk * tile.columns, factor, target, first, stride, tokens, tile);
            sync_cube();
        }
    }
}

/// Copies a tile of scores to the columns of a head that begin at `left`.
#[cube]
fn copy<E: Float>(
    scratch: &mut [f32],
    left: usize,
    factor: f32,
    target: &mut [E],
    first: usize,
    stride: usize,
    tokens: usize,
    #[comptime] tile: Tile,
) {
    for e in range_stepped(UNIT_POS as usize, comptime!(tile.rows * tile.columns), tile.units) {
        let (token, column) = (e / tile.columns, e % tile.columns);
        if token < tokens && left + column < tile.dim {
            let sum = scratch[token * comptime!(tile.score_pitch()) + column];
            target[first + token * stride + left + column] = E::cast_from(sum * factor);
        }
    }
}
