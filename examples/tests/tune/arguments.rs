//! Arguments that don't fit together, or are out of range.

use crate::desk::Desk;

#[test]
fn settings_out_of_range_are_refused() {
    let desk = Desk::new();
    desk.refuses(&[("--slots", "0")], &["slots is 0, but must be at least 1"]);
    desk.refuses(&[("--interval", "NaN")], &["interval is NaN, but must be over 0 and at most 1"]);
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
