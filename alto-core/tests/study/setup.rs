//! Tasks and recorded runs that the tests share.

use std::path::Path;

use alto_core::exit::replay::{Corpus, RecordedRun};
use alto_core::simulated::read_corpus;
use alto_core::simulated::systems::{Device, Setup, System};
use alto_core::simulated::workload::{TaskJob, TuningTask};

pub(crate) fn h100() -> Device {
    Device::named("H100 SXM").expect("a shipped device")
}

pub(crate) fn corpora() -> Vec<Corpus> {
    let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../testdata/curves/gsm-nano"));
    let names = ["answer-s0", "ask-s0", "cram-s0", "solve-s0"];
    names.map(|name| read_corpus(folder.join(format!("{name}.json"))).expect("a committed corpus")).into()
}

/// A run that goes down evenly.
pub(crate) fn run() -> RecordedRun {
    let run = r#"{"rank": 4, "alpha": 8, "lr": 0.001, "batch": 1, "steps": 1,
        "train_loss": [1], "eval_step": [0, 1], "val_loss": [2, 1]}"#;
    serde_json::from_str(run).expect("a recorded run")
}

pub(crate) fn task(jobs: Vec<TaskJob>) -> TuningTask {
    let (name, model) = ("small".to_owned(), "Llama-3.2-1B".to_owned());
    TuningTask { name, release: 0.0, model, devices: 1, row_tokens: 100, jobs }
}

pub(crate) fn job(rank: usize, batch: usize, samples: u64) -> TaskJob {
    TaskJob { rank, learning_rate: 1e-4, batch, samples }
}

pub(crate) fn setup(task: &TuningTask, system: System) -> Setup {
    task.setup(system, &h100()).expect("a shipped model")
}
