//! Matrix instructions.

use super::operands::{Decoder, space_of};
use crate::instruction::{FragmentOf, Halves, MatrixTransfer, Operation, Space, Tile};

impl Decoder<'_> {
    pub(super) fn wmma(&mut self, parts: &[&str], operands: &[String]) -> Option<Operation> {
        match parts {
            ["load", which, "sync", layout, shape, rest @ ..] => {
                let (space, of) = space_and_type(rest)?;
                let (registers, address) = (self.all(operands.first()?)?, self.address(operands.get(1)?)?);
                let stride = self.optional(operands.get(2))?;
                let matrix = whole(which, layout, shape, of)?;
                Some(Operation::MatrixLoad(MatrixTransfer { matrix, space, registers, address, stride }))
            }
            ["store", "d", "sync", layout, shape, rest @ ..] => {
                let (space, of) = space_and_type(rest)?;
                let (address, registers) = (self.address(operands.first()?)?, self.all(operands.get(1)?)?);
                let stride = self.optional(operands.get(2))?;
                let matrix = whole("c", layout, shape, of)?;
                Some(Operation::MatrixStore(MatrixTransfer { matrix, space, registers, address, stride }))
            }
            ["mma", "sync", _, _, shape, d, rest @ ..] => {
                let halves = if rest.first() == Some(&"bf16") { Halves::Bf16 } else { Halves::F16 };
                // An accumulator of 16 bits stays so.
                let narrow = match (*d, rest.last()?) {
                    ("f32", &"f32") => false,
                    ("f16", &"f16") => true,
                    _ => return None,
                };
                let (m, n, k) = dimensions(shape)?;
                self.product(Tile { m, n, k, documented: false, narrow }, halves, operands)
            }
            _ => None,
        }
    }

    pub(super) fn mma(&mut self, shape: &str, types: &[&str], operands: &[String]) -> Option<Operation> {
        let halves = match types {
            ["f32", "f16", "f16", "f32"] => Halves::F16,
            ["f32", "bf16", "bf16", "f32"] => Halves::Bf16,
            _ => return None,
        };
        let (m, n, k) = dimensions(shape)?;
        if (m, n) != (16, 8) || !matches!(k, 8 | 16) {
            return None;
        }
        self.product(Tile { m, n, k, documented: true, narrow: false }, halves, operands)
    }

    fn product(&mut self, tile: Tile, halves: Halves, operands: &[String]) -> Option<Operation> {
        let [d, a, b, c] = operands else { return None };
        let (d, a, b, c) = (self.all(d)?, self.all(a)?, self.all(b)?, self.all(c)?);
        Some(Operation::MatrixProduct { tile, halves, d, a, b, c })
    }

    pub(super) fn tiles(&mut self, parts: &[&str], operands: &[String]) -> Option<Operation> {
        let count = parts.iter().find_map(|part| part.strip_prefix('x')?.parse().ok())?;
        let matrix = FragmentOf::Tiles { count, transposed: parts.contains(&"trans") };
        let space = if parts.contains(&"shared") { Space::Shared } else { Space::Generic };
        let (first, second) = (operands.first()?, operands.get(1)?);
        Some(if parts[0] == "ldmatrix" {
            let (registers, address) = (self.all(first)?, self.address(second)?);
            Operation::MatrixLoad(MatrixTransfer { matrix, space, registers, address, stride: None })
        } else {
            let (address, registers) = (self.address(first)?, self.all(second)?);
            Operation::MatrixStore(MatrixTransfer { matrix, space, registers, address, stride: None })
        })
    }
}

fn space_and_type<'a>(parts: &[&'a str]) -> Option<(Space, &'a str)> {
    match parts {
        [space, of] => Some((space_of(space), of)),
        [of] => Some((Space::Generic, of)),
        _ => None,
    }
}

/// `m16n8k16`.
fn dimensions(shape: &str) -> Option<(usize, usize, usize)> {
    let (m, rest) = shape.strip_prefix('m')?.split_once('n')?;
    let (n, k) = rest.split_once('k')?;
    Some((m.parse().ok()?, n.parse().ok()?, k.parse().ok()?))
}

fn whole(which: &str, layout: &str, shape: &str, of: &str) -> Option<FragmentOf> {
    let (m, n, k) = dimensions(shape)?;
    let (rows, columns) = match which {
        "a" => (m, k),
        "b" => (k, n),
        "c" => (m, n),
        _ => return None,
    };
    let wide = match of {
        "f32" => true,
        "f16" | "bf16" => false,
        _ => return None,
    };
    Some(FragmentOf::Whole { rows, columns, column_major: layout == "col", wide })
}
