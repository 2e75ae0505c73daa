//! What a run leaves behind.

use std::process::Stdio;

use alto_core::peft;
use alto_core::trainer::Report;

use crate::desk::Desk;

#[test]
fn a_run_leaves_a_trained_adapter_and_a_report() {
    let desk = Desk::new();
    let output = desk.run(&[]);
    let stdout = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    for part in ["r2-lr0.001-b1", "r2-lr0.002-b1", "finished", "100.0%", "untrained", "Adapter: out is r2-lr0.002-b1"] {
        assert!(stdout.contains(part), "no {part:?} in:\n{stdout}");
    }
    let adapter = peft::import(&desk.path("out")).unwrap();
    assert_eq!((adapter.config.rank, adapter.modules.len()), (2, 4 * 7));
    assert!(!adapter.is_identity());
    let report: Report = serde_json::from_slice(&std::fs::read(desk.path("out/report.json")).unwrap()).unwrap();
    assert_eq!((report.jobs.len(), report.winner), (2, Some(1)));
    assert_eq!(report.warnings, Vec::<String>::new());
    // The next one finds it there.
    desk.refuses(&[], &["out exists, and nothing is overwritten"]);
}

#[test]
fn a_report_can_go_elsewhere() {
    let desk = Desk::new();
    assert!(desk.run(&[("--out", "runs/first/adapter"), ("--report", "runs/first.json")]).status.success());
    assert!(
        desk.path("runs/first.json").is_file() && desk.path("runs/first/adapter/adapter_model.safetensors").is_file()
    );
    assert!(!desk.path("runs/first/adapter/report.json").exists());
}

#[test]
fn completions_that_are_cut_off_are_counted_and_reported() {
    let desk = Desk::new();
    let row =
        |completion: &str| format!("{{\"prompt\": \"Question: a\\nAnswer:\", \"completion\": \"{completion}\"}}\n");
    desk.write("train.jsonl", &[row(" 2"), row(&" and 2".repeat(300)), row(" 3")].concat());
    let output = desk.run(&[]);
    assert!(output.status.success());
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(stderr.contains("train.jsonl: 3 rows, 1 of them cut off by the context"), "{stderr}");
    let warning = "1 of 3 completions of the training set are cut off by the context length";
    assert!(String::from_utf8(output.stdout).unwrap().contains(warning));
    let report: Report = serde_json::from_slice(&std::fs::read(desk.path("out/report.json")).unwrap()).unwrap();
    assert_eq!(report.warnings, [warning]);
}

#[test]
fn a_run_in_which_nothing_trains_leaves_its_report_and_says_so() {
    let desk = Desk::new();
    // After one such step no loss is finite.
    desk.replace("grid.toml", "[1e-3, 2e-3]", "[1e30]");
    let output = desk.run(&[]);
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(
        stderr.contains("error: no job has trained and has a finite loss: there is no adapter to save"),
        "{stderr}"
    );
    assert!(desk.path("out/report.json").is_file());
    assert!(!desk.path("out/adapter_config.json").exists());
}

#[test]
fn a_winner_that_is_worse_than_no_adapter_is_saved_and_called_a_failure() {
    let desk = Desk::new();
    desk.replace("grid.toml", "[1e-3, 2e-3]", "[1.0]");
    desk.replace("grid.toml", "steps = 1", "steps = 6");
    let output = desk.run(&[]);
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(stderr.contains("no job learned anything"), "{stderr}");
    assert!(desk.path("out/adapter_model.safetensors").is_file() && desk.path("out/report.json").is_file());
}

#[test]
fn nobody_who_reads_is_no_reason_to_lose_a_run() {
    let desk = Desk::new();
    let arguments = ["--model", "model", "--train", "train.jsonl", "--val", "val.jsonl", "--out", "out"];
    let mut command = desk.command();
    command.args(arguments).args(["--grid", "grid.toml"]).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut run = command.spawn().unwrap();
    drop((run.stdout.take(), run.stderr.take()));
    assert_eq!(run.wait().unwrap().code(), Some(0));
    assert!(desk.path("out/adapter_model.safetensors").is_file() && desk.path("out/report.json").is_file());
}
