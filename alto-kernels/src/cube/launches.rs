//! Counting what is launched.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use cubecl::logging::{LaunchObservation, LaunchObserver};

#[derive(Debug, Default)]
struct Counts(Mutex<BTreeMap<&'static str, u64>>);

impl LaunchObserver for Counts {
    fn launched(&self, kernel: &'static str) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner).entry(kernel).or_default() += 1;
    }
}

/// How often each kernel is launched on CubeCL's devices while `work` runs, by the kernel's name.
///
/// Kernels of others count too, Burn's own and those of other threads: it is the whole process that is watched. Only one
/// count runs at a time; what is launched in an inner one is missing in the outer.
pub fn launches<T>(work: impl FnOnce() -> T) -> (T, BTreeMap<&'static str, u64>) {
    let counts = Arc::new(Counts::default());
    let observation = LaunchObservation::new(counts.clone());
    let result = work();
    drop(observation);
    let counts = std::mem::take(&mut *counts.0.lock().unwrap_or_else(PoisonError::into_inner));
    (result, counts)
}
