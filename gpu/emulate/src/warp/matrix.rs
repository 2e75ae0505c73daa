//! Matrix instructions: fragments in and out of memory, and their products.
//!
//! Products are summed in f32, one after another, each exact: no more exact than hardware.

use std::array::from_fn;

use super::Warp;
use crate::block::Memories;
use crate::half::{from_bf16, from_f16, to_bf16, to_f16};
use crate::instruction::{FragmentOf, Halves, Lanes, MatrixTransfer, Register, Tile};
use crate::shared::{Access, WHOLE_WARP};

/// Entries in a row of a tile, and bytes of it.
const TILE: usize = 8;
const TILE_ROW: usize = 16;

/// Which of a product's matrices.
#[derive(Clone, Copy, PartialEq)]
enum Operand {
    A,
    B,
    Accumulator,
}

impl Warp {
    pub(super) fn load_matrix(&mut self, transfer: &MatrixTransfer, memories: &mut Memories<'_>) -> Result<(), String> {
        let MatrixTransfer { matrix, space, ref registers, address, stride } = *transfer;
        let by = Access { lane: WHOLE_WARP, ..self.access(0, memories) };
        match matrix {
            FragmentOf::Whole { rows, columns, column_major, wide } => {
                let (start, bytes) = (self.address(address, 0), if wide { 4 } else { 2 });
                let stride = self.stride(stride, if column_major { rows } else { columns });
                let mut entries = vec![0; rows * columns];
                for row in 0..rows {
                    for column in 0..columns {
                        let place = if column_major { column * stride + row } else { row * stride + column };
                        let mut buffer = [0; 8];
                        memories.load(space, start + (place * bytes) as u64, &mut buffer[..bytes], by)?;
                        entries[row * columns + column] = u64::from_le_bytes(buffer);
                    }
                }
                self.spread(&entries, registers, wide);
            }
            FragmentOf::Tiles { count, transposed } => {
                for (tile, &register) in registers.iter().enumerate().take(count) {
                    let mut rows = [[0; TILE_ROW]; TILE];
                    for (row, entries) in rows.iter_mut().enumerate() {
                        memories.load(space, self.address(address, tile * TILE + row), entries, by)?;
                    }
                    let half = |row: usize, column: usize| {
                        let (row, column) = if transposed { (column, row) } else { (row, column) };
                        u64::from(rows[row][2 * column]) | u64::from(rows[row][2 * column + 1]) << 8
                    };
                    let pair = |lane: usize| {
                        let (row, column) = (lane / 4, lane % 4 * 2);
                        half(row, column) | half(row, column + 1) << 16
                    };
                    self.set(register, from_fn(pair), u32::MAX);
                }
            }
        }
        Ok(())
    }

    pub(super) fn store_matrix(&self, transfer: &MatrixTransfer, memories: &mut Memories<'_>) -> Result<(), String> {
        let MatrixTransfer { matrix, space, ref registers, address, stride } = *transfer;
        let by = Access { lane: WHOLE_WARP, ..self.access(0, memories) };
        match matrix {
            FragmentOf::Whole { rows, columns, column_major, wide } => {
                let (start, bytes) = (self.address(address, 0), if wide { 4 } else { 2 });
                let stride = self.stride(stride, if column_major { rows } else { columns });
                let entries = self.gathered(registers, rows * columns, wide);
                for row in 0..rows {
                    for column in 0..columns {
                        let place = if column_major { column * stride + row } else { row * stride + column };
                        let entry = entries[row * columns + column].to_le_bytes();
                        memories.store(space, start + (place * bytes) as u64, &entry[..bytes], by)?;
                    }
                }
            }
            FragmentOf::Tiles { count, transposed } => {
                for (tile, &register) in registers.iter().enumerate().take(count) {
                    let mut rows = [[0; TILE_ROW]; TILE];
                    for (lane, pair) in self.get(register).iter().enumerate() {
                        for (index, half) in [pair & 0xffff, pair >> 16 & 0xffff].into_iter().enumerate() {
                            let (row, column) = (lane / 4, lane % 4 * 2 + index);
                            let (row, column) = if transposed { (column, row) } else { (row, column) };
                            rows[row][2 * column..2 * column + 2].copy_from_slice(&half.to_le_bytes()[..2]);
                        }
                    }
                    for (row, entries) in rows.iter().enumerate() {
                        memories.store(space, self.address(address, tile * TILE + row), entries, by)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// `d = a b + c`.
    pub(super) fn multiply(&mut self, tile: Tile, halves: Halves, [d, a, b, c]: [&[Register]; 4]) {
        let value = |bits: &u64| match halves {
            Halves::F16 => from_f16(*bits as u16),
            Halves::Bf16 => from_bf16(*bits as u16),
        };
        let wide = |bits: &u64| if tile.narrow { value(bits) } else { f32::from_bits(*bits as u32) };
        let Tile { m, n, k, .. } = tile;
        let a: Vec<f32> = self.matrix(tile, Operand::A, a).iter().map(value).collect();
        let b: Vec<f32> = self.matrix(tile, Operand::B, b).iter().map(value).collect();
        let mut sums: Vec<f32> = self.matrix(tile, Operand::Accumulator, c).iter().map(wide).collect();
        for row in 0..m {
            for inner in 0..k {
                let left = a[row * k + inner];
                for column in 0..n {
                    sums[row * n + column] += left * b[inner * n + column];
                }
            }
        }
        let bits = |&sum: &f32| match (tile.narrow, halves) {
            (false, _) => u64::from(sum.to_bits()),
            (true, Halves::F16) => u64::from(to_f16(f64::from(sum))),
            (true, Halves::Bf16) => u64::from(to_bf16(f64::from(sum))),
        };
        let sums: Vec<u64> = sums.iter().map(bits).collect();
        if !tile.documented {
            return self.spread(&sums, d, !tile.narrow);
        }
        for (index, &register) in d.iter().enumerate() {
            let entry = |lane: usize| {
                let (row, column) = documented(Operand::Accumulator, lane, index);
                sums[row * n + column]
            };
            self.set(register, from_fn(entry), u32::MAX);
        }
    }

    /// The entries of a product's operand, row-major.
    fn matrix(&self, tile: Tile, operand: Operand, registers: &[Register]) -> Vec<u64> {
        let (rows, columns) = match operand {
            Operand::A => (tile.m, tile.k),
            Operand::B => (tile.k, tile.n),
            Operand::Accumulator => (tile.m, tile.n),
        };
        let wide = operand == Operand::Accumulator && !tile.narrow;
        if !tile.documented {
            return self.gathered(registers, rows * columns, wide);
        }
        let mut entries = vec![0; rows * columns];
        for lane in 0..32 {
            for slot in 0..registers.len() * if wide { 1 } else { 2 } {
                let (row, column) = documented(operand, lane, slot);
                entries[row * columns + column] = self.slot(registers, slot, wide)[lane];
            }
        }
        entries
    }

    /// Where hardware leaves it open: each lane has as many entries, one after another. Registers beyond repeat them.
    fn spread(&mut self, entries: &[u64], into: &[Register], wide: bool) {
        let each = entries.len() / 32;
        let entry = |lane: usize, slot: usize| entries[lane * each + slot % each];
        for (index, &register) in into.iter().enumerate() {
            let lanes: Lanes = if wide {
                from_fn(|lane| entry(lane, index))
            } else {
                from_fn(|lane| entry(lane, 2 * index) | entry(lane, 2 * index + 1) << 16)
            };
            self.set(register, lanes, u32::MAX);
        }
    }

    fn gathered(&self, from: &[Register], count: usize, wide: bool) -> Vec<u64> {
        let each = count / 32;
        (0..count).map(|index| self.slot(from, index % each, wide)[index / each]).collect()
    }

    /// An entry of each lane's: a register, or half of one.
    fn slot(&self, registers: &[Register], slot: usize, wide: bool) -> Lanes {
        if wide {
            return *self.get(registers[slot]);
        }
        self.get(registers[slot / 2]).map(|pair| pair >> (slot % 2 * 16) & 0xffff)
    }

    fn stride(&self, stride: Option<Register>, dense: usize) -> usize {
        stride.map_or(dense, |stride| self.get(stride)[0] as u32 as usize)
    }
}

/// The row and column of a lane's entry, by the PTX manual's figures of `mma.m16n8k8` and `mma.m16n8k16`.
fn documented(operand: Operand, lane: usize, slot: usize) -> (usize, usize) {
    let (group, thread) = (lane / 4, lane % 4);
    let (odd, pair) = (slot % 2, slot / 2);
    match operand {
        Operand::A => (group + pair % 2 * 8, thread * 2 + odd + pair / 2 * 8),
        Operand::B => (thread * 2 + odd + pair * 8, group),
        Operand::Accumulator => (group + pair * 8, thread * 2 + odd),
    }
}
