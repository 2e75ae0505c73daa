//! What a statement does.

use super::operands::{Decoder, bytes, listed, space_of, special, window};
use crate::arithmetic::{compare, one, three, two};
use crate::convert::{convert, convert_pair};
use crate::instruction::{One, Operation, Shuffle, Space, Transfer, Two, Vote};
use crate::ptx::Statement;

impl Decoder<'_> {
    /// None if it isn't known.
    pub(super) fn operation(&mut self, statement: &Statement) -> Option<Operation> {
        // Caching, and whether a result may be less exact than it is here, subnormal numbers included.
        const IGNORED: [&str; 16] = [
            "nc",
            "volatile",
            "relaxed",
            "weak",
            "gpu",
            "cta",
            "sys",
            "approx",
            "full",
            "ftz",
            "uni",
            "aligned",
            "L1::no_allocate",
            "L1::evict_last",
            "L1::evict_first",
            "L2::128B",
        ];
        let parts: Vec<&str> = statement.operation.split('.').filter(|part| !IGNORED.contains(part)).collect();
        let operands = &statement.operands;
        match parts[..] {
            ["ret" | "exit"] => Some(Operation::Exit),
            ["bra"] => Some(Operation::Branch(*self.labels.get(operands.first()?)?)),
            ["bar" | "barrier", "sync"] if operands.len() == 1 => Some(Operation::BlockBarrier),
            ["bar", "warp", "sync"] => Some(Operation::WarpBarrier(self.value(operands.first()?)?)),
            ["activemask", "b32"] => Some(Operation::ActiveLanes(self.named(operands.first()?))),
            ["shfl", "sync", how, "b32"] => self.shuffle(how, operands),
            ["vote", "sync", how, _] => self.vote(how, operands),
            ["mov", _] => self.mov(operands),
            ["cvta", ..] => self.cvta(&parts, operands),
            ["cvt", "rn", to @ ("f16x2" | "bf16x2"), "f32"] => self.two(convert_pair(to)?, operands),
            ["cvt", .., to, from] => self.one(convert(&parts[1..parts.len() - 2], to, from)?, operands),
            ["setp", comparison, of] => self.two(compare(comparison, of)?, operands),
            ["ld", space, ..] => self.load(space_of(space), parts.last()?, operands),
            ["st", space, ..] => self.store(space_of(space), parts.last()?, operands),
            ["atom" | "red", space, .., name, of] => {
                self.atomic(parts[0] == "red", space_of(space), name, of, operands)
            }
            ["wmma", ..] => self.wmma(&parts[1..], operands),
            ["mma", "sync", shape, "row", "col", ..] => self.mma(shape, &parts[5..], operands),
            ["ldmatrix" | "stmatrix", "sync", "m8n8", ..] => self.tiles(&parts, operands),
            [name, .., of] => {
                // Rounding to nearest is the default of everything that rounds, and `lo` names what the plain one does.
                let middle: Vec<&str> =
                    parts[1..parts.len() - 1].iter().copied().filter(|&part| part != "rn").collect();
                let name = std::iter::once(name).chain(middle).collect::<Vec<_>>().join(".");
                match operands.len() {
                    2 => self.one(one(&name, of)?, operands),
                    3 => self.two(two(&name, of)?, operands),
                    4 => {
                        let [d, a, b, c] = self.values(operands)?;
                        Some(Operation::Three(three(&name, of)?, d, a, b, c))
                    }
                    _ => None,
                }
            }
            _ => None,
        }
    }

    fn one(&mut self, function: One, operands: &[String]) -> Option<Operation> {
        let [d, a] = self.values(operands)?;
        Some(Operation::One(function, d, a))
    }

    fn two(&mut self, function: Two, operands: &[String]) -> Option<Operation> {
        let [d, a, b] = self.values(operands)?;
        Some(Operation::Two(function, d, a, b))
    }

    fn mov(&mut self, operands: &[String]) -> Option<Operation> {
        let [d, a] = operands else { return None };
        let part_bits = |part: &str| if part.starts_with("%rs") { 16 } else { 32 };
        if let Some(special) = special(a) {
            return Some(Operation::Special(special, self.named(d)));
        }
        if d.starts_with('{') {
            let names = listed(d);
            let bits = part_bits(names.iter().find(|&name| name != "_")?);
            let parts = names.iter().map(|name| (name != "_").then(|| self.named(name))).collect();
            return Some(Operation::Unpack(parts, self.value(a)?, bits));
        }
        if a.starts_with('{') {
            let names = listed(a);
            let bits = part_bits(names.first()?);
            let parts = names.iter().map(|name| self.value(name)).collect::<Option<_>>()?;
            return Some(Operation::Pack(self.named(d), parts, bits));
        }
        self.one(one("mov", "b64")?, operands)
    }

    /// Between an address in one space and the same among all; each space has a window of its own.
    fn cvta(&mut self, parts: &[&str], operands: &[String]) -> Option<Operation> {
        let (to_space, space) = match parts[1..] {
            ["to", space, "u64" | "u32"] => (true, space),
            [space, "u64" | "u32"] => (false, space),
            _ => return None,
        };
        let start = self.literal(window(space_of(space)));
        let [d, a] = self.values(operands)?;
        Some(Operation::Two(two(if to_space { "sub" } else { "add" }, "u64")?, d, a, start))
    }

    fn shuffle(&mut self, how: &str, operands: &[String]) -> Option<Operation> {
        let how = match how {
            "bfly" => Shuffle::Butterfly,
            "down" => Shuffle::Down,
            "idx" => Shuffle::Index,
            "up" => Shuffle::Up,
            _ => return None,
        };
        let [into, of, by, clamp, members] = self.values(operands)?;
        Some(Operation::Shuffle { how, into, of, by, clamp, members })
    }

    fn vote(&mut self, how: &str, operands: &[String]) -> Option<Operation> {
        let how = match how {
            "all" => Vote::All,
            "any" => Vote::Any,
            "ballot" => Vote::Ballot,
            _ => return None,
        };
        let [into, predicate, members] = self.values(operands)?;
        Some(Operation::Vote { how, into, predicate, members })
    }

    fn load(&mut self, space: Space, of: &str, operands: &[String]) -> Option<Operation> {
        let [into, address] = operands else { return None };
        Some(Operation::Load(self.transfer(space, of, into, address)?))
    }

    fn store(&mut self, space: Space, of: &str, operands: &[String]) -> Option<Operation> {
        let [address, from] = operands else { return None };
        Some(Operation::Store(self.transfer(space, of, from, address)?))
    }

    fn transfer(&mut self, space: Space, of: &str, registers: &str, address: &str) -> Option<Transfer> {
        let (registers, address) = (self.all(registers)?, self.address(address)?);
        Some(Transfer { space, bytes: bytes(of)?, signed: of.starts_with('s'), registers, address })
    }

    fn atomic(&mut self, red: bool, space: Space, name: &str, of: &str, operands: &[String]) -> Option<Operation> {
        let (into, address, value) = match operands {
            [address, value] if red => (None, address, value),
            [into, address, value] => (Some(self.named(into)), address, value),
            _ => return None,
        };
        let (address, value) = (self.address(address)?, self.value(value)?);
        Some(Operation::Atomic { space, bytes: bytes(of)?, then: two(name, of)?, into, address, value })
    }
}
