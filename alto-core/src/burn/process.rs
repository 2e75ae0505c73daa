//! What memory the process takes and the machine has, where the system tells: Linux alone.

use std::fs;

/// Bytes resident now, and at most since the last [`reset_peak`]; `None` where the system doesn't tell.
pub(super) fn resident() -> Option<(u64, u64)> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    Some((field(&status, "VmRSS")?, field(&status, "VmHWM")?))
}

/// Bytes that the machine has in all; `None` where the system doesn't tell.
pub(super) fn physical() -> Option<u64> {
    field(&fs::read_to_string("/proc/meminfo").ok()?, "MemTotal")
}

/// The bytes in the line of this name.
fn field(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024)
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
    fn the_machine_has_more_than_the_process_takes() {
        let (resident, _) = resident().unwrap();
        let physical = physical().unwrap();
        assert!(physical > resident, "{physical} bytes in the machine, {resident} in use");
        assert_eq!(field("MemTotal:        1024 kB\nMemFree: 1 kB\n", "MemTotal"), Some(1 << 20));
        assert_eq!(field("MemTotals: 1024 kB\n", "MemTotal"), None);
    }

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
