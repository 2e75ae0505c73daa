//! States that are known to lead nowhere.

use crate::cluster::problem::Time;
use crate::cluster::random::mix;

/// A state's fingerprint: two states that differ have the same one with a chance of about 2^-100, too small to be met
/// in any run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Key {
    low: u64,
    high: u64,
}

impl Key {
    /// Adds a part of the state; the order of parts doesn't matter.
    pub(super) fn add(&mut self, kind: u64, a: u64, b: u64) {
        let part = mix(a ^ mix(b ^ mix(kind.wrapping_mul(0x9e37_79b9_7f4a_7c15))));
        self.low = self.low.wrapping_add(part);
        self.high = self.high.wrapping_add(mix(part ^ 0x5851_f42d_4c95_7f2d));
    }
}

/// Binary logarithms of how many states are remembered: at first, and at most (24 MiB).
const SMALL: u32 = 12;
const LARGE: u32 = 20;

/// A table of states; a new one takes the place of an old one.
#[derive(Debug)]
pub(super) struct Memory {
    /// A key and a time, as plain numbers: zeros of these cost nothing until they are written.
    table: Vec<[u64; 3]>,
}

impl Memory {
    pub(super) fn new() -> Memory {
        Memory { table: vec![[0; 3]; 1 << SMALL] }
    }

    /// Makes room for a search of so many steps; what was known is forgotten when the table grows.
    pub(super) fn reserve(&mut self, steps: u64) {
        let wanted = steps.clamp(1, 1 << LARGE).next_power_of_two() as usize;
        if wanted > self.table.len() {
            self.table = vec![[0; 3]; wanted];
        }
    }

    /// Whether a state like this is known to lead nowhere at this time or earlier, and so from here.
    pub(super) fn fails(&self, key: Key, now: Time) -> bool {
        let [low, high, time] = self.table[self.place(key)];
        Key { low, high } == key && time <= now
    }

    pub(super) fn failed(&mut self, key: Key, now: Time) {
        let place = self.place(key);
        self.table[place] = [key.low, key.high, now];
    }

    /// What failed for one target may succeed for a later one.
    pub(super) fn clear(&mut self) {
        self.table = vec![[0; 3]; self.table.len()];
    }

    fn place(&self, key: Key) -> usize {
        key.high as usize & (self.table.len() - 1)
    }
}
