//! What memory the process takes, where the system tells: Linux alone.

use std::fs;

/// Bytes resident now, and at most since the last [`reset_peak`]; `None` where the system doesn't tell.
pub(super) fn resident() -> Option<(u64, u64)> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let field = |name: &str| -> Option<u64> {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        let kibibytes: u64 = line.trim_start_matches(':').trim().strip_suffix("kB")?.trim().parse().ok()?;
        Some(kibibytes * 1024)
    };
    Some((field("VmRSS")?, field("VmHWM")?))
}

/// Starts the peak anew from what is resident now; without effect where the system has no such thing.
pub(super) fn reset_peak() {
    // The file takes the command 5 for this, see proc(5). A system that refuses keeps the old peak, which errs to the safe side.
    let _ = fs::write("/proc/self/clear_refs", "5");
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_large_allocation_raises_the_peak() {
        reset_peak();
        let (before, _) = resident().unwrap();
        let held = std::hint::black_box(vec![1u8; 64 << 20]);
        drop(held);
        let (_, peak) = resident().unwrap();
        assert!(peak >= before + (60 << 20), "{before} bytes before, {peak} at the peak");
    }
}
