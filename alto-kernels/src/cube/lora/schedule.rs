//! Which cube of a launch does what: tables of a batch's lanes, and how often long dimensions are split.

use burn_cubecl::tensor::CubeTensor;
use cubecl::prelude::*;

use crate::cube::hardware::parallel_cubes;
use crate::cube::table::Table;
use crate::cube::tile::Tile;
use crate::lanes::{LoraLane, LoraLanes};

/// Words of a [`Work`] in a table.
pub(super) const WORDS: usize = 8;
/// The slot of a sum that is complete.
pub(super) const COMPLETE: u32 = u32::MAX;
/// Words of a rank in [`folds`].
pub(super) const FOLD_WORDS: usize = 3;

/// Cubes that a processor has at hand, so that some load while others multiply.
const CUBES_PER_PROCESSOR: usize = 4;
/// Blocks of the long dimension that a cube of a split product goes over at least.
const LEAST_BLOCKS: usize = 4;
/// Parts of a split down projection at most; whoever needs it adds them up.
const MOST_SPLITS: usize = 16;
/// Tokens over which a cube sums a factor's gradient at least.
const LEAST_TOKENS: usize = 64;

/// Lanes that have something to do.
pub(super) fn busy(lanes: &LoraLanes) -> impl Iterator<Item = &LoraLane> {
    lanes.iter().filter(|lane| !lane.rows.is_empty() && !lane.ranks.is_empty())
}

/// Entries of the down projections of all lanes, `[rows, ranks]` of each, one lane after another.
pub(super) fn packed(lanes: &LoraLanes) -> usize {
    busy(lanes).map(|lane| lane.rows.len() * lane.ranks.len()).sum()
}

/// Part of a lane for one cube, or for some that share it; it lies in a table as it is read below.
struct Work<'l> {
    lane: &'l LoraLane,
    /// Where the lane's down projections begin.
    packed: usize,
    /// The first rank and how many.
    rank: usize,
    ranks: usize,
    /// The first token and how many, counted from the lane's first.
    row: usize,
    rows: usize,
    /// Where an incomplete sum goes.
    slot: u32,
}

impl Work<'_> {
    fn words(&self) -> [u32; WORDS] {
        let Self { lane, packed, rank, ranks, row, rows, slot } = self;
        let down = packed + row * lane.ranks.len() + rank;
        let words = [lane.ranks.start + rank, *ranks, lane.ranks.len(), lane.rows.start + row, *rows, down];
        let [first_rank, ranks, lane_ranks, first_row, rows, down] = words.map(word);
        [first_rank, ranks, lane_ranks, first_row, rows, down, lane.scale.to_bits(), slot.to_owned()]
    }
}

/// A number of a table.
///
/// # Panics
/// If it is over 32 bits.
fn word(number: usize) -> u32 {
    u32::try_from(number).unwrap_or_else(|_| panic!("kernels count to 2^32, a batch needs {number}: make it smaller"))
}

/// The lanes in blocks of so many tokens and so many ranks.
fn blocks(lanes: &LoraLanes, tokens: usize, ranks: usize) -> Vec<u32> {
    let (mut words, mut packed) = (Vec::new(), 0);
    for lane in busy(lanes) {
        for row in (0..lane.rows.len()).step_by(tokens) {
            for rank in (0..lane.ranks.len()).step_by(ranks) {
                let work = Work {
                    lane,
                    packed,
                    rank,
                    ranks: ranks.min(lane.ranks.len() - rank),
                    row,
                    rows: tokens.min(lane.rows.len() - row),
                    slot: COMPLETE,
                };
                words.extend(work.words());
            }
        }
        packed += lane.rows.len() * lane.ranks.len();
    }
    words
}

/// Work of a launch whose tiles are tokens by ranks.
pub(super) fn token_rank_blocks(lanes: &LoraLanes, like: &CubeTensor, tile: Tile) -> Table {
    let key = tile.m() << 16 | tile.n;
    lanes.tables().get(like, "lora: tokens and ranks", key, || blocks(lanes, tile.m(), tile.n), WORDS)
}

/// Work of a launch whose tiles are tokens by columns, over all ranks of a lane.
pub(super) fn token_blocks(lanes: &LoraLanes, like: &CubeTensor, tile: Tile) -> Table {
    lanes.tables().get(like, "lora: tokens", tile.m(), || blocks(lanes, tile.m(), usize::MAX), WORDS)
}

/// A dimension in parts of equal length but the last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Parts {
    /// How many.
    pub(super) count: usize,
    /// Entries of each.
    pub(super) length: usize,
}

impl Parts {
    /// Parts of whole blocks, as many as asked for or somewhat fewer, one at least.
    fn new(width: usize, block: usize, wanted: usize) -> Self {
        let blocks = width.div_ceil(block).max(1);
        let length = blocks.div_ceil(wanted.clamp(1, blocks)) * block;
        Self { count: width.div_ceil(length).max(1), length }
    }
}

fn wanted_cubes(client: &Client) -> usize {
    CUBES_PER_PROCESSOR * parallel_cubes(client)
}

/// Parts of the dimension that a down projection sums over; each gives sums of its own.
pub(super) fn down_parts(client: &Client, work: usize, width: usize, tile: Tile) -> Parts {
    let most = width.div_ceil(tile.k * LEAST_BLOCKS).min(MOST_SPLITS);
    Parts::new(width, tile.k, wanted_cubes(client).div_ceil(work.max(1)).min(most))
}

/// Parts of the columns that an up projection gives.
pub(super) fn up_parts(client: &Client, work: usize, width: usize, tile: Tile) -> Parts {
    Parts::new(width, tile.n, wanted_cubes(client).div_ceil(work.max(1)))
}

/// How the tokens of lanes are shared among the cubes that sum factors' gradients.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Spread {
    /// Tokens of one cube at most: a power of two, so that a batch needs few tables.
    pub(super) tokens: usize,
    /// Incomplete sums of all lanes, counted in ranks.
    pub(super) slots: usize,
}

impl Spread {
    /// So that a launch for so many blocks of columns fills the device.
    pub(super) fn new(client: &Client, lanes: &LoraLanes, blocks: usize, tile: Tile) -> Self {
        let work: usize = busy(lanes).map(|lane| lane.rows.len() * lane.ranks.len().div_ceil(tile.n)).sum();
        let ideal = work * blocks / wanted_cubes(client);
        let longest = busy(lanes).map(|lane| lane.rows.len()).max().unwrap_or(1);
        // One table fits all that split nothing.
        let tokens = ideal.clamp(LEAST_TOKENS, longest.max(LEAST_TOKENS)).next_power_of_two();
        let slots = busy(lanes).map(|lane| Self::slots(tokens, lane)).sum();
        Self { tokens, slots }
    }

    fn slots(tokens: usize, lane: &LoraLane) -> usize {
        let parts = lane.rows.len().div_ceil(tokens);
        if parts > 1 { parts * lane.ranks.len() } else { 0 }
    }

    /// Work of the launch that sums.
    pub(super) fn work(self, lanes: &LoraLanes, like: &CubeTensor, tile: Tile) -> Table {
        let build = || {
            let (mut words, mut packed, mut slot) = (Vec::new(), 0, 0);
            for lane in busy(lanes) {
                let slots = Self::slots(self.tokens, lane);
                for (part, row) in (0..lane.rows.len()).step_by(self.tokens).enumerate() {
                    for rank in (0..lane.ranks.len()).step_by(tile.n) {
                        let work = Work {
                            lane,
                            packed,
                            rank,
                            ranks: tile.n.min(lane.ranks.len() - rank),
                            row,
                            rows: self.tokens.min(lane.rows.len() - row),
                            slot: if slots > 0 { word(slot + part * lane.ranks.len() + rank) } else { COMPLETE },
                        };
                        words.extend(work.words());
                    }
                }
                packed += lane.rows.len() * lane.ranks.len();
                slot += slots;
            }
            words
        };
        lanes.tables().get(like, "lora: sums over tokens", self.tokens << 16 | tile.n, build, WORDS)
    }

    /// For each rank up to the last that a lane owns: the parts that its gradient is the sum of, the slot of the first, and
    /// how far they are apart. One part is complete already, none means zeros.
    pub(super) fn folds(self, lanes: &LoraLanes, like: &CubeTensor) -> Table {
        let build = || {
            let end = busy(lanes).map(|lane| lane.ranks.end).max().unwrap_or(0);
            let (mut words, mut slot) = (vec![0; end * FOLD_WORDS], 0);
            for lane in busy(lanes) {
                let parts = lane.rows.len().div_ceil(self.tokens);
                for (i, rank) in lane.ranks.clone().enumerate() {
                    let entry = [parts, slot + i, lane.ranks.len()].map(word);
                    words[rank * FOLD_WORDS..][..FOLD_WORDS].copy_from_slice(&entry);
                }
                slot += Self::slots(self.tokens, lane);
            }
            words
        };
        lanes.tables().get(like, "lora: parts to add up", self.tokens, build, FOLD_WORDS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_whole_blocks_and_cover_the_width() {
        for width in [1, 15, 16, 17, 530, 2_048] {
            for wanted in [0, 1, 3, 16, 1_000] {
                let Parts { count, length } = Parts::new(width, 16, wanted);
                assert!(length.is_multiple_of(16) && count <= wanted.max(1), "{width} in {wanted}");
                assert!((count - 1) * length < width && width <= count * length, "{width} in {wanted}");
            }
        }
    }

    #[test]
    fn blocks_cover_each_token_and_rank_of_a_lane_once() {
        let lane = |rows, ranks| LoraLane { rows, ranks, scale: 1.0 };
        let lanes = LoraLanes::new(vec![lane(9..52, 3..20), lane(0..0, 0..3), lane(2..9, 30..30), lane(0..1, 20..21)]);
        let mut worked = vec![0; 53 * 31];
        let mut downs = vec![0; packed(&lanes)];
        for work in blocks(&lanes, 16, 8).chunks(WORDS) {
            let [first_rank, ranks, lane_ranks, first_row, rows, down] = [0, 1, 2, 3, 4, 5].map(|i| work[i] as usize);
            for (row, rank) in (0..rows).flat_map(|row| (0..ranks).map(move |rank| (row, rank))) {
                worked[(first_row + row) * 31 + first_rank + rank] += 1;
                downs[down + row * lane_ranks + rank] += 1;
            }
        }
        assert!(downs.iter().all(|&times| times == 1));
        for (at, times) in worked.into_iter().enumerate() {
            let owned = busy(&lanes).any(|lane| lane.rows.contains(&(at / 31)) && lane.ranks.contains(&(at % 31)));
            assert_eq!(times, i32::from(owned), "token {}, rank {}", at / 31, at % 31);
        }
    }
}
