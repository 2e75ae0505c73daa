//! Arguments that don't fit together, or are out of range.

use crate::desk::Desk;

#[test]
fn settings_out_of_range_are_refused() {
    let desk = Desk::new();
    desk.refuses(&[("--slots", "0")], &["slots is 0, but must be at least 1"]);
    desk.refuses(&[("--interval", "NaN")], &["interval is NaN, but must be over 0 and at most 1"]);
    desk.refuses(&[("--audit", "1.5")], &["audit is 1.5, but must be from 0 to 1"]);
    desk.refuses(&[("--memory", "0.001")], &["never fits", "the budget is 1073741"]);
}

#[test]
fn arguments_that_are_missing_or_wrong_are_named() {
    let desk = Desk::new();
    let before = desk.listing();
    for (arguments, expected) in [
        (&["--model", "model"][..], &["--train <FILE>", "--val <FILE>", "--out <DIR>"][..]),
        (&["--train", "train.jsonl"], &["--val <FILE>"]),
        (&["--val", "val.jsonl"], &["--train <FILE>"]),
        (&["--threads", "0"], &["--threads <N>", "0 is not in 1..=256"]),
        (&["--memory", "none"], &["--memory <GIB>", "expected a finite positive number of GiB"]),
        (&["--device", "gpu"], &["--device <DEVICE>", "expected flex, cpu, wgpu, cuda or cuda:N"]),
        (&["--dtype", "fp8"], &["--dtype <DTYPE>", "fp8 is no dtype, expected f32, f16 or bf16"]),
        (&["--modle", "model"], &["--modle"]),
    ] {
        let output = desk.command().args(arguments).output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{stderr}");
        for part in expected {
            assert!(stderr.contains(part), "no {part:?} in:\n{stderr}");
        }
    }
    assert_eq!(desk.listing(), before);
}

#[test]
fn a_dtype_that_the_device_lacks_is_refused() {
    let desk = Desk::new();
    desk.refuses(&[("--dtype", "bf16")], &["Flex(Cpu) can't compute in bf16, only in f32"]);
}

#[cfg(not(feature = "cuda"))]
#[test]
fn a_device_that_was_not_built_in_is_refused() {
    let desk = Desk::new();
    desk.refuses(&[("--device", "cuda:1")], &["built without the device cuda", "--features cuda"]);
}
