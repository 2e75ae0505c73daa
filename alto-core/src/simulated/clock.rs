//! A simulated device's time.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Tells the virtual time that a simulated device has taken; copies tell the same time.
#[derive(Debug, Clone, Default)]
pub struct Clock {
    /// Seconds, as the bits of an `f64`.
    bits: Arc<AtomicU64>,
}

impl Clock {
    /// Seconds since the device was made.
    pub fn seconds(&self) -> f64 {
        f64::from_bits(self.bits.load(Ordering::Relaxed))
    }

    /// Only the device does this, one step at a time.
    pub(super) fn advance(&self, seconds: f64) {
        self.bits.store((self.seconds() + seconds).to_bits(), Ordering::Relaxed);
    }
}
