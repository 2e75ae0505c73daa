//! What one cube computes at a time, chosen by the shared memory that it takes.

use burn_cubecl::CubeDevice;
use burn_cubecl::tensor::CubeTensor;
use cubecl::client::Client;
use cubecl::prelude::*;

use super::super::hardware::{has_matrix_units, most_units};
use super::super::tensor::{RowMajor, elem};

/// Side of what matrix units multiply.
pub(super) const FRAGMENT: usize = 16;
/// Units that work on one fragment together.
const PLANE: usize = 32;
/// Side of what a unit computes at a time without matrix units.
pub(super) const PART: usize = 4;
/// Widest heads, of all sums together, that the registers of a plane hold.
const REGISTERS: usize = 256;
/// More than this leaves less than two cubes to a processor, too few to hide what they wait for.
const MEMORY: usize = 96 << 10;

/// A tile of tokens against tiles of tokens: of queries against keys, or of keys against queries.
///
/// With matrix units, each plane has a band of 16 rows of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(in super::super) struct Tile {
    /// Tokens that a cube computes the result of; a power of two.
    pub(super) rows: usize,
    /// Tokens that it goes over at a time; a power of two, and divides the rows.
    pub(super) columns: usize,
    /// Entries of a head.
    pub(super) dim: usize,
    /// The same with zeros behind, up to a whole number of fragments.
    pub(super) width: usize,
    /// Units of a cube, a power of two.
    pub(super) units: usize,
    /// Whether matrix units multiply.
    pub(super) matrix: bool,
}

/// How many shared tiles a kernel has of each kind.
#[derive(Debug, Clone, Copy)]
pub(in super::super) struct Footprint {
    /// Of `rows` heads.
    pub(super) rows: usize,
    /// Of `columns` heads.
    pub(super) columns: usize,
    /// Of `rows x columns` scores in f32.
    pub(super) scores: usize,
    /// Of `rows x columns` weights, in the inputs' type.
    pub(super) weights: usize,
    /// Of sums, `rows` heads in f32, which matrix units keep in registers.
    pub(super) sums: usize,
}

impl Tile {
    /// The largest that the device has memory for.
    ///
    /// # Panics
    /// If it has too little for the smallest.
    pub(super) fn new(like: &CubeTensor, dim: usize, footprint: Footprint) -> Self {
        let client = &like.client;
        let matrix = footprint.sums * dim <= REGISTERS && has_planes(client) && has_matrix_units(client, elem(like));
        let memory = client.properties().hardware.max_shared_memory_size;
        Self::largest(dim, like.dtype.size(), footprint, memory, (!matrix).then(|| plain_units(client)))
    }

    /// The largest for heads of `dim` entries of `size` bytes that takes no more than `memory` bytes; with matrix units
    /// unless units for each cube are given.
    ///
    /// # Panics
    /// If the smallest takes more.
    pub(in super::super) fn largest(
        dim: usize,
        size: usize,
        footprint: Footprint,
        memory: usize,
        plain_units: Option<usize>,
    ) -> Self {
        let sizes: &[[usize; 2]] = match plain_units {
            None => &[[64, 32], [32, 32], [16, 16]],
            Some(_) => &[[64, 32], [32, 32], [32, 16], [16, 16], [8, 8], [4, 4]],
        };
        let mut tiles = sizes.iter().map(|&[rows, columns]| {
            let quantum = if plain_units.is_some() { PART } else { FRAGMENT };
            let units = plain_units.unwrap_or(rows / FRAGMENT * PLANE);
            Self { rows, columns, dim, width: dim.next_multiple_of(quantum), units, matrix: plain_units.is_none() }
        });
        let bytes = |tile: &Self| tile.bytes(footprint, size);
        tiles.clone().find(|tile| bytes(tile) <= memory.min(MEMORY)).unwrap_or_else(|| {
            let least = tiles.next_back().map_or(0, |tile| bytes(&tile));
            panic!("attention over heads of {dim} needs {least} bytes of shared memory, the device has {memory}")
        })
    }

    /// Shared memory that a kernel takes; `size` is of an entry of its inputs.
    fn bytes(&self, footprint: Footprint, size: usize) -> usize {
        let heads = (footprint.rows * self.rows + footprint.columns * self.columns) * self.pitch();
        let weights = footprint.weights * self.rows * self.weight_pitch();
        let scores = footprint.scores * self.rows * self.score_pitch();
        let sums = if self.matrix { 0 } else { footprint.sums * self.rows * self.width };
        // Two numbers for each row or column and each of its units, and one more.
        let numbers = 3 * self.rows.max(self.columns) * self.sharing();
        // Aligned to 32 bytes each, of at most 16.
        size * (heads + weights) + 4 * (scores + sums + numbers) + 16 * 32
    }

    /// Entries from one head in shared memory to the next: another bank for each.
    pub(super) fn pitch(&self) -> usize {
        self.width + self.padding()
    }

    /// From one row of weights to the next.
    pub(super) fn weight_pitch(&self) -> usize {
        self.columns + self.padding()
    }

    /// From one row of scores to the next.
    pub(super) fn score_pitch(&self) -> usize {
        self.columns + 4
    }

    /// Matrix units want rows of 16-bit entries to begin at multiples of 16 bytes.
    fn padding(&self) -> usize {
        if self.matrix { 8 } else { 4 }
    }

    /// Units that share a row of scores.
    pub(super) fn sharing(&self) -> usize {
        (self.units / self.rows).clamp(1, self.columns)
    }

    /// Rows of scores that the cube works on at a time.
    pub(super) fn rows_at_once(&self) -> usize {
        self.units / self.sharing()
    }

    /// Tiles of scores that are as wide as a head.
    pub(super) fn chunks(&self) -> usize {
        self.width.div_ceil(self.columns)
    }

    /// Fragments beside each other in a head.
    pub(super) fn fragments(&self) -> usize {
        self.width / FRAGMENT
    }

    pub(in super::super) fn cube_dim(&self) -> CubeDim {
        CubeDim::new_1d(self.units as u32)
    }

    /// Entries that a unit loads at a time from any of the inputs.
    pub(super) fn vector(&self, inputs: &[&RowMajor]) -> usize {
        vector(self.dim, inputs).min(self.padding())
    }
}

/// Entries that a unit loads at a time: at most 16 bytes, and all heads of `dim` entries lie at multiples of them.
pub(super) fn vector(dim: usize, inputs: &[&RowMajor]) -> usize {
    let like = inputs[0].tensor();
    // Elsewhere a buffer can't always be seen as of another type.
    if !matches!(like.device, CubeDevice::Cuda(_) | CubeDevice::Hip(_) | CubeDevice::Cpu(_)) {
        return 1;
    }
    let size = like.dtype.size();
    let fits = |&entries: &usize| {
        let lies = |input: &&RowMajor| {
            let offset = input.tensor().handle.offset_start.unwrap_or(0) as usize;
            input.stride.is_multiple_of(entries) && offset.is_multiple_of(entries * size)
        };
        entries * size <= 16 && dim.is_multiple_of(entries) && inputs.iter().all(lies)
    };
    [8, 4, 2].into_iter().find(fits).unwrap_or(1)
}

/// Whether planes are of the size that the kernels with matrix units are made for.
fn has_planes(client: &Client) -> bool {
    let hardware = &client.properties().hardware;
    (hardware.plane_size_min, hardware.plane_size_max) == (PLANE as u32, PLANE as u32)
        && hardware.max_units_per_cube as usize >= 64 / FRAGMENT * PLANE
}

/// Units of a cube without matrix units.
fn plain_units(client: &Client) -> usize {
    1 << most_units(client).clamp(1, 256).ilog2()
}
