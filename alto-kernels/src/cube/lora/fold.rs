//! What [`gradient`](super::gradient) left to do: sums in parts are added up, and ranks that had no tokens get zeros.
//!
//! `partials`: `[slots, d_in]`, then `[slots, d_out]`; `da`, `db`: `[ranks, d_in]` and `[ranks, d_out]`. A unit takes one
//! column of one rank, and adds its parts in order. Ranks whose sums are complete are left alone.

use cubecl::prelude::*;

use super::schedule::FOLD_WORDS;

#[cube(launch_unchecked, create_dummy_kernel)]
pub(in crate::cube) fn fold(
    partials: &[f32],
    table: &[u32],
    da: &mut [f32],
    db: &mut [f32],
    d_in: u32,
    d_out: u32,
    ranks: u32,
    entries: u32,
    slots: u32,
    #[comptime] units: usize,
) {
    let (d_in, d_out) = (d_in as usize, d_out as usize);
    let blocks = (d_in + d_out).div_ceil(units);
    let rank = CUBE_POS / blocks;
    let column = CUBE_POS % blocks * units + UNIT_POS as usize;
    if rank >= ranks as usize || column >= d_in + d_out {
        terminate!();
    }
    let mut parts = 0;
    let mut slot = 0;
    let mut apart = 0;
    if rank < entries as usize {
        parts = table[rank * FOLD_WORDS] as usize;
        slot = table[rank * FOLD_WORDS + 1] as usize;
        apart = table[rank * FOLD_WORDS + 2] as usize;
    }
    if parts == 1 {
        terminate!();
    }
    let of_a = column < d_in;
    let mut at = slot * d_in + column;
    let mut step = apart * d_in;
    if !of_a {
        at = slots as usize * d_in + slot * d_out + column - d_in;
        step = apart * d_out;
    }
    let mut sum = 0.0f32;
    for part in 0..parts {
        sum += partials[at + part * step];
    }
    if of_a {
        da[rank * d_in + column] = sum;
    } else {
        db[rank * d_out + column - d_in] = sum;
    }
}
