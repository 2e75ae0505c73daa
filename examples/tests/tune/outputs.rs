//! Places that can't be written to.

use std::fs;

use crate::desk::Desk;

#[test]
fn an_output_that_exists_is_refused_and_stays_as_it_is() {
    let desk = Desk::new();
    fs::create_dir(desk.path("out")).unwrap();
    desk.write("report.json", "mine");
    desk.refuses(&[], &["out exists, and nothing is overwritten"]);
    desk.refuses(&[("--out", "train.jsonl")], &["train.jsonl exists, and nothing is overwritten"]);
    desk.refuses(&[("--out", "new"), ("--report", "report.json")], &["report.json exists, and nothing is overwritten"]);
}

#[test]
fn an_output_that_could_not_be_made_is_refused() {
    let desk = Desk::new();
    let long = format!("runs/{}", "x".repeat(300));
    for (path, expected) in [
        ("train.jsonl/out", "train.jsonl/out can't be made in train.jsonl"),
        ("train.jsonl/a/b", "train.jsonl/a/b can't be made in train.jsonl"),
        (&*long, "can't be made in ."),
        ("runs/..", "\"runs/..\" has no name at its end"),
        (".", ". exists"),
    ] {
        desk.refuses(&[("--out", path)], &[expected]);
        desk.refuses(&[("--report", path)], &[expected]);
    }
    desk.refuses(&[("--report", "runs/")], &["runs/ names a directory, expected a file"]);
    let nested = [("--out", "runs/out"), ("--report", "runs")];
    desk.refuses(&nested, &["runs can't be a file, since runs/out is a directory"]);
}

#[cfg(target_os = "linux")]
#[test]
fn a_directory_that_nobody_can_write_to_is_refused() {
    // Not even root can make anything there.
    let desk = Desk::new();
    desk.refuses(&[("--out", "/proc/runs/out")], &["/proc/runs/out can't be made in /proc"]);
    desk.refuses(&[("--report", "/proc/r.json")], &["/proc/r.json can't be made in /proc"]);
}

#[test]
fn a_report_in_place_of_the_adapters_own_files_is_refused() {
    let desk = Desk::new();
    for name in ["out/adapter_config.json", "out/adapter_model.safetensors", "out/adapter_config.json/report"] {
        desk.refuses(&[("--report", name)], &[name, "is a file of the adapter's, name another for the report"]);
    }
    desk.refuses(&[("--report", "x/../report.json")], &["goes up from a directory that doesn't exist"]);
}
