//! From global to shared memory.

use cubecl::prelude::*;

use super::tile::{Block, Tile};

/// Stages the first `rows` and `columns` of a block of a row-major matrix as `T`, zeros beyond if the tile is padded.
///
/// `first` is where the block begins and `stride` how far its rows are apart, both in vectors; `columns`, in entries, ends
/// with a vector.
#[cube]
pub(super) fn stage<V: Float, T: Float, N: Size>(
    from: &[Vector<V, N>],
    first: usize,
    stride: usize,
    rows: usize,
    columns: usize,
    to: &mut [T],
    #[comptime] block: Block,
    #[comptime] tile: Tile,
) {
    stage_either::<V, T, N>(from, from, true, first, stride, rows, columns, to, block, tile);
}

/// As [`stage`], from one of two matrices: the first if asked.
#[cube]
pub(super) fn stage_either<V: Float, T: Float, N: Size>(
    from: &[Vector<V, N>],
    or_from: &[Vector<V, N>],
    from_first: bool,
    first: usize,
    stride: usize,
    rows: usize,
    columns: usize,
    to: &mut [T],
    #[comptime] block: Block,
    #[comptime] tile: Tile,
) {
    let unit = UNIT_POS as usize;
    let in_row = comptime!(block.columns / tile.vector);
    let vectors = comptime!(block.rows * in_row);
    let each = comptime!(vectors.div_ceil(tile.units));
    if comptime!(tile.padded && each <= tile.held) {
        // All loads are under way before the first is waited for.
        let mut held = Array::<Vector<V, N>>::new(each);
        #[unroll]
        for i in 0..each {
            let at = unit + comptime!(i * tile.units);
            let (row, column) = (at / in_row, at % in_row);
            held[i] = Vector::new(V::new(0.0f32));
            if row < rows && column * tile.vector < columns {
                held[i] = either::<V, N>(from, or_from, from_first, first + row * stride + column);
            }
        }
        #[unroll]
        for i in 0..each {
            let at = unit + comptime!(i * tile.units);
            if at < vectors {
                let (row, column) = (at / in_row, at % in_row);
                put::<T, N>(to, row * block.stride + column * tile.vector, Vector::cast_from(held[i]), tile);
            }
        }
    } else {
        let vectors = if comptime!(tile.padded) { vectors.runtime() } else { rows.min(block.rows) * in_row };
        for at in range_stepped(unit, vectors, tile.units) {
            let (row, column) = (at / in_row, at % in_row);
            let mut vector = Vector::<T, N>::new(T::new(0.0f32));
            if row < rows && column * tile.vector < columns {
                vector = Vector::cast_from(either::<V, N>(from, or_from, from_first, first + row * stride + column));
            }
            put::<T, N>(to, row * block.stride + column * tile.vector, vector, tile);
        }
    }
}

#[cube]
fn either<V: Float, N: Size>(
    from: &[Vector<V, N>],
    or_from: &[Vector<V, N>],
    from_first: bool,
    at: usize,
) -> Vector<V, N> {
    if from_first { from[at] } else { or_from[at] }
}

#[cube]
fn put<T: Float, N: Size>(to: &mut [T], at: usize, vector: Vector<T, N>, #[comptime] tile: Tile) {
    if comptime!(tile.padded && tile.vector > 1) {
        let to = to.as_vectorized_mut().with_vector_size_mut::<N>();
        to[at / tile.vector] = Vector::cast_from(vector);
    } else {
        #[unroll]
        for i in 0..tile.vector {
            to[at + i] = vector.extract(i);
        }
    }
}
