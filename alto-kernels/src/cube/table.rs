//! Run-time numbers of a launch, laid out once and sent to a device once.

use std::fmt;
use std::sync::{Mutex, PoisonError};

use burn_cubecl::CubeDevice;
use burn_cubecl::tensor::CubeTensor;
use cubecl::prelude::{BufferArg, CubeElement};
use cubecl::server::Handle;

/// The tables that a batch's lanes or rows have on each device, by what they are for.
#[derive(Debug, Default)]
pub(crate) struct Tables(Mutex<Vec<(Key, Table)>>);

#[derive(Debug, PartialEq)]
struct Key {
    device: CubeDevice,
    kind: &'static str,
    tile: usize,
}

impl Tables {
    /// The table of this kind and tile, built and sent if the device doesn't have it yet.
    pub(super) fn get(
        &self,
        like: &CubeTensor,
        kind: &'static str,
        tile: usize,
        build: impl FnOnce() -> Vec<u32>,
        words_per_entry: usize,
    ) -> Table {
        let key = Key { device: like.device.clone(), kind, tile };
        let mut tables = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, table)) = tables.iter().find(|(known, _)| *known == key) {
            return table.clone();
        }
        let table = Table::new(like, &build(), words_per_entry);
        tables.push((key, table.clone()));
        table
    }
}

/// Whole numbers on a device, some words for each entry.
#[derive(Clone)]
pub(super) struct Table {
    handle: Handle,
    words: usize,
    entries: usize,
}

impl Table {
    /// Sends a table to the device of a tensor.
    pub(super) fn new(like: &CubeTensor, words: &[u32], words_per_entry: usize) -> Self {
        debug_assert!(words.len().is_multiple_of(words_per_entry));
        let entries = words.len() / words_per_entry;
        // A buffer can't be empty.
        let words = if words.is_empty() { &[0][..] } else { words };
        let handle = like.client.create_from_slice(u32::as_bytes(words));
        Self { handle, words: words.len(), entries }
    }

    /// Its entries, commonly as many as a launch has tiles.
    pub(super) fn entries(&self) -> usize {
        self.entries
    }

    /// As an argument `&[u32]` of a launch.
    pub(super) fn arg(&self) -> BufferArg {
        // SAFETY: the buffer was made from as many words.
        unsafe { BufferArg::from_raw_parts(self.handle.clone(), self.words) }
    }
}

impl fmt::Debug for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Table").field("entries", &self.entries).finish_non_exhaustive()
    }
}
