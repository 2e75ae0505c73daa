//! The recorded runs, and jobs that replay them.

use std::path::PathBuf;

use alto_core::batch::Example;
use alto_core::job::{AccumulationMode, AdamW, AdapterConfig, Decay, Job, Schedule};
use alto_core::simulated::{CostModel, RecordedRun, SimulatedBackend, read_run};

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../testdata/curves")
}

/// Every recorded run by its file's name, in order.
pub(crate) fn runs() -> Vec<(String, RecordedRun)> {
    let files = std::fs::read_dir(folder()).expect("the recorded curves are part of the repository");
    let mut runs: Vec<_> = files
        .map(|file| file.expect("a readable folder").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "json"))
        .map(|path| {
            let name = path.file_stem().expect("a file name").to_string_lossy().into_owned();
            (name, read_run(&path).expect("a recorded run"))
        })
        .collect();
    runs.sort_by(|a, b| a.0.cmp(&b.0));
    assert_eq!(runs.len(), 12);
    runs
}

/// A job that replays this run step by step.
pub(crate) fn job(name: &str, run: &RecordedRun) -> Job {
    let targets = ["q_proj", "v_proj"].map(str::to_owned).into();
    Job {
        name: name.to_owned(),
        adapter: AdapterConfig { rank: run.rank, alpha: run.alpha, rank_stabilized: false, targets },
        optimizer: AdamW::new(run.lr),
        schedule: Schedule { decay: Decay::Linear, warmup_steps: 1 },
        batch: run.batch,
        accumulation: 1,
        accumulation_mode: AccumulationMode::TokenMean,
        steps: run.steps,
        seed: 7,
    }
}

/// Rows of different lengths, of which the first tokens don't count.
pub(crate) fn examples() -> Vec<Example> {
    let example = |length: u32| Example {
        tokens: (0..length).collect(),
        targets: (1..=length).map(|token| (token > length / 2).then_some(token)).collect(),
    };
    (3..8).map(example).collect()
}

/// A device with room for everything.
pub(crate) fn backend() -> SimulatedBackend {
    SimulatedBackend::new(runs(), CostModel::default()).expect("recorded runs that can be replayed")
}
