//! What memory a device takes.

use burn::tensor::Device;

use super::process;

/// Bytes in use, and the most since last asked.
///
/// A device with a memory of its own tells what its pools hold: what is in use, and what they have taken for it, which
/// they keep for reuse and nobody else can have. After that they give back what isn't in use, so that the next peak is of
/// what comes then. A device that computes in the process's memory takes what the process takes; `own` stands in for
/// that where the system doesn't tell.
pub(super) fn in_use_and_peak(device: &Device, own: u64) -> (u64, u64) {
    if let Some(pools) = device.memory_pool_usage() {
        device.memory_cleanup();
        let in_use = pools.bytes_in_use + pools.bytes_padding;
        return (in_use, pools.bytes_reserved.max(in_use));
    }
    let (in_use, peak) = process::resident().unwrap_or((own, own));
    process::reset_peak();
    (in_use, peak)
}
