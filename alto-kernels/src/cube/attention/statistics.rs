//! What backward knows of each token and head: `[tokens, heads, 2]`, the logarithm of the sum of exponentials, and the
//! mean of the weights' slopes, which is `dy · y`.

use cubecl::ir::ElemType;
use cubecl::prelude::*;

/// Units that share a head.
pub(super) const SHARING: usize = 8;

/// A cube for each token; `tokens` of them, of which there may be a few too many.
#[cube(launch_unchecked, create_dummy_kernel)]
pub(in super::super) fn summarize<E: Float, N: Size>(
    output: &[E],
    gradient: &[E],
    log_sums: &[f32],
    statistics: &mut [f32],
    tokens: u32,
    heads: u32,
    output_stride: u32,
    gradient_stride: u32,
    #[comptime] dim: usize,
    #[comptime] units: usize,
    #[define(N)] _vector: usize,
    #[define(E)] _elem: ElemType,
) {
    let token = CUBE_POS_Y as usize * CUBE_COUNT_X as usize + CUBE_POS_X as usize;
    if token >= tokens as usize {
        terminate!();
    }
    let sharing = comptime!(SHARING.min(units));
    let at_once = comptime!(units / sharing);
    let vector = N::value();
    let heads = heads as usize;
    let unit = UNIT_POS as usize;
    let (own, part) = (unit / sharing, unit % sharing);
    let output = output.as_vectorized().with_vector_size::<N>();
    let gradient = gradient.as_vectorized().with_vector_size::<N>();
    let mut sums = Shared::<[f32]>::new_slice(units);
    // The same for all units, since they wait for each other.
    for pass in 0..heads.div_ceil(at_once) {
        let head = pass * at_once + own;
        let mut sum = 0.0f32;
        if head < heads {
            let (output_row, gradient_row) =
                (token * output_stride as usize + head * dim, token * gradient_stride as usize + head * dim);
            for e in range_stepped(part, comptime!(dim / vector), sharing) {
                let y = Vector::<f32, N>::cast_from(output[output_row / vector + e]);
                let dy = Vector::<f32, N>::cast_from(gradient[gradient_row / vector + e]);
                let products = y * dy;
                #[unroll]
                for i in 0..vector {
                    sum += products.extract(i);
                }
            }
        }
        sums[unit] = sum;
        sync_cube();
        if part == 0 && head < heads {
            let mut mean = 0.0f32;
            for i in 0..sharing {
                mean += sums[unit + i];
            }
            statistics[(token * heads + head) * 2] = log_sums[token * heads + head];
            statistics[(token * heads + head) * 2 + 1] = mean;
        }
        sync_cube();
    }
}

/// Copies the statistics of a head of `tokens` tokens from `first` on, zeros behind them.
#[cube]
pub(super) fn stage_statistics(
    statistics: &[f32],
    first: usize,
    head: usize,
    heads: usize,
    tokens: usize,
    log_sums: &mut [f32],
    means: &mut [f32],
    #[comptime] height: usize,
    #[comptime] units: usize,
) {
    for token in range_stepped(UNIT_POS as usize, height, units) {
        let mut log_sum = 0.0f32;
        let mut mean = 0.0f32;
        if token < tokens {
            let at = ((first + token) * heads + head) * 2;
            log_sum = statistics[at];
            mean = statistics[at + 1];
        }
        log_sums[token] = log_sum;
        means[token] = mean;
    }
}
