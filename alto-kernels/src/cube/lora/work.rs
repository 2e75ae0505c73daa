//! A cube's part of a lane, read from a table.

use cubecl::prelude::*;

use super::schedule::WORDS;

/// What a cube works on.
#[derive(CubeType)]
pub(super) struct Work {
    /// Row of the packed factors that the first rank is.
    pub(super) first_rank: usize,
    /// Ranks of this work.
    pub(super) ranks: usize,
    /// Ranks of the lane: how far rows of its down projections are apart.
    pub(super) lane_ranks: usize,
    /// The first token in the batch.
    pub(super) first_row: usize,
    /// Tokens of this work.
    pub(super) rows: usize,
    /// Where the down projection of the first token and rank lies among the packed ones.
    pub(super) down: usize,
    /// The adapter's scale.
    pub(super) scale: f32,
    /// Where an incomplete sum goes, counted in ranks.
    pub(super) slot: u32,
}

#[cube]
impl Work {
    pub(super) fn read(table: &[u32], entry: usize) -> Work {
        let at = entry * WORDS;
        Work {
            first_rank: table[at] as usize,
            ranks: table[at + 1] as usize,
            lane_ranks: table[at + 2] as usize,
            first_row: table[at + 3] as usize,
            rows: table[at + 4] as usize,
            down: table[at + 5] as usize,
            scale: f32::reinterpret(table[at + 6]),
            slot: table[at + 7],
        }
    }
}

/// An entry of the packed down projections, which may come as several parts to add up.
#[cube]
pub(super) fn total(parts: &[f32], at: usize, count: usize, packed: usize) -> f32 {
    let mut total = parts[at];
    for part in 1..count {
        total += parts[part * packed + at];
    }
    total
}
