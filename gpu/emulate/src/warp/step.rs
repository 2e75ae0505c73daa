//! What a warp does at one instruction.

use std::array::from_fn;

use super::{Warp, lanes_of};
use crate::block::Memories;
use crate::instruction::{Lanes, Operation, Register, Shuffle, Special, Transfer, Vote};

impl Warp {
    /// What all lanes of a group do without parting.
    pub(super) fn step(
        &mut self,
        operation: &Operation,
        active: u32,
        memories: &mut Memories<'_>,
    ) -> Result<(), String> {
        match operation {
            Operation::One(function, d, a) => self.set(*d, function(self.get(*a)), active),
            Operation::Two(function, d, a, b) => self.set(*d, function(self.get(*a), self.get(*b)), active),
            Operation::Three(function, d, a, b, c) => {
                self.set(*d, function(self.get(*a), self.get(*b), self.get(*c)), active);
            }
            Operation::Special(special, d) => self.set(*d, self.special(*special, memories), active),
            Operation::Pack(d, parts, bits) => {
                let mask = (1 << bits) - 1;
                let packed = |lane: usize| {
                    parts.iter().rev().fold(0, |all: u64, &part| all << bits | (self.get(part)[lane] & mask))
                };
                self.set(*d, from_fn(packed), active);
            }
            Operation::Unpack(parts, a, bits) => {
                let (whole, mask) = (*self.get(*a), (1 << bits) - 1);
                for (index, part) in parts.iter().enumerate() {
                    if let Some(part) = part {
                        self.set(*part, whole.map(|whole| whole >> (index as u32 * bits) & mask), active);
                    }
                }
            }
            Operation::Load(transfer) => self.load(transfer, active, memories)?,
            Operation::Store(transfer) => self.store(transfer, active, memories)?,
            Operation::Atomic { space, bytes, then, into, address, value } => {
                let mut old = [0; 32];
                for lane in lanes_of(active) {
                    let (place, value) = ((*space, self.address(*address, lane)), self.get(*value)[lane]);
                    old[lane] = memories.update(place, *bytes, *then, value, self.access(lane, memories))?;
                }
                if let Some(into) = into {
                    self.set(*into, old, active);
                }
            }
            Operation::WarpBarrier(members) => {
                self.expect_members(*members, active)?;
                self.own_barriers += 1;
            }
            Operation::Shuffle { how, into, of, by, clamp, members } => {
                self.expect_members(*members, active)?;
                let (of, by, clamp) = (*self.get(*of), *self.get(*by), *self.get(*clamp));
                self.set(*into, from_fn(|lane| of[source(*how, lane, by[lane], clamp[lane])]), active);
            }
            Operation::ActiveLanes(d) => self.set(*d, [u64::from(active); 32], active),
            Operation::Vote { how, into, predicate, members } => {
                self.expect_members(*members, active)?;
                let holds = self.predicate(*predicate, false) & active;
                let result = match how {
                    Vote::All => u64::from(holds == active),
                    Vote::Any => u64::from(holds != 0),
                    Vote::Ballot => u64::from(holds),
                };
                self.set(*into, [result; 32], active);
            }
            Operation::MatrixLoad(transfer) => {
                self.expect_all(active)?;
                self.load_matrix(transfer, memories)?;
            }
            Operation::MatrixStore(transfer) => {
                self.expect_all(active)?;
                self.store_matrix(transfer, memories)?;
            }
            Operation::MatrixProduct { tile, halves, d, a, b, c } => {
                self.expect_all(active)?;
                self.multiply(*tile, *halves, [d, a, b, c]);
            }
            Operation::Branch(_) | Operation::Exit | Operation::BlockBarrier => {}
        }
        Ok(())
    }

    fn load(&mut self, transfer: &Transfer, active: u32, memories: &mut Memories<'_>) -> Result<(), String> {
        let Transfer { space, bytes, signed, ref registers, address } = *transfer;
        let mut loaded = [[0u8; 32]; 32];
        let size = bytes * registers.len();
        for lane in lanes_of(active) {
            let by = self.access(lane, memories);
            memories.load(space, self.address(address, lane), &mut loaded[lane][..size], by)?;
        }
        for (index, &register) in registers.iter().enumerate() {
            let value = |lane: usize| {
                let mut buffer = [0; 8];
                buffer[..bytes].copy_from_slice(&loaded[lane][index * bytes..(index + 1) * bytes]);
                let value = u64::from_le_bytes(buffer);
                let unused = 64 - 8 * bytes as u32;
                if signed { ((value << unused) as i64 >> unused) as u64 } else { value }
            };
            self.set(register, from_fn(value), active);
        }
        Ok(())
    }

    fn store(&self, transfer: &Transfer, active: u32, memories: &mut Memories<'_>) -> Result<(), String> {
        let Transfer { space, bytes, ref registers, address, .. } = *transfer;
        for lane in lanes_of(active) {
            let mut buffer = [0u8; 32];
            for (index, &register) in registers.iter().enumerate() {
                let value = self.get(register)[lane].to_le_bytes();
                buffer[index * bytes..(index + 1) * bytes].copy_from_slice(&value[..bytes]);
            }
            let by = self.access(lane, memories);
            memories.store(space, self.address(address, lane), &buffer[..bytes * registers.len()], by)?;
        }
        Ok(())
    }

    fn special(&self, special: Special, memories: &Memories<'_>) -> Lanes {
        let grid = &memories.launch.grid;
        match special {
            Special::UnitInBlock(axis) => from_fn(|lane| u64::from(grid.unit(self.index * 32 + lane)[axis])),
            Special::BlockSize(axis) => [u64::from(grid.block[axis]); 32],
            Special::Block(axis) => [u64::from(memories.position[axis]); 32],
            Special::Grid(axis) => [u64::from(grid.blocks[axis]); 32],
            Special::Lane => from_fn(|lane| lane as u64),
        }
    }

    /// Errs unless the lanes that an instruction names are those that came to it.
    fn expect_members(&self, members: Register, active: u32) -> Result<(), String> {
        let members = self.get(members)[active.trailing_zeros() as usize] as u32 & self.lanes;
        if members & self.live != active {
            return Err(format!("units {members:#x} must take part, but {active:#x} do"));
        }
        Ok(())
    }

    fn expect_all(&self, active: u32) -> Result<(), String> {
        if active != u32::MAX {
            return Err(format!("all 32 units must take part, but {active:#x} do"));
        }
        Ok(())
    }
}

/// The lane that a lane takes its value from; its own where that one lies outside of its segment.
fn source(how: Shuffle, lane: usize, by: u64, clamp: u64) -> usize {
    let (by, segment) = (by as usize & 31, (clamp >> 8) as usize & 31);
    let limit = (lane & segment) | (clamp as usize & 31 & !segment);
    let (from, inside) = match how {
        Shuffle::Up => (lane.wrapping_sub(by), lane >= by && lane - by >= limit),
        Shuffle::Down => (lane + by, lane + by <= limit),
        Shuffle::Butterfly => (lane ^ by, lane ^ by <= limit),
        Shuffle::Index => {
            let from = (lane & segment) | (by & !segment);
            (from, from <= limit)
        }
    };
    if inside { from } else { lane }
}
