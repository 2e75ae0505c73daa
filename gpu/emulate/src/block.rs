//! One block: its memories, its warps, and their barrier.

use std::sync::{Mutex, PoisonError};

use crate::decode::{Kernel, window};
use crate::instruction::{Space, Two};
use crate::launch::Grid;
use crate::memory::{Allocations, POISON};
use crate::shared::{Access, Shared};
use crate::warp::{State, Warp};

/// What every block of a launch is given.
pub(crate) struct Launch<'a> {
    pub(crate) kernel: &'a Kernel,
    pub(crate) grid: Grid,
    pub(crate) parameters: Vec<u8>,
    pub(crate) allocations: Allocations,
}

/// A block's memories, used by one block after another.
pub(crate) struct Memories<'a> {
    pub(crate) launch: &'a Launch<'a>,
    /// Which block of the grid runs.
    pub(crate) position: [u32; 3],
    /// Barriers it has had, and one.
    pub(crate) barriers: u32,
    shared: Shared,
    local: Vec<u8>,
    /// The allocation that was touched last, which the next access likely is in.
    recent: (u64, u64),
}

/// Atomics of all blocks, one after another.
static ATOMICS: Mutex<()> = Mutex::new(());

/// Runs the blocks that a thread is handed, one after another.
pub(crate) struct Block<'a> {
    memories: Memories<'a>,
    warps: Vec<Warp>,
}

impl<'a> Block<'a> {
    pub(crate) fn new(launch: &'a Launch<'a>) -> Self {
        let units = launch.grid.units();
        let memories = Memories {
            launch,
            position: [0; 3],
            barriers: 1,
            shared: Shared::new(launch.kernel.shared_bytes + launch.grid.dynamic_shared_bytes),
            local: vec![POISON; units * launch.kernel.local_bytes],
            recent: (0, 0),
        };
        let warps = (0..units.div_ceil(32)).map(|index| Warp::new(launch.kernel, index, units)).collect();
        Self { memories, warps }
    }

    /// Runs one block to its end.
    ///
    /// # Errors
    /// Says what a kernel may not do and did, and where.
    pub(crate) fn run(&mut self, position: [u32; 3]) -> Result<(), String> {
        let memories = &mut self.memories;
        memories.position = position;
        memories.barriers = 1;
        memories.shared.clear();
        memories.local.fill(POISON);
        self.warps.iter_mut().for_each(Warp::restart);
        loop {
            let mut waiting = 0;
            for warp in &mut self.warps {
                if warp.run(memories)? == State::AtBarrier {
                    waiting += 1;
                }
            }
            if waiting == 0 {
                return Ok(());
            }
            if waiting < self.warps.len() {
                let (name, all) = (&memories.launch.kernel.name, self.warps.len());
                return Err(format!("{name}: {waiting} of {all} warps wait at a barrier, the others have ended"));
            }
            memories.barriers += 1;
        }
    }
}

impl Memories<'_> {
    /// Reads what lies at an address of a space.
    pub(crate) fn load(&mut self, space: Space, address: u64, into: &mut [u8], by: Access) -> Result<(), String> {
        match self.place(space, address)? {
            (Space::Shared, at) => self.shared.load(at, into, by),
            (Space::Local, at) => {
                let start = self.local_start(at, into.len(), by)?;
                into.copy_from_slice(&self.local[start..start + into.len()]);
                Ok(())
            }
            (Space::Parameter, at) => {
                let parameters = &self.launch.parameters;
                let bytes = parameters.get(at..at + into.len());
                into.copy_from_slice(bytes.ok_or_else(|| format!("parameter byte {at} of {}", parameters.len()))?);
                Ok(())
            }
            _ => {
                let from = self.global(address, into.len())?;
                // SAFETY: within an allocation that lives while the launch does.
                unsafe { from.copy_to_nonoverlapping(into.as_mut_ptr(), into.len()) };
                Ok(())
            }
        }
    }

    /// Writes to an address of a space.
    pub(crate) fn store(&mut self, space: Space, address: u64, from: &[u8], by: Access) -> Result<(), String> {
        match self.place(space, address)? {
            (Space::Shared, at) => self.shared.store(at, from, by),
            (Space::Local, at) => {
                let start = self.local_start(at, from.len(), by)?;
                self.local[start..start + from.len()].copy_from_slice(from);
                Ok(())
            }
            (Space::Parameter, _) => Err("a parameter is written".to_string()),
            _ => {
                let into = self.global(address, from.len())?;
                // SAFETY: within an allocation that lives while the launch does. Blocks that write to one place are a bug
                // of the kernel, with bytes of the one or the other as its outcome.
                unsafe { into.copy_from_nonoverlapping(from.as_ptr(), from.len()) };
                Ok(())
            }
        }
    }

    /// Replaces what lies at an address by a function of it and of a value; returns what was there.
    pub(crate) fn update(
        &mut self,
        (space, address): (Space, u64),
        bytes: usize,
        then: Two,
        value: u64,
        by: Access,
    ) -> Result<u64, String> {
        let _one_at_a_time = ATOMICS.lock().unwrap_or_else(PoisonError::into_inner);
        let mut buffer = [0; 8];
        self.load(space, address, &mut buffer[..bytes], by)?;
        let old = u64::from_le_bytes(buffer);
        let new = then(&[old; 32], &[value; 32])[0];
        self.store(space, address, &new.to_le_bytes()[..bytes], by)?;
        Ok(old)
    }

    /// The space that an address is in, and where it is there.
    fn place(&self, space: Space, address: u64) -> Result<(Space, usize), String> {
        if space != Space::Generic {
            return Ok((space, address as usize));
        }
        let all = [Space::Global, Space::Shared, Space::Local, Space::Parameter];
        let found = all.into_iter().find(|&space| window(space) >> 60 == address >> 60);
        let space = found.ok_or_else(|| format!("address {address:#x} is in no space"))?;
        Ok((space, (address - window(space)) as usize))
    }

    fn local_start(&self, at: usize, bytes: usize, by: Access) -> Result<usize, String> {
        let each = self.launch.kernel.local_bytes;
        if at + bytes > each {
            return Err(format!("local address {at}, {bytes} bytes, is past the {each} bytes of a unit"));
        }
        Ok((usize::from(by.warp) * 32 + usize::from(by.lane)) * each + at)
    }

    fn global(&mut self, address: u64, bytes: usize) -> Result<*mut u8, String> {
        if !address.is_multiple_of(bytes.max(1) as u64) {
            return Err(format!("address {address:#x} isn't a multiple of the {bytes} bytes accessed"));
        }
        let (start, end) = self.recent;
        if address < start || address.saturating_add(bytes as u64) > end {
            let around = self.launch.allocations.around(address, bytes as u64);
            self.recent = around.ok_or_else(|| format!("address {address:#x}, {bytes} bytes, was never allocated"))?;
        }
        Ok(address as *mut u8)
    }
}
