//! Products of tiles in shared memory, summed in f32: by matrix units, or by each unit for itself.
//!
//! With matrix units a plane computes its own band of 16 rows and nobody else reads them before [`sync_rows`]; sums stay in
//! its registers. Without, a unit computes 4 x 4 entries at a time, and sums are in shared memory.
//!
//! [`sync_rows`]: super::memory::sync_rows

use cubecl::prelude::cmma::{Matrix, MatrixIdent, MatrixLayout};
use cubecl::prelude::*;

use super::tile::{FRAGMENT, PART, Tile};

/// `scores = a bᵀ`: `a` is `[rows, width]`, `b` is `[columns, width]`, both of heads; `scores` is `[rows, columns]`.
#[cube]
pub(super) fn score<E: Float>(a: &[E], b: &[E], scores: &mut [f32], #[comptime] tile: Tile) {
    if comptime!(tile.matrix) {
        score_by_planes::<E>(a, b, scores, tile);
    } else {
        score_by_units::<E>(a, b, scores, tile);
    }
}

#[cube]
fn score_by_planes<E: Float>(a: &[E], b: &[E], scores: &mut [f32], #[comptime] tile: Tile) {
    let (across, pitch) = comptime!((tile.columns / FRAGMENT, tile.pitch()));
    let band = first_of_band();
    let mut sums = Sequence::<Matrix<f32>>::new();
    #[unroll]
    for _ in 0..across {
        sums.push(zeros());
    }
    #[unroll]
    for step in 0..comptime!(tile.fragments()) {
        let at = band * pitch + step * FRAGMENT;
        let left = fragment::<E>(a, at, pitch, MatrixIdent::A, MatrixLayout::RowMajor);
        #[unroll]
        for i in 0..across {
            let at = i * comptime!(FRAGMENT * pitch) + step * FRAGMENT;
            let right = fragment::<E>(b, at, pitch, MatrixIdent::B, MatrixLayout::ColMajor);
            cmma::execute(&left, &right, &sums[i], &sums[i]);
        }
    }
    #[unroll]
    for i in 0..across {
        store(&sums[i], scores, band, i, tile);
    }
}

#[cube]
fn score_by_units<E: Float>(a: &[E], b: &[E], scores: &mut [f32], #[comptime] tile: Tile) {
    // A unit's entries lie apart, so that neighbours read neighbours.
    let (down, across) = comptime!((tile.rows / PART, tile.columns / PART));
    for part in range_stepped(UNIT_POS as usize, comptime!(down * across), tile.units) {
        let (row, column) = (part / across, part % across);
        let mut sums = Array::<f32>::new(comptime!(PART * PART));
        let mut left = Array::<f32>::new(PART);
        #[unroll]
        for e in 0..comptime!(PART * PART) {
            sums[e] = 0.0;
        }
        for k in 0..tile.width {
            #[unroll]
            for i in 0..PART {
                left[i] = f32::cast_from(a[(row + i * down) * comptime!(tile.pitch()) + k]);
            }
            #[unroll]
            for j in 0..PART {
                let right = f32::cast_from(b[(column + j * across) * comptime!(tile.pitch()) + k]);
                #[unroll]
                for i in 0..PART {
                    sums[i * PART + j] += left[i] * right;
                }
            }
        }
        #[unroll]
        for i in 0..PART {
            #[unroll]
            for j in 0..PART {
                let at = (row + i * down) * comptime!(tile.score_pitch()) + column + j * across;
                scores[at] = sums[i * PART + j];
            }
        }
    }
}

/// Sums of `rows` heads.
#[derive(CubeType)]
pub(super) struct Accumulator {
    /// The plane's band, with matrix units.
    fragments: Sequence<Matrix<f32>>,
    /// All rows, without.
    shared: Shared<[f32]>,
    #[cube(comptime)]
    tile: Tile,
}

#[cube]
impl Accumulator {
    /// Zeros; to be seen after a synchronisation of the cube.
    pub(super) fn new(#[comptime] tile: Tile) -> Self {
        let mut fragments = Sequence::<Matrix<f32>>::new();
        let mut shared = Shared::<[f32]>::new_slice(comptime!(if tile.matrix { 1 } else { tile.rows * tile.width }));
        if comptime!(tile.matrix) {
            #[unroll]
            for _ in 0..comptime!(tile.fragments()) {
                fragments.push(zeros());
            }
        } else {
            for e in range_stepped(UNIT_POS as usize, comptime!(tile.rows * tile.width), tile.units) {
                shared[e] = 0.0;
            }
        }
        Accumulator { fragments, shared, tile }
    }

    /// Adds `a b`: `a` is `[rows, columns]` of weights, `b` is `[columns, width]` of heads, both zero from column or head
    /// `end` on.
    pub(super) fn add<E: Float>(&mut self, a: &[E], b: &[E], end: usize) {
        let tile = comptime!(self.tile);
        if comptime!(tile.matrix) {
            self.add_by_planes::<E>(a, b);
        } else {
            self.add_by_units::<E>(a, b, end);
        }
    }

    fn add_by_planes<E: Float>(&mut self, a: &[E], b: &[E]) {
        let tile = comptime!(self.tile);
        let (pitch, weight_pitch) = comptime!((tile.pitch(), tile.weight_pitch()));
        #[unroll]
        for step in 0..comptime!(tile.columns / FRAGMENT) {
            let at = first_of_band() * weight_pitch + step * FRAGMENT;
            let left = fragment::<E>(a, at, weight_pitch, MatrixIdent::A, MatrixLayout::RowMajor);
            #[unroll]
            for i in 0..comptime!(tile.fragments()) {
                let at = step * comptime!(FRAGMENT * pitch) + i * FRAGMENT;
                let right = fragment::<E>(b, at, pitch, MatrixIdent::B, MatrixLayout::RowMajor);
                cmma::execute(&left, &right, &self.fragments[i], &self.fragments[i]);
            }
        }
    }

    fn add_by_units<E: Float>(&mut self, a: &[E], b: &[E], end: usize) {
        let tile = comptime!(self.tile);
        let (down, across) = comptime!((tile.rows / PART, tile.width / PART));
        for part in range_stepped(UNIT_POS as usize, comptime!(down * across), tile.units) {
            let (row, column) = (part / across, part % across);
            let mut sums = Array::<f32>::new(comptime!(PART * PART));
            let mut left = Array::<f32>::new(PART);
            #[unroll]
            for i in 0..PART {
                #[unroll]
                for j in 0..PART {
                    sums[i * PART + j] = self.shared[(row + i * down) * tile.width + column + j * across];
                }
            }
            for k in 0..end {
                #[unroll]
                for i in 0..PART {
                    left[i] = f32::cast_from(a[(row + i * down) * comptime!(tile.weight_pitch()) + k]);
                }
                #[unroll]
                for j in 0..PART {
                    let right = f32::cast_from(b[k * comptime!(tile.pitch()) + column + j * across]);
                    #[unroll]
                    for i in 0..PART {
                        sums[i * PART + j] += left[i] * right;
                    }
                }
            }
            #[unroll]
            for i in 0..PART {
                #[unroll]
                for j in 0..PART {
                    self.shared[(row + i * down) * tile.width + column + j * across] = sums[i * PART + j];
                }
            }
        }
    }

    /// Multiplies each row by its factor, through a tile of scores, which holds nothing afterwards.
    ///
    /// Factors are known to all that work on the same rows; so are the sums afterwards.
    pub(super) fn scale(&mut self, factors: &[f32], scratch: &mut [f32]) {
        let tile = comptime!(self.tile);
        if comptime!(tile.matrix) {
            self.scale_by_planes(factors, scratch);
        } else {
            for e in range_stepped(UNIT_POS as usize, comptime!(tile.rows * tile.width), tile.units) {
                self.shared[e] *= factors[e / tile.width];
            }
            sync_cube();
        }
    }

    fn scale_by_planes(&mut self, factors: &[f32], scratch: &mut [f32]) {
        let tile = comptime!(self.tile);
        let band = first_of_band();
        let mut changed = 0u32;
        #[unroll]
        for row in 0..FRAGMENT {
            changed += select(factors[band + row] == 1.0, 0u32, 1u32);
        }
        if changed > 0 {
            let pitch = comptime!(tile.score_pitch());
            // Half a row for each unit.
            let (row, half) = (band + UNIT_POS_PLANE as usize / 2, UNIT_POS_PLANE as usize % 2);
            #[unroll]
            for chunk in 0..comptime!(tile.chunks()) {
                sync_plane();
                self.store_fragments(chunk, scratch);
                sync_plane();
                for e in 0..comptime!(tile.columns / 2) {
                    let at = row * pitch + 2 * e + half;
                    scratch[at] *= factors[row];
                }
                sync_plane();
                self.load_fragments(chunk, scratch);
            }
            sync_plane();
        }
    }

    /// Copies the plane's band of as many columns as a tile of scores has; to be seen after a synchronisation.
    pub(super) fn store_fragments(&self, #[comptime] chunk: usize, scratch: &mut [f32]) {
        let tile = comptime!(self.tile);
        let wide = comptime!(tile.columns / FRAGMENT);
        #[unroll]
        for i in 0..wide {
            let fragment = comptime!(chunk * wide + i);
            if comptime!(fragment < tile.fragments()) {
                store(&self.fragments[fragment], scratch, first_of_band(), i, tile);
            }
        }
    }

    /// Takes back what [`store_fragments`](Self::store_fragments) copied.
    fn load_fragments(&mut self, #[comptime] chunk: usize, scratch: &mut [f32]) {
        let tile = comptime!(self.tile);
        let wide = comptime!(tile.columns / FRAGMENT);
        #[unroll]
        for i in 0..wide {
            let fragment = comptime!(chunk * wide + i);
            if comptime!(fragment < tile.fragments()) {
                let at = first_of_band() * comptime!(tile.score_pitch()) + i * FRAGMENT;
                let layout = MatrixLayout::RowMajor;
                let pitch = comptime!(tile.score_pitch() as u32);
                cmma::load_with_layout(&mut self.fragments[fragment], &scratch[at..scratch.len()], pitch, layout);
            }
        }
    }

    /// Copies as many columns as a tile of scores has; to be seen after a synchronisation.
    pub(super) fn store_shared(&self, chunk: usize, scratch: &mut [f32]) {
        let tile = comptime!(self.tile);
        for e in range_stepped(UNIT_POS as usize, comptime!(tile.rows * tile.columns), tile.units) {
            let (row, column) = (e / tile.columns, chunk * tile.columns + e % tile.columns);
            if column < tile.width {
                scratch[row * comptime!(tile.score_pitch()) + e % tile.columns] =
                    self.shared[row * tile.width + column];
            }
        }
    }
}

/// First row of the plane's own band.
#[cube]
fn first_of_band() -> usize {
    PLANE_POS as usize * FRAGMENT
}

#[cube]
fn zeros() -> Matrix<f32> {
    let (ident, layout) = (MatrixIdent::Accumulator, MatrixLayout::Undefined);
    Matrix::<f32>::from_value(ident, FRAGMENT, FRAGMENT, FRAGMENT, layout, 0.0)
}

/// The fragment of a tile in shared memory whose first entry is at `at`.
#[cube]
fn fragment<E: Float>(
    entries: &[E],
    at: usize,
    #[comptime] pitch: usize,
    #[comptime] ident: MatrixIdent,
    #[comptime] layout: MatrixLayout,
) -> Matrix<E> {
    let entries = &entries[at..entries.len()];
    Matrix::<E>::from_slice(ident, FRAGMENT, FRAGMENT, FRAGMENT, layout, entries, comptime!(pitch as u32))
}

/// Copies a fragment to a tile of scores, `across` fragments from its left.
#[cube]
fn store(fragment: &Matrix<f32>, scores: &mut [f32], row: usize, #[comptime] across: usize, #[comptime] tile: Tile) {
    let at = row * comptime!(tile.score_pitch()) + comptime!(across * FRAGMENT);
    let end = scores.len();
    cmma::store(&mut scores[at..end], fragment, comptime!(tile.score_pitch() as u32), MatrixLayout::RowMajor);
}
