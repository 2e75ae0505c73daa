//! The example `fleet` as people run it: real searches on two devices, and what it refuses before any of them.
// The lint's exemption for tests leaves out the functions that they share.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use alto_core::fleet::{Event, EventKind, Report};

/// Five tasks with a few steps each: two at the start, one that loses its device, one that comes later and one that
/// takes both devices. Of `rates`, all but one job exit.
const FIVE: &str = r#"
version = 1
devices = 2

[[task]]
name = "rates"
policy = "policy.json"
grid = { version = 1, learning_rate = [1e-6, 1e-5, 1e-4, 1e-2], rank = [2], batch = [1], steps = 8 }

[[task]]
name = "ranks"
grid = { version = 1, learning_rate = [4e-3], rank = [1, 2, 4], batch = [1], steps = 4 }

[[task]]
name = "unlucky"
lost_after = 1
grid = { version = 1, learning_rate = [1e-3], rank = [2], batch = [1], steps = 4 }

[[task]]
name = "later"
after = 0.2
grid = { version = 1, learning_rate = [1e-3], rank = [2], batch = [1, 2], samples = 4 }

[[task]]
name = "wide"
after = 0.1
devices = 2
grid = { version = 1, learning_rate = [1e-3], rank = [2], batch = [1], steps = 2 }
"#;

/// At a quarter of their budget, the best of all jobs stays.
const POLICY: &str = r#"{"version": 1, "policy": {"underperforming": {"mark": 0.25, "keep": 0.25}}}"#;

fn fleet(dir: &Path, arguments: &[&str]) -> Output {
    // The test is in `deps`, beside `examples`.
    let test = std::env::current_exe().unwrap();
    let name = format!("fleet{}", std::env::consts::EXE_SUFFIX);
    let fleet = test.ancestors().nth(2).unwrap().join("examples").join(name);
    assert!(fleet.exists(), "{} is missing, run `cargo test --workspace`", fleet.display());
    Command::new(fleet).current_dir(dir).args(arguments).output().unwrap()
}

/// A directory with this fleet, four rows to train on and two to validate on.
fn desk(tasks: &str) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata/quickstart/data/train.jsonl");
    let data = fs::read_to_string(data).unwrap();
    let rows = |count| data.lines().take(count).map(|line| format!("{line}\n")).collect::<String>();
    fs::write(dir.path().join("train.jsonl"), rows(4)).unwrap();
    fs::write(dir.path().join("val.jsonl"), rows(2)).unwrap();
    fs::write(dir.path().join("policy.json"), POLICY).unwrap();
    let tasks = tasks.replace("[[task]]\n", "[[task]]\ntrain = \"train.jsonl\"\nval = \"val.jsonl\"\n");
    fs::write(dir.path().join("fleet.toml"), tasks).unwrap();
    dir
}

#[test]
fn five_searches_run_to_their_ends_on_two_devices_and_the_log_replays() {
    let dir = desk(FIVE);
    let output = fleet(dir.path(), &["fleet.toml", "--out", "out", "--profiles", "profiles.json"]);
    let (stdout, stderr) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
    // 0 says, too, that the replay made the same decisions.
    assert_eq!(output.status.code(), Some(0), "{stdout}{stderr}");
    assert!(stderr.contains("Replayed: the same"), "{stderr}");
    assert!(stdout.contains("Simulated, the last ends after"), "{stdout}");

    let out = dir.path().join("out");
    let report: Report = serde_json::from_slice(&fs::read(out.join("report.json")).unwrap()).unwrap();
    let names: Vec<_> = report.tasks.iter().map(|task| task.name.as_str()).collect();
    assert_eq!(names, ["rates", "ranks", "unlucky", "wide", "later"]);
    assert_eq!((report.totals.finished, report.totals.failed, report.totals.refused), (4, 1, 0));
    assert!(report.tasks[2].failure.as_ref().is_some_and(|why| why.contains("it is lost")));
    assert_eq!(report.tasks[3].devices, [0, 1]);
    assert!(report.totals.profile_seconds > 0.0);
    for name in ["rates", "ranks", "later", "wide"] {
        assert!(out.join(name).join("adapter_model.safetensors").exists(), "{name}");
    }
    let rates: alto_core::trainer::Report =
        serde_json::from_slice(&fs::read(out.join("rates/report.json")).unwrap()).unwrap();
    assert_eq!(rates.jobs.iter().filter(|job| job.steps < 8).count(), 3, "jobs that exit");
    // What the lost device's task had trained until then.
    assert!(out.join("unlucky/report.json").exists());

    let log = fs::read_to_string(out.join("events.jsonl")).unwrap();
    let log: Vec<Event> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let running =
        |task: usize| log.iter().any(|event| matches!(event.kind, EventKind::Ended { task: ended } if ended == task));
    assert!([0, 1, 3, 4].into_iter().all(running));
    assert!(log.iter().any(|event| matches!(event.kind, EventKind::Failed { task: 2, .. })));

    // Another run finds the profiles and measures nothing.
    let again = fleet(dir.path(), &["fleet.toml", "--out", "again", "--profiles", "profiles.json"]);
    assert_eq!(again.status.code(), Some(0));
    let report: Report = serde_json::from_slice(&fs::read(dir.path().join("again/report.json")).unwrap()).unwrap();
    assert_eq!(report.totals.profile_seconds, 0.0);
}

#[test]
fn a_dry_run_shows_the_plan_and_runs_nothing() {
    let dir = desk(FIVE);
    let output = fleet(dir.path(), &["fleet.toml", "--dry-run", "--out", "out"]);
    let stdout = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0), "{stdout}");
    assert!(stdout.contains("wide") && stdout.contains("The last task ends after"), "{stdout}");
    assert!(!dir.path().join("out").exists());
}

#[test]
fn what_is_wrong_with_a_fleet_is_said_before_anything_runs() {
    let later = "name = \"later\"";
    for (from, to, expected) in [
        ("version = 1\ndevices", "version = 2\ndevices", "version is 2, expected 1"),
        ("devices = 2\n\n", "devices = 0\n\n", "devices is 0, expected 1 to 256"),
        ("after = 0.1\ndevices = 2", "after = 0.1\ndevices = 3", "task wide takes 3 devices, expected 1 to 2"),
        (later, "name = \"wide\"", "two tasks are called wide"),
        (later, "name = \"../later\"", "task \"../later\" can't name a directory"),
        (later, "name = \"report.json\"", "a task can't be called report.json"),
        ("after = 0.2", "after = -1.0", "task later comes after -1 s, expected"),
        ("after = 0.2", "slots = 0", "task later has 0 slots, expected at least 1"),
        ("after = 0.2", "interval = 2.0", "task later has an interval of 2, expected over 0 and at most 1"),
        (later, "name = \"la\\u0000ter\"", "can't be made"),
        ("after = 0.2", "aftr = 0.2", "unknown field `aftr`"),
        ("after = 0.2", "model = \"nowhere\"", "task later: "),
        ("rank = [1, 2, 4]", "rank = [0]", "task ranks: "),
        ("policy = \"policy.json\"", "policy = \"none.json\"", "task rates: can't read none.json"),
    ] {
        assert!(FIVE.contains(from), "{from}");
        let dir = desk(&FIVE.replace(from, to));
        let output = fleet(dir.path(), &["fleet.toml", "--out", "out"]);
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{to}: {stderr}");
        assert!(
            stderr.lines().last().is_some_and(|line| line.starts_with("error: ") && line.contains(expected)),
            "{stderr}"
        );
        assert!(!dir.path().join("out").exists());
    }
    let dir = desk(FIVE);
    let output = fleet(dir.path(), &["none.toml"]);
    assert!(String::from_utf8(output.stderr).unwrap().starts_with("error: can't read none.toml"));
}
