//! 32 units in step, parting where they branch and meeting again where all ways lead.

mod matrix;
mod step;

use crate::block::Memories;
use crate::clock;
use crate::decode::Kernel;
use crate::instruction::{Address, Lanes, Operation, Register};
use crate::shared::Access;

/// Why a warp has stopped.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum State {
    AtBarrier,
    Ended,
}

/// Lanes that are at the same instruction, a bit each.
#[derive(Debug, Clone, Copy)]
struct Group {
    at: usize,
    lanes: u32,
    /// Where it waits for those it has parted from.
    meeting: usize,
}

pub(crate) struct Warp {
    index: usize,
    /// Lanes that there are.
    lanes: u32,
    /// Lanes that haven't ended.
    live: u32,
    registers: Vec<Lanes>,
    /// The last one runs; those before it wait for it.
    groups: Vec<Group>,
    own_barriers: u16,
    /// How many it has run, for the clock.
    instructions: u64,
}

impl Warp {
    pub(crate) fn new(kernel: &Kernel, index: usize, units: usize) -> Self {
        let mut registers = vec![[0; 32]; kernel.registers];
        for &(register, bits) in &kernel.literals {
            registers[register as usize] = [bits; 32];
        }
        let lanes = (units - index * 32).min(32);
        let lanes = ((1u64 << lanes) - 1) as u32;
        Self { index, lanes, live: 0, registers, groups: vec![], own_barriers: 0, instructions: 0 }
    }

    /// To the first instruction, of another block.
    pub(crate) fn restart(&mut self) {
        self.live = self.lanes;
        self.groups = vec![Group { at: 0, lanes: self.lanes, meeting: usize::MAX }];
        self.own_barriers = 0;
    }

    /// Runs until all lanes wait for the block or have ended.
    pub(crate) fn run(&mut self, memories: &mut Memories<'_>) -> Result<State, String> {
        let kernel = memories.launch.kernel;
        while let Some(group) = self.groups.pop() {
            let mut at = group.at;
            let outcome = self.run_group(kernel, group, memories, &mut at);
            let stopped = outcome.map_err(|error| {
                let text = &kernel.instructions[at].text;
                let ([x, y, z], warp) = (memories.position, self.index);
                format!("{}: `{text}`, block ({x}, {y}, {z}), warp {warp}: {error}", kernel.name)
            })?;
            if stopped {
                self.own_barriers = 0;
                return Ok(State::AtBarrier);
            }
        }
        clock::advance(std::mem::take(&mut self.instructions));
        Ok(State::Ended)
    }

    /// Runs the last group until it meets another one, parts, ends, or stops at the block's barrier, which is true.
    fn run_group(
        &mut self,
        kernel: &Kernel,
        group: Group,
        memories: &mut Memories<'_>,
        at: &mut usize,
    ) -> Result<bool, String> {
        let Group { mut lanes, meeting, .. } = group;
        while lanes != 0 && *at != meeting {
            self.instructions += 1;
            let instruction = &kernel.instructions[*at];
            let active = match instruction.guard {
                None => lanes,
                Some(guard) => lanes & self.predicate(guard.predicate, guard.negated),
            };
            match &instruction.operation {
                _ if active == 0 => *at += 1,
                Operation::Branch(target) if active == lanes => *at = *target,
                Operation::Branch(target) => {
                    let meet = kernel.meeting[*at];
                    if meet != meeting {
                        self.groups.push(Group { at: meet, lanes, meeting });
                    }
                    self.groups.push(Group { at: *target, lanes: active, meeting: meet });
                    self.groups.push(Group { at: *at + 1, lanes: lanes & !active, meeting: meet });
                    return Ok(false);
                }
                Operation::Exit => {
                    self.live &= !active;
                    lanes &= !active;
                    for group in &mut self.groups {
                        group.lanes &= !active;
                    }
                    *at += 1;
                }
                Operation::BlockBarrier => {
                    if active != self.lanes {
                        let all = self.lanes;
                        return Err(format!("units {active:#x} reach the barrier, of {all:#x}"));
                    }
                    self.groups.push(Group { at: *at + 1, lanes, meeting });
                    return Ok(true);
                }
                operation => {
                    self.step(operation, active, memories)?;
                    *at += 1;
                }
            }
        }
        Ok(false)
    }

    fn predicate(&self, register: Register, negated: bool) -> u32 {
        let lanes = self.registers[register as usize];
        let holds = (0..32).fold(0, |holds, lane| holds | ((lanes[lane] as u32) & 1) << lane);
        if negated { !holds } else { holds }
    }

    fn get(&self, register: Register) -> &Lanes {
        &self.registers[register as usize]
    }

    fn set(&mut self, register: Register, value: Lanes, active: u32) {
        let register = &mut self.registers[register as usize];
        if active == u32::MAX {
            *register = value;
            return;
        }
        for lane in lanes_of(active) {
            register[lane] = value[lane];
        }
    }

    fn address(&self, address: Address, lane: usize) -> u64 {
        let base = address.base.map_or(0, |base| self.get(base)[lane]);
        base.wrapping_add_signed(address.offset)
    }

    fn access(&self, lane: usize, memories: &Memories<'_>) -> Access {
        let (warp, lane) = (self.index as u8, lane as u8);
        Access { warp, lane, warp_barriers: self.own_barriers, barriers: memories.barriers }
    }
}

/// The lanes whose bits are set.
fn lanes_of(mask: u32) -> impl Iterator<Item = usize> {
    (0..32).filter(move |lane| mask >> lane & 1 == 1)
}
