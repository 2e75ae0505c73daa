//! The recorded sweeps in `testdata/curves`: as they are described there, and fit to be replayed.

use std::collections::BTreeMap;
use std::path::Path;

use alto_core::simulated::read_corpus;
use alto_exit::replay::{Corpus, RecordedRun};

/// The corpora of a model by the names of their files.
fn corpora(model: &str) -> BTreeMap<String, Corpus> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata/curves").join(model);
    let files = std::fs::read_dir(folder).expect("the recorded sweeps are part of the repository");
    files
        .map(|file| {
            let path = file.expect("a readable folder").path();
            let name = path.file_stem().expect("a file name").to_string_lossy().into_owned();
            (name, read_corpus(&path).expect("a corpus"))
        })
        .collect()
}

/// What says which configuration a run is of.
fn configuration(run: &RecordedRun) -> (&Option<String>, usize, u64, usize, u64) {
    (&run.name, run.rank, run.lr.to_bits(), run.batch, run.steps)
}

#[test]
fn each_task_is_there_with_two_seeds_of_the_same_configurations() {
    let corpora = corpora("gsm-nano");
    assert!(corpora.len() >= 6, "{:?}", corpora.keys());
    for (name, corpus) in &corpora {
        let (task, seed) = name.rsplit_once("-s").expect("a task and a seed");
        assert_eq!((&*corpus.task, corpus.model.as_deref()), (task, Some("gsm-nano")), "{name}");
        assert!(corpus.runs.len() >= 24, "{name}");
        assert!(corpus.runs.iter().all(|run| run.seed == seed.parse().ok()), "{name}");
        let other = &corpora[&format!("{task}-s{}", if seed == "0" { "1" } else { "0" })];
        assert!(corpus.runs.iter().map(configuration).eq(other.runs.iter().map(configuration)), "{name}");
        assert_ne!(corpus.runs[0].train_loss, other.runs[0].train_loss, "{name}");
    }
}

#[test]
fn every_run_went_to_its_end_and_was_evaluated_at_the_marks() {
    for (name, corpus) in corpora("gsm-nano") {
        for run in &corpus.runs {
            let at = |share: f64| (share * run.steps as f64).ceil() as u64;
            let marks: Vec<u64> = [0.0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0].map(at).to_vec();
            assert!(marks.windows(2).all(|pair| pair[0] < pair[1]), "{name}, {:?}: {marks:?}", run.name);
            assert!(marks.iter().all(|mark| run.eval_step.contains(mark)), "{name}, {:?}: {marks:?}", run.name);
            let losses = run.train_loss.iter().chain(&run.val_loss);
            assert!(losses.into_iter().all(|loss| loss.is_finite() && *loss > 0.0), "{name}, {:?}", run.name);
        }
    }
}

#[test]
fn every_sweep_has_much_to_choose_from_and_runs_that_end_worse_than_they_were() {
    for (name, corpus) in corpora("gsm-nano") {
        let best = |run: &RecordedRun| run.best().expect("an evaluation").loss;
        let (low, high) = (f64::INFINITY, 0.0_f64);
        let (low, high) = corpus.runs.iter().map(best).fold((low, high), |(low, high), x| (low.min(x), high.max(x)));
        assert!(high > 1.5 * low, "{name}: {low} to {high}");
        let worse = corpus.runs.iter().filter(|run| run.val_loss[run.val_loss.len() - 1] > 1.02 * best(run));
        assert!(worse.count() >= 2, "{name}");
    }
}
