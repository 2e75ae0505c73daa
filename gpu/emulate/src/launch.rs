//! A launch: blocks spread over threads.

use std::env;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread::{available_parallelism, scope};

use crate::block::{Block, Launch};

/// How many units and blocks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Grid {
    pub(crate) blocks: [u32; 3],
    pub(crate) block: [u32; 3],
    /// Bytes of shared memory beyond those that the kernel declares.
    pub(crate) dynamic_shared_bytes: usize,
}

impl Grid {
    /// Units of a block.
    pub(crate) fn units(&self) -> usize {
        self.block.iter().map(|&length| length as usize).product()
    }

    /// The place of a unit in its block.
    pub(crate) fn unit(&self, index: usize) -> [u32; 3] {
        place(index as u64, self.block)
    }
}

/// Runs all blocks.
///
/// # Errors
/// What the first one that failed did.
pub(crate) fn run(launch: &Launch<'_>) -> Result<(), String> {
    let count = launch.grid.blocks.iter().map(|&length| u64::from(length)).product::<u64>();
    let next = AtomicU64::new(0);
    let failure = Mutex::new(None);
    let work = || {
        let mut block = Block::new(launch);
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            if index >= count {
                return;
            }
            if let Err(error) = block.run(place(index, launch.grid.blocks)) {
                // The others stop at their next block.
                next.store(count, Ordering::Relaxed);
                failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
                return;
            }
        }
    };
    match threads().min(count) {
        0 | 1 => work(),
        threads => scope(|scope| {
            for _ in 0..threads {
                scope.spawn(work);
            }
        }),
    }
    failure.into_inner().unwrap_or_else(PoisonError::into_inner).map_or(Ok(()), Err)
}

fn threads() -> u64 {
    let asked = env::var("EMULATED_THREADS").ok().and_then(|threads| threads.parse().ok());
    asked.unwrap_or_else(|| available_parallelism().map_or(1, |threads| threads.get() as u64))
}

/// The first axis goes fastest.
fn place(index: u64, [x, y, _]: [u32; 3]) -> [u32; 3] {
    let (x, y) = (u64::from(x), u64::from(y));
    [(index % x) as u32, (index / x % y) as u32, (index / x / y) as u32]
}
