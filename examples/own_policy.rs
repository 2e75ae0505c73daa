//! An exit policy of one's own, beside one of ours.
//!
//! `Plateau` ends a job whose validation loss has stopped falling. It is tried on the recorded curves of
//! `testdata/curves`, which a simulated backend replays in no time: who ends where, why, and what that saves.

use std::collections::BTreeMap;
use std::error::Error;
use std::path::Path;

use alto_core::batch::Example;
use alto_core::data::Dataset;
use alto_core::exit::{AnyOf, Curve, Diverging, ExitPolicy, Reason, SettingError, Verdict};
use alto_core::job::{AdamW, AdapterConfig, Decay, Job, Schedule};
use alto_core::simulated::{self, CostModel, RecordedRun, SimulatedBackend};
use alto_core::trainer::{Candidate, Trainer};

/// Ends a job whose lowest validation loss fell by less than a share of itself over its latest evaluations.
///
/// It has settings and no counters: all that it goes by is on the curve, so that a verdict can be replayed from a log.
#[derive(Debug)]
struct Plateau {
    /// Least share by which the lowest loss has to fall.
    share: f64,
    /// Evaluations that it may take for that; at least 1.
    patience: usize,
}

impl ExitPolicy for Plateau {
    fn judge(&self, job: usize, cohort: &[Curve]) -> Verdict {
        let evaluations = &cohort[job].evaluations;
        let Some(earlier) = evaluations.len().checked_sub(self.patience).filter(|&earlier| earlier > 0) else {
            return Verdict::Keep;
        };
        let lowest =
            |from: usize, to: usize| evaluations[from..to].iter().map(|at| at.loss).fold(f64::INFINITY, f64::min);
        let (before, since) = (lowest(0, earlier), lowest(earlier, evaluations.len()));
        if since < before * (1.0 - self.share) {
            return Verdict::Keep;
        }
        let numbers = [("lowest_before", before), ("lowest_since", since), ("evaluations", self.patience as f64)];
        let numbers = BTreeMap::from(numbers.map(|(name, number)| (name.to_owned(), number)));
        Verdict::Exit(Reason::Custom { policy: "plateau".to_owned(), numbers })
    }

    /// The trainer asks before it starts.
    fn check(&self) -> Result<(), SettingError> {
        let wrong =
            |setting, value, expected| Err(SettingError::OutOfRange { policy: "plateau", setting, value, expected });
        match self {
            Self { share, .. } if !(0.0..1.0).contains(share) => wrong("share", *share, "at least 0 and under 1"),
            Self { patience: 0, .. } => wrong("patience", 0.0, "at least 1"),
            _ => Ok(()),
        }
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let runs = recorded()?;
    let jobs: Vec<Job> = runs.iter().map(|(name, run)| job(name, run)).collect();
    // 1 s for each step and evaluation, whoever takes part; the losses are those of the record, whatever the rows.
    let mut backend = SimulatedBackend::new(runs, CostModel { launch_seconds: 1.0, ..CostModel::default() })?;
    let row = Example { tokens: vec![0, 1], targets: vec![Some(1), Some(2)] };
    let rows = Dataset::from_examples(vec![row; 2])?;

    let policy = AnyOf(vec![Box::new(Diverging::default()), Box::new(Plateau { share: 0.002, patience: 3 })]);
    let trainer = Trainer { interval: 0.0625, ..Trainer::default() };
    let candidates = jobs.into_iter().map(Candidate::from).collect();
    let outcome = trainer.run(&mut backend, &rows, &rows, candidates, &policy, &mut |_| {})?;

    println!("{}", outcome.report.table());
    let stopped = outcome.report.jobs.iter().filter(|job| job.steps < job.job.steps);
    println!(
        "{} of {} jobs stopped early; simulated: {:?}",
        stopped.count(),
        outcome.report.jobs.len(),
        backend.elapsed()
    );
    Ok(())
}

/// Recorded runs by name, in the order of their names.
fn recorded() -> Result<BTreeMap<String, RecordedRun>, Box<dyn Error>> {
    let mut runs = BTreeMap::new();
    for entry in Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../testdata/curves")).read_dir()? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "json") {
            let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            runs.insert(name, simulated::read_run(&path)?);
        }
    }
    Ok(runs)
}

/// The job that a run is the record of; the backend finds it by its name.
fn job(name: &str, run: &RecordedRun) -> Job {
    let targets = ["q_proj".to_owned()].into();
    Job {
        name: name.to_owned(),
        adapter: AdapterConfig { rank: run.rank, alpha: run.alpha, rank_stabilized: false, targets },
        optimizer: AdamW::new(run.lr),
        schedule: Schedule { decay: Decay::Linear, warmup_steps: 1 },
        batch: run.batch,
        accumulation: 1,
        accumulation_mode: Default::default(),
        steps: run.steps,
        seed: 0,
    }
}
