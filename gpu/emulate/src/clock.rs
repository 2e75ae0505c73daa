//! The device's time: instructions of warps, so that whoever measures finds the same each time.

use std::sync::atomic::{AtomicU64, Ordering};

static INSTRUCTIONS: AtomicU64 = AtomicU64::new(0);

/// Lets so many instructions pass.
pub(crate) fn advance(instructions: u64) {
    INSTRUCTIONS.fetch_add(instructions, Ordering::Relaxed);
}

/// Nanoseconds since the start, at one for each instruction.
pub(crate) fn now() -> u64 {
    INSTRUCTIONS.load(Ordering::Relaxed)
}
