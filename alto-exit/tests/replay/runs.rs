//! Runs made by hand.

use std::path::Path;

use alto_exit::replay::{CORPUS_VERSION, Corpus, RecordedRun};
use serde::de::DeserializeOwned;

/// A run of batch size 1 whose training loss is 1 and that was evaluated after these steps.
pub(crate) fn run(steps: u64, validation: &[(u64, f64)]) -> RecordedRun {
    RecordedRun {
        name: None,
        seed: None,
        rank: 4,
        alpha: 8.0,
        lr: 1e-3,
        batch: 1,
        steps,
        train_loss: vec![1.0; steps as usize],
        grad_norm: vec![],
        lr_at: vec![],
        eval_step: validation.iter().map(|point| point.0).collect(),
        val_loss: validation.iter().map(|point| point.1).collect(),
        seconds: 0.0,
    }
}

/// What an error says, and what it says of its source.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    error.source().map_or(error.to_string(), |source| format!("{error}: {}", chain(source)))
}

/// Its runs under one name.
pub(crate) fn corpus(runs: Vec<RecordedRun>) -> Corpus {
    Corpus { version: CORPUS_VERSION, task: "made by hand".to_owned(), model: None, runs }
}

/// The runs recorded one by one in `testdata`, in order of their files' names.
pub(crate) fn recorded() -> Vec<RecordedRun> {
    read("")
}

/// The sweeps recorded on the quick start's model, likewise.
pub(crate) fn sweeps() -> Vec<Corpus> {
    read("gsm-nano")
}

fn read<T: DeserializeOwned>(folder: &str) -> Vec<T> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata/curves").join(folder);
    let mut files: Vec<_> =
        std::fs::read_dir(folder).expect("testdata").map(|entry| entry.expect("a file").path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
    files.sort();
    let read = |path: &std::path::PathBuf| {
        let text = std::fs::read_to_string(path).expect("a readable file");
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    };
    files.iter().map(read).collect()
}
