//! Registers, literals, variables and addresses.

use std::collections::HashMap;

use crate::instruction::{Address, Register, Space, Special};
use crate::ptx::split;

/// Gives every name and every literal a register.
pub(super) struct Decoder<'a> {
    pub(super) symbols: HashMap<String, u64>,
    pub(super) labels: &'a HashMap<String, usize>,
    pub(super) names: HashMap<String, Register>,
    pub(super) literals: HashMap<u64, Register>,
    pub(super) registers: Register,
}

impl Decoder<'_> {
    pub(super) fn address(&mut self, text: &str) -> Option<Address> {
        let text = text.strip_prefix('[')?.strip_suffix(']')?.trim();
        let (base, offset) = match text.split_once('+') {
            Some((base, offset)) => (base.trim(), offset.trim().parse().ok()?),
            None => (text, 0),
        };
        if base.starts_with('%') {
            return Some(Address { base: Some(self.named(base)), offset });
        }
        let start = *self.symbols.get(base)? as i64;
        Some(Address { base: None, offset: start + offset })
    }

    pub(super) fn values<const N: usize>(&mut self, operands: &[String]) -> Option<[Register; N]> {
        let values: Vec<Register> = operands.iter().map(|operand| self.value(operand)).collect::<Option<_>>()?;
        values.try_into().ok()
    }

    pub(super) fn optional(&mut self, operand: Option<&String>) -> Option<Option<Register>> {
        match operand {
            Some(operand) => self.value(operand).map(Some),
            None => Some(None),
        }
    }

    /// The registers of `{a, b}` or of `a`.
    pub(super) fn all(&mut self, text: &str) -> Option<Vec<Register>> {
        listed(text).iter().map(|name| self.value(name)).collect()
    }

    /// A register, or one that holds the literal or the address of the variable.
    pub(super) fn value(&mut self, text: &str) -> Option<Register> {
        if text.starts_with('%') {
            return special(text).is_none().then(|| self.named(text));
        }
        let bits = match (text.strip_prefix("0f"), text.strip_prefix("0d"), text.strip_prefix("0x")) {
            (Some(hexadecimal), ..) | (_, Some(hexadecimal), _) | (.., Some(hexadecimal)) => {
                u64::from_str_radix(hexadecimal.trim_end_matches('U'), 16).ok()?
            }
            _ => match (text.parse::<i64>(), text.parse::<u64>()) {
                (Ok(number), _) => number as u64,
                (_, Ok(number)) => number,
                _ => *self.symbols.get(text)?,
            },
        };
        Some(self.literal(bits))
    }

    pub(super) fn named(&mut self, name: &str) -> Register {
        let next = self.registers;
        let register = *self.names.entry(name.to_string()).or_insert(next);
        self.registers += Register::from(register == next);
        register
    }

    pub(super) fn literal(&mut self, bits: u64) -> Register {
        let next = self.registers;
        let register = *self.literals.entry(bits).or_insert(next);
        self.registers += Register::from(register == next);
        register
    }
}

/// Where a space begins among all addresses; global memory is where it is.
pub(crate) fn window(space: Space) -> u64 {
    match space {
        Space::Generic | Space::Global => 0,
        Space::Shared => 1 << 60,
        Space::Local => 2 << 60,
        Space::Parameter => 3 << 60,
    }
}

pub(super) fn listed(text: &str) -> Vec<String> {
    split(text.trim_start_matches('{').trim_end_matches('}'))
}

pub(super) fn bytes(of: &str) -> Option<usize> {
    let bits = of.strip_prefix("bf").or_else(|| of.strip_prefix(['b', 'u', 's', 'f']))?;
    Some(bits.parse::<usize>().ok()? / 8)
}

pub(super) fn space_of(name: &str) -> Space {
    match name {
        "global" => Space::Global,
        "shared" => Space::Shared,
        "local" => Space::Local,
        "param" => Space::Parameter,
        _ => Space::Generic,
    }
}

pub(super) fn special(name: &str) -> Option<Special> {
    let axis = |axis: &str| ["x", "y", "z"].iter().position(|&known| known == axis);
    Some(match name.split_once('.') {
        Some(("%tid", of)) => Special::UnitInBlock(axis(of)?),
        Some(("%ntid", of)) => Special::BlockSize(axis(of)?),
        Some(("%ctaid", of)) => Special::Block(axis(of)?),
        Some(("%nctaid", of)) => Special::Grid(axis(of)?),
        None if name == "%laneid" => Special::Lane,
        _ => return None,
    })
}
