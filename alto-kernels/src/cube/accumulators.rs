//! Products of small matrices in shared memory, by a cube: what the kernels that multiply are made of.
//!
//! `C += L R` with `C` of `[m, n]` in registers and `L`, `R` staged in shared memory, `[m, k]` and `[k, n]` or either of
//! them transposed. The plain variant gives each unit micro tiles; the one for matrix units gives each plane rows of
//! 16 x 16 fragments. Staging, and the way out of the registers through a strip in shared memory, are the same.

use cubecl::cmma;
use cubecl::prelude::*;

use super::tile::{FRAGMENT, MICRO, PLANE, Tile};

/// To whole fragments.
#[cube]
pub(super) fn rounded_up(length: usize) -> usize {
    length.div_ceil(FRAGMENT) * FRAGMENT
}

/// `C`, spread over the registers of a cube.
#[derive(CubeType)]
pub(super) struct Accumulators {
    /// Of the plain variant.
    registers: Array<f32>,
    /// Of the variant with matrix units.
    fragments: Sequence<cmma::Matrix<f32>>,
}

#[cube]
impl Accumulators {
    /// Zeros.
    pub(super) fn new(#[comptime] tile: Tile) -> Accumulators {
        let mut fragments = Sequence::<cmma::Matrix<f32>>::new();
        #[unroll]
        for _ in 0..comptime!(tile.fragments()) {
            fragments.push(cmma::Matrix::<f32>::from_value(
                cmma::MatrixIdent::Accumulator,
                FRAGMENT,
                FRAGMENT,
                FRAGMENT,
                cmma::MatrixLayout::Undefined,
                0.0f32,
            ));
        }
        let mut accumulators = Accumulators { registers: Array::<f32>::new(comptime!(tile.registers())), fragments };
        accumulators.clear(tile);
        accumulators
    }

    /// Zeros again.
    pub(super) fn clear(&mut self, #[comptime] tile: Tile) {
        if comptime!(tile.matrix) {
            #[unroll]
            for i in 0..comptime!(tile.fragments()) {
                cmma::fill(self.fragments.index_mut(i), 0.0f32);
            }
        } else {
            #[unroll(tile.micro_tiles_per_unit() == 1)]
            for i in 0..comptime!(tile.registers()) {
                self.registers[i] = 0.0f32;
            }
        }
    }

    /// Adds the product of two staged blocks: `n` columns over a depth of `k`. Of padded operands these are rounded up to
    /// a fragment, others have whatever there is beyond, so that columns of `C` from `n` on mean nothing, nor do rows of
    /// which nothing was staged.
    pub(super) fn multiply<T: Float>(&mut self, left: &[T], right: &[T], n: usize, k: usize, #[comptime] tile: Tile) {
        if comptime!(tile.matrix) {
            self.multiply_fragments::<T>(left, right, n, k, tile);
        } else {
            self.multiply_micro::<T>(left, right, n, k, tile);
        }
    }

    fn multiply_micro<T: Float>(&mut self, left: &[T], right: &[T], n: usize, k: usize, #[comptime] tile: Tile) {
        let (row_step, left_step) = comptime!(tile.left_steps());
        let (column_step, right_step) = comptime!(tile.right_steps());
        let (n, k) = if comptime!(tile.padded) { (rounded_up(n), rounded_up(k)) } else { (n, k) };
        let groups = comptime!(tile.n / MICRO);
        let per_unit = comptime!(tile.micro_tiles_per_unit());
        let mut held = Array::<f32>::new(MICRO);
        #[unroll(tile.strips * per_unit == 1)]
        for p in 0..comptime!(tile.strips * per_unit) {
            let micro = UNIT_POS as usize + p % per_unit * tile.units;
            let row = p / per_unit * tile.strip + micro / groups * MICRO;
            let column = micro % groups;
            if micro < comptime!(tile.micro_tiles()) {
                for kk in 0..k {
                    #[unroll]
                    for i in 0..MICRO {
                        held[i] = f32::cast_from(left[(row + i) * row_step + kk * left_step]);
                    }
                    // A unit's columns lie apart, so that with few of them in use all units have some.
                    #[unroll]
                    for j in 0..MICRO {
                        if j * groups < n {
                            let at = column + j * groups;
                            let right = f32::cast_from(right[at * column_step + kk * right_step]);
                            #[unroll]
                            for i in 0..MICRO {
                                self.registers[(p * MICRO + i) * MICRO + j] += held[i] * right;
                            }
                        }
                    }
                }
            }
        }
    }

    fn multiply_fragments<T: Float>(&mut self, left: &[T], right: &[T], n: usize, k: usize, #[comptime] tile: Tile) {
        let (row_step, left_step) = comptime!(tile.left_steps());
        let (column_step, right_step) = comptime!(tile.right_steps());
        let left_layout = comptime!(layout(left_step));
        let right_layout = comptime!(layout(column_step));
        let plane = UNIT_POS as usize / PLANE;
        #[unroll]
        for step in 0..comptime!(tile.k / FRAGMENT) {
            let kk = comptime!(step * FRAGMENT);
            if kk < k {
                let mut lefts = Sequence::<cmma::Matrix<T>>::new();
                #[unroll]
                for strip in 0..tile.strips {
                    let row = strip * tile.strip + plane * FRAGMENT;
                    let at = row * row_step + kk * left_step;
                    lefts.push(cmma::Matrix::<T>::from_slice(
                        cmma::MatrixIdent::A,
                        FRAGMENT,
                        FRAGMENT,
                        FRAGMENT,
                        left_layout,
                        &left[at..left.len()],
                        comptime!(row_step.max(left_step) as u32),
                    ));
                }
                #[unroll]
                for f in 0..comptime!(tile.n / FRAGMENT) {
                    let column = comptime!(f * FRAGMENT);
                    if column < n {
                        let at = comptime!(column * column_step + kk * right_step);
                        let right = cmma::Matrix::<T>::from_slice(
                            cmma::MatrixIdent::B,
                            FRAGMENT,
                            FRAGMENT,
                            FRAGMENT,
                            right_layout,
                            &right[at..right.len()],
                            comptime!(column_step.max(right_step) as u32),
                        );
                        #[unroll]
                        for strip in 0..tile.strips {
                            let sum = self.fragments.index(comptime!(strip * (tile.n / FRAGMENT) + f));
                            cmma::execute(lefts.index(strip), &right, sum, sum);
                        }
                    }
                }
            }
        }
    }

    /// Writes a strip of `C` to shared memory, `[strip, n]` with [`Tile::out_stride`], the first `n` columns at least.
    pub(super) fn spill(&self, to: &mut [f32], #[comptime] strip: usize, #[comptime] tile: Tile) {
        let stride = comptime!(tile.out_stride());
        if comptime!(tile.matrix) {
            let row = UNIT_POS as usize / PLANE * FRAGMENT;
            #[unroll]
            for f in 0..comptime!(tile.n / FRAGMENT) {
                let at = row * stride + comptime!(f * FRAGMENT);
                let end = to.len();
                cmma::store(
                    &mut to[at..end],
                    self.fragments.index(comptime!(strip * (tile.n / FRAGMENT) + f)),
                    comptime!(stride as u32),
                    cmma::MatrixLayout::RowMajor,
                );
            }
        } else {
            let groups = comptime!(tile.n / MICRO);
            let per_unit = comptime!(tile.micro_tiles_per_unit());
            #[unroll(per_unit == 1)]
            for p in 0..per_unit {
                let micro = UNIT_POS as usize + p * tile.units;
                let row = micro / groups * MICRO;
                let column = micro % groups;
                if micro < comptime!(tile.micro_tiles()) {
                    #[unroll]
                    for i in 0..MICRO {
                        #[unroll]
                        for j in 0..MICRO {
                            to[(row + i) * stride + column + j * groups] =
                                self.registers[((strip * per_unit + p) * MICRO + i) * MICRO + j];
                        }
                    }
                }
            }
        }
    }
}

/// The layout of a fragment whose neighbours along a row are so far apart.
fn layout(step: usize) -> cmma::MatrixLayout {
    if step == 1 { cmma::MatrixLayout::RowMajor } else { cmma::MatrixLayout::ColMajor }
}
