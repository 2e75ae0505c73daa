//! What is refused on the command line, and how it is said.

use std::path::PathBuf;

use clap::Parser;

use super::{Args, replay};

const RUN: &str = r#"{"rank": 2, "alpha": 4, "lr": 0.1, "batch": 1, "steps": 3,
    "train_loss": [4, 2, 3], "eval_step": [0, 1, 3], "val_loss": [5, 3, 1]}"#;

/// A folder with these files, and what `replay` says to the arguments, in which `@` is that folder.
fn says(files: &[(&str, &str)], arguments: &[&str]) -> Result<String, String> {
    let folder = tempfile::tempdir().unwrap();
    let sweep = folder.path().join("sweep");
    std::fs::create_dir(&sweep).unwrap();
    for (name, text) in files {
        std::fs::write(sweep.join(name), text).unwrap();
    }
    let at = sweep.to_str().unwrap();
    let arguments = arguments.iter().map(|argument| argument.replace('@', at));
    let args = Args::try_parse_from(["replay".to_owned()].into_iter().chain(arguments)).unwrap();
    // The folder's name is another each time.
    replay(&args).map_err(|error| error.replace(at, "@"))
}

fn refused(files: &[(&str, &str)], arguments: &[&str]) -> String {
    says(files, arguments).unwrap_err()
}

#[test]
fn recorded_runs_that_cannot_be_replayed_are_named() {
    let refused = |text: &str| refused(&[("a.json", text)], &["@/a.json"]);
    assert_eq!(
        refused(&RUN.replace("[0, 1, 3]", "[0, 3, 1]")),
        "@/a.json: evaluation 2 of the recorded run is at step 1, expected one behind 3"
    );
    let corpus = |runs: &str| format!(r#"{{"version": 1, "task": "t", "runs": [{runs}]}}"#);
    let unordered = RUN.replace("[0, 1, 3]", "[0, 1, 1]");
    assert_eq!(
        refused(&corpus(&format!("{RUN}, {unordered}"))),
        "@/a.json: run 1 (#1) can't be replayed: evaluation 2 of the recorded run is at step 1, expected one behind 1"
    );
    assert_eq!(refused(&corpus("")), "@/a.json: the corpus of task t has no runs, expected at least one");
    assert!(
        refused(&corpus(RUN).replace("task", "tsk"))
            .starts_with("@/a.json: not a corpus of recorded runs: unknown field `tsk`")
    );
    assert!(refused(&RUN.replace("rank", "rnk")).starts_with("@/a.json: not a recorded run: unknown field `rnk`"));
    assert_eq!(refused(" \n"), "@/a.json: empty, expected recorded runs in JSON");
    assert!(refused("[1, 2").starts_with("@/a.json: not recorded runs: EOF while parsing"));
    assert!(refused("[]").starts_with("@/a.json: not a recorded run: "));
}

#[test]
fn files_that_are_none_are_named() {
    assert!(refused(&[], &["@/b.json"]).starts_with("@/b.json: can't be read: "));
    assert!(refused(&[], &["@"]).starts_with("@: can't be read: "));
    let run = ("a.json", RUN);
    assert!(refused(&[run], &["@/a.json", "--policy", "@/p.json"]).starts_with("@/p.json: can't be read: "));
    assert_eq!(refused(&[run], &["@/a.json", "@/a.json"]), "@/a.json: runs 0 and 1 are both named a");
    assert_eq!(refused(&[run], &["@/a.json", "--slots", "0"]), "slots of the replay is 0, expected at least 1");
}

#[test]
fn policies_that_cannot_be_replayed_are_named() {
    let refused = |policy: &str| {
        let text = format!(r#"{{"version": 1, "policy": {policy}}}"#);
        refused(&[("a.json", RUN), ("p.json", &text)], &["@/a.json", "--policy", "@/p.json"])
    };
    let unknown = refused(r#"{"underperforming": {"marks": 0.1}}"#);
    assert!(unknown.starts_with("@/p.json: not a policy: underperforming: unknown field `marks`"), "{unknown}");
    let rung = refused(r#"{"underperforming": {"mark": 1.5}}"#);
    assert!(
        rung.starts_with("@/p.json: not a policy: underperforming: mark is 1.5, but must be over 0 and under 1"),
        "{rung}"
    );
    let patience = refused(r#"{"any_of": [{"overfitting": {"patience": 0}}]}"#);
    assert!(
        patience.starts_with("@/p.json: not a policy: overfitting: patience is 0, but must be at least 1"),
        "{patience}"
    );
    assert!(refused(r#""sometimes""#).starts_with("@/p.json: not a policy: unknown variant `sometimes`"));
}

#[test]
fn single_runs_of_one_folder_are_one_task() {
    let policy = ("p.json", r#"{"version": 1, "policy": {"underperforming": {"mark": 0.3, "keep": 0.5}}}"#);
    let files = [("a.json", RUN), ("b.json", RUN), policy];
    let said = says(&files, &["@/a.json", "@/b.json", "--policy", "@/p.json", "--slots", "1"]).unwrap();
    assert!(said.starts_with("p, 1 slots\n"), "{said}");
    // One of two is ended after one of three steps.
    assert!(said.lines().last().is_some_and(|line| line.starts_with("together     2  33.3%")), "{said}");
    let json = says(&files, &["@/a.json", "@/b.json", "--policy", "@/p.json", "--json"]).unwrap();
    let reports: Vec<alto_exit::replay::PolicyReport> = serde_json::from_str(&json).unwrap();
    assert_eq!((reports[0].tasks.len(), reports[0].tasks[0].jobs), (1, 2));
    assert!(says(&files, &["@/a.json", "@/b.json"]).unwrap().contains("loss aware, rising"));
    assert_eq!(says(&files, &["@/a.json", "@/b.json", "--sweep"]).unwrap().lines().count(), 1 + 9 * 3);
}

#[test]
fn corpora_of_the_repository_are_replayed() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../testdata/curves");
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let is_json = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "json");
    let files: Vec<String> = files.filter(is_json).map(|path| path.to_str().unwrap().to_owned()).collect();
    let said = says(&[], &files.iter().map(String::as_str).collect::<Vec<_>>()).unwrap();
    assert!(said.contains("\ncurves      12  76.6%"), "{said}");
}
