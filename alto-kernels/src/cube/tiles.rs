//! The tiles of the kernels that multiply, by device and dtype.

use cubecl::client::Client;
use cubecl::ir::ElemType;

use super::hardware::{has_matrix_units, most_units};
use super::tile::{Order, PLANE, Tile};

/// Bytes that a unit loads at a time, at most.
const LOAD: usize = 16;
/// How the launches of a multi-LoRA layer multiply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Tiles {
    /// Tokens by ranks, over a width.
    pub(super) down: Tile,
    /// Tokens by columns, over ranks.
    pub(super) up: Tile,
    /// Columns by ranks, over tokens.
    pub(super) gradient: Tile,
}

impl Tiles {
    /// The best that the device has; `vector` tells whether all operands are made of vectors of so many entries.
    pub(super) fn new(client: &Client, elem: ElemType, vector: impl Fn(usize) -> bool) -> Self {
        let hardware = &client.properties().hardware;
        let longest = (LOAD / elem.size()).min(hardware.max_vector_size);
        let vector = [8, 4].into_iter().find(|&entries| entries <= longest && vector(entries)).unwrap_or(1);
        let planes = [hardware.plane_size_min, hardware.plane_size_max] == [PLANE as u32; 2];
        let units = most_units(client);
        if planes && units >= 128 && has_matrix_units(client, elem) {
            return Self::of_matrix_units(vector);
        }
        let tiles = Self::of_many_units(vector);
        if units >= tiles.down.units && tiles.shared_memory() <= hardware.max_shared_memory_size {
            return tiles;
        }
        Self::of_few_units(1 << units.clamp(1, 16).ilog2(), vector)
    }

    /// Four planes, each of which takes a row of fragments of each strip.
    pub(super) fn of_matrix_units(vector: usize) -> Self {
        let tile =
            Tile { units: 128, strip: 64, n: 64, k: 64, vector, gap: 8, held: 8, padded: true, matrix: true, ..TILE };
        // Down projections are read again for every block of columns, so wide ones.
        Self::of(tile, tile, Tile { strips: 2, k: 32, ..tile })
    }

    /// A micro tile for each unit.
    pub(super) fn of_many_units(vector: usize) -> Self {
        let tile = Tile { units: 256, strip: 64, n: 64, k: 16, vector, gap: 1, ..TILE };
        // With more units, ptxas saves registers by spilling some.
        Self::of(tile, Tile { units: 128, strip: 32, ..tile }, tile)
    }

    /// For a CPU, or a GPU with little of everything. Unlike one another, and staged as for matrix units, so that tests on
    /// a CPU find what is mixed up there too.
    pub(super) fn of_few_units(units: usize, vector: usize) -> Self {
        let tile = Tile { units, strip: 16, n: 16, k: 16, vector, gap: 8, held: 64, padded: true, ..TILE };
        Self::of(Tile { k: 32, ..tile }, tile, Tile { strips: 2, ..tile })
    }

    /// Every kernel stages its operands as they lie in memory.
    fn of(down: Tile, up: Tile, gradient: Tile) -> Self {
        Self {
            down: Tile { right: Order::Transposed, ..down },
            up,
            gradient: Tile { left: Order::Transposed, ..gradient },
        }
    }

    /// Bytes of the largest launch, staged as f32.
    fn shared_memory(&self) -> usize {
        let entries = |tile: Tile| tile.left_block().len() + tile.right_block().len() + tile.out_len();
        size_of::<f32>() * [self.down, self.up, self.gradient].map(entries).into_iter().max().unwrap_or(0)
    }
}

/// What the tiles have in common.
const TILE: Tile = Tile {
    units: 1,
    strip: 16,
    strips: 1,
    n: 16,
    k: 16,
    left: Order::Straight,
    right: Order::Straight,
    vector: 1,
    gap: 0,
    held: 0,
    padded: false,
    matrix: false,
};
