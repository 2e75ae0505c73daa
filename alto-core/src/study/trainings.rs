//! Many tasks, each kind trained once.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::exit::replay::Corpus;
use crate::exit::{ExitPolicy, Never};
use crate::simulated::systems::{Device, Setup, System};
use crate::simulated::workload::{TaskJob, TuningTask, WorkloadError};

use super::error::StudyError;
use super::training::{Trained, train};

/// What tasks come to on devices of one kind. Tasks that are alike are trained once.
///
/// Each is trained as somebody would who tries it first: activations are recomputed where it is faster so, since more
/// adapters fit together, or the only way to fit.
///
/// ```
/// use alto_core::exit::LossAware;
/// use alto_core::simulated::read_corpus;
/// use alto_core::simulated::systems::{Device, System};
/// use alto_core::simulated::workload::{TaskJob, TuningTask};
/// use alto_core::study::Trainings;
///
/// let corpora = [read_corpus("../testdata/curves/gsm-nano/ask-s0.json")?];
/// let policy = LossAware::default();
/// let mut trainings = Trainings::new(Device::named("H100 SXM")?, &corpora, &policy);
/// let jobs = vec![TaskJob { rank: 16, learning_rate: 1e-4, batch: 1, samples: 200 }; 24];
/// let (name, model) = ("small".to_owned(), "Llama-3.2-1B".to_owned());
/// let task = TuningTask { name, release: 0.0, model, devices: 1, row_tokens: 140, jobs };
/// let all = trainings.of(&task, System::AdapterParallel, None)?;
/// let exits = trainings.of(&task, System::AdapterParallel, Some(0))?;
/// assert!(exits.seconds() < all.seconds() && exits.saved() > 0.5);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Trainings<'a> {
    /// Known trainings are of this device.
    device: Device,
    /// Rows that every evaluation of a job goes through; 74 by default, a hundredth of GSM8K's.
    pub validation_rows: usize,
    corpora: &'a [Corpus],
    policy: &'a dyn ExitPolicy,
    known: BTreeMap<Kind, Vec<Known>>,
}

/// One in so many samples is trained on to try whether recomputation is faster.
const TRIED: u64 = 20;

/// All that decides what a task comes to but its jobs, which can't be ordered: model, devices, tokens of a row, system,
/// corpus and rows of validation.
type Kind = (String, usize, u64, System, Option<usize>, usize);

/// Jobs of a task of a kind, and what it came to.
type Known = (Vec<TaskJob>, Arc<Trained>);

impl<'a> Trainings<'a> {
    /// Nothing is trained yet. Jobs replay the runs of a corpus, and end early as the policy says.
    pub fn new(device: Device, corpora: &'a [Corpus], policy: &'a dyn ExitPolicy) -> Self {
        Self { device, validation_rows: 74, corpora, policy, known: BTreeMap::new() }
    }

    /// What tasks train on.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// What this task comes to with this system. With `exits`, job `i` replays run `i`, modulo their number, of the
    /// corpus of that index, modulo theirs, and ends as the policy says; with `None` every job goes on to its end, as
    /// somebody plans who can't know of exits.
    ///
    /// # Errors
    /// There is no corpus, or as [`train`].
    pub fn of(&mut self, task: &TuningTask, system: System, exits: Option<usize>) -> Result<Arc<Trained>, StudyError> {
        if self.corpora.is_empty() {
            return Err(WorkloadError::Empty { setting: "corpora" }.into());
        }
        let exits = exits.map(|corpus| corpus % self.corpora.len());
        let kind = (task.model.clone(), task.devices, task.row_tokens, system, exits, self.validation_rows);
        let alike = self.known.get(&kind).into_iter().flatten();
        if let Some((_, trained)) = alike.into_iter().find(|(jobs, _)| *jobs == task.jobs) {
            return Ok(trained.clone());
        }
        let recompute = match exits {
            Some(_) => self.of(task, system, None)?.recompute,
            None => self.is_faster_recomputed(task, system)?,
        };
        let setup = Setup { recompute, ..self.setup(task, system)? };
        let policy = if exits.is_some() { self.policy } else { &Never };
        let runs = &self.corpora[exits.unwrap_or(0)].runs;
        let trained = Arc::new(train(task, &setup, runs, policy, self.validation_rows)?);
        self.known.entry(kind).or_default().push((task.jobs.clone(), trained.clone()));
        Ok(trained)
    }

    fn setup(&self, task: &TuningTask, system: System) -> Result<Setup, StudyError> {
        task.setup(system, &self.device).map_err(|source| StudyError::Setup { task: task.name.clone(), source })
    }

    /// Tries both ways on a part of the samples, and of what is evaluated, which takes its share of the time as in all.
    fn is_faster_recomputed(&self, task: &TuningTask, system: System) -> Result<bool, StudyError> {
        let mut part = task.clone();
        part.jobs.iter_mut().for_each(|job| job.samples = job.samples.div_ceil(TRIED));
        let tried = |recompute| {
            let setup = Setup { recompute, ..self.setup(task, system)? };
            train(&part, &setup, &self.corpora[0].runs, &Never, self.validation_rows.div_ceil(TRIED as usize))
        };
        match (tried(false), tried(true)) {
            (Ok(kept), Ok(recomputed)) => Ok(recomputed.seconds() < kept.seconds()),
            (Err(StudyError::NeverFits { .. }), Ok(_)) => Ok(true),
            (Ok(_), Err(StudyError::NeverFits { .. })) => Ok(false),
            (Err(error), Err(StudyError::NeverFits { .. })) | (Err(error), Ok(_)) | (_, Err(error)) => Err(error),
        }
    }
}
