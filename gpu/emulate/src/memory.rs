//! Device memory: what was allocated, and where a kernel may therefore read and write.
//!
//! A device address is an address of this process.

use std::alloc::{Layout, alloc, alloc_zeroed, dealloc};
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// As a driver aligns.
const ALIGNMENT: usize = 512;
/// A NaN in every float type.
pub(crate) const POISON: u8 = 0xff;

/// First address of every live allocation, to its bytes.
static ALLOCATIONS: Mutex<BTreeMap<u64, usize>> = Mutex::new(BTreeMap::new());

fn layout(bytes: usize) -> Option<Layout> {
    Layout::from_size_align(bytes.max(1), ALIGNMENT).ok()
}

/// The address of so many bytes, unless there are too many; of NaN, if anybody is to read them.
pub(crate) fn allocate(bytes: usize, read: bool) -> Option<u64> {
    let layout = layout(bytes)?;
    // SAFETY: the layout isn't empty; what it gives is filled whole. Zeros take no memory until they are written.
    let address = unsafe {
        let start = if read { alloc(layout) } else { alloc_zeroed(layout) };
        if start.is_null() {
            return None;
        }
        if read {
            start.write_bytes(POISON, layout.size());
        }
        start as u64
    };
    ALLOCATIONS.lock().unwrap_or_else(PoisonError::into_inner).insert(address, bytes);
    Some(address)
}

/// Gives an allocation back; false if there is none at this address.
pub(crate) fn free(address: u64) -> bool {
    let Some(bytes) = ALLOCATIONS.lock().unwrap_or_else(PoisonError::into_inner).remove(&address) else {
        return false;
    };
    if let Some(layout) = layout(bytes) {
        // SAFETY: it was allocated with this layout, and taking it off the list was our right to free it.
        unsafe { dealloc(address as *mut u8, layout) };
    }
    true
}

/// The allocations at the time of a launch.
#[derive(Clone)]
pub(crate) struct Allocations(Vec<(u64, u64)>);

impl Allocations {
    pub(crate) fn now() -> Self {
        let live = ALLOCATIONS.lock().unwrap_or_else(PoisonError::into_inner);
        Self(live.iter().map(|(&start, &bytes)| (start, start + bytes as u64)).collect())
    }

    /// The allocation that holds these bytes, as its first address and the one past its last.
    pub(crate) fn around(&self, address: u64, bytes: u64) -> Option<(u64, u64)> {
        let next = self.0.partition_point(|&(start, _)| start <= address);
        let (start, end) = *self.0.get(next.checked_sub(1)?)?;
        (address.checked_add(bytes)? <= end).then_some((start, end))
    }
}
