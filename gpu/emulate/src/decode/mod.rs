//! From statements to instructions.

mod matrix;
mod operands;
mod operation;

use std::collections::HashMap;

pub(crate) use operands::window;

use crate::flow::meeting_points;
use crate::instruction::{Guard, Instruction, Operation, Register};
use crate::ptx::{Entry, Variable};
use operands::Decoder;

/// A kernel that can be run.
pub(crate) struct Kernel {
    pub(crate) name: String,
    /// Bytes of each parameter, and where it begins among them all.
    pub(crate) parameters: Vec<(usize, usize)>,
    pub(crate) instructions: Vec<Instruction>,
    /// Where units meet again that part at an instruction.
    pub(crate) meeting: Vec<usize>,
    /// How many registers there are, literals among them.
    pub(crate) registers: usize,
    pub(crate) literals: Vec<(Register, u64)>,
    pub(crate) local_bytes: usize,
    /// Bytes of shared memory that the kernel itself asks for.
    pub(crate) shared_bytes: usize,
}

/// Decodes every statement.
///
/// # Errors
/// The first instruction that isn't known, quoted.
pub(crate) fn decode(entry: &Entry) -> Result<Kernel, String> {
    let (parameters, _) = placed(&entry.parameters);
    let (local, local_bytes) = placed(&entry.local);
    let (shared, shared_bytes) = placed(&entry.shared);
    let addresses = parameters.iter().chain(&local).chain(&shared);
    let mut decoder = Decoder {
        symbols: addresses.map(|(variable, at)| (variable.name.clone(), *at as u64)).collect(),
        labels: &entry.labels,
        names: HashMap::new(),
        literals: HashMap::new(),
        registers: 0,
    };
    let mut instructions = Vec::with_capacity(entry.statements.len() + 1);
    for statement in &entry.statements {
        let guard = statement.guard.as_ref();
        let guard = guard.map(|(name, negated)| Guard { predicate: decoder.named(name), negated: *negated });
        let operation = decoder.operation(statement);
        let operation = operation.ok_or_else(|| format!("instruction not supported: `{}`", statement.text()))?;
        instructions.push(Instruction { guard, operation, text: statement.text() });
    }
    instructions.push(Instruction { guard: None, operation: Operation::Exit, text: "end".to_string() });
    Ok(Kernel {
        name: entry.name.clone(),
        parameters: parameters.iter().map(|(variable, at)| (variable.bytes, *at)).collect(),
        meeting: meeting_points(&instructions),
        instructions,
        registers: decoder.registers as usize,
        literals: decoder.literals.into_iter().map(|(bits, register)| (register, bits)).collect(),
        local_bytes,
        shared_bytes,
    })
}

/// Each variable with its address, one after another as aligned, and the bytes of all.
fn placed(variables: &[Variable]) -> (Vec<(Variable, usize)>, usize) {
    let mut end = 0;
    let place = |variable: &Variable| {
        let at = usize::next_multiple_of(end, variable.alignment.max(1));
        end = at + variable.bytes;
        (variable.clone(), at)
    };
    let placed = variables.iter().map(place).collect();
    (placed, end)
}
