//! The blocks of all rows of a batch, one for each cube and head: `first token of the row, tokens of the row, first of the
//! block within the row`.

use burn_cubecl::tensor::CubeTensor;
use cubecl::prelude::*;

use super::super::table::Table;
use super::tile::Tile;
use crate::rows::Rows;

/// Words of a block in its table.
pub(super) const WORDS: usize = 3;

/// Most cubes beside each other in the dimensions that are the shortest.
pub(super) const MOST: usize = 65_535;

/// Blocks of queries, those that see the most keys first: the short ones fill up the device in the end.
pub(super) fn query_blocks(like: &CubeTensor, rows: &Rows, tile: Tile) -> Table {
    table(like, rows, tile, "attention queries", |[_, _, at]| at)
}

/// Blocks of keys, those that the most queries see first.
pub(super) fn key_blocks(like: &CubeTensor, rows: &Rows, tile: Tile) -> Table {
    table(like, rows, tile, "attention keys", |[_, length, at]| length - at)
}

fn table(
    like: &CubeTensor,
    rows: &Rows,
    tile: Tile,
    kind: &'static str,
    work: impl Fn([usize; WORDS]) -> usize,
) -> Table {
    let build = || {
        let blocks = rows.ranges().flat_map(|row| {
            let starts = (0..row.len()).step_by(tile.rows);
            starts.map(move |at| [row.start, row.len(), at])
        });
        let mut blocks: Vec<_> = blocks.collect();
        blocks.sort_by_key(|&block| std::cmp::Reverse(work(block)));
        blocks.into_iter().flatten().map(|word| word as u32).collect()
    };
    rows.tables().get(like, kind, tile.rows, build, WORDS)
}

/// Cubes for each head and block; there may be a few too many.
pub(super) fn cubes(heads: usize, blocks: usize) -> CubeCount {
    CubeCount::Static(heads as u32, blocks.min(MOST) as u32, blocks.div_ceil(MOST) as u32)
}

/// The own block among those of [`cubes`].
#[cube]
pub(super) fn own_block() -> usize {
    CUBE_POS_Z as usize * CUBE_COUNT_Y as usize + CUBE_POS_Y as usize
}
