//! What becomes of a task on a virtual clock.

use crate::backend::Backend;
use crate::data::Dataset;
use crate::exit::ExitPolicy;
use crate::job::Job;
use crate::simulated::{Clock, SimulatedBackend};
use crate::trainer::{Candidate, Outcome, TrainError, Trainer};

use super::estimate::Estimate;
use super::failure;

/// How a task goes once it has started. Times are in seconds from its start.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Timeline {
    /// When its expected end moves, and to when; what isn't finite tells nothing.
    pub expected: Vec<(f64, f64)>,
    /// When it ends or fails.
    pub end: f64,
    /// Why it fails, if it does.
    pub error: Option<String>,
}

impl Timeline {
    /// A task that takes this long, as is known from the start or not.
    pub fn lasting(seconds: f64) -> Self {
        Self { end: seconds, ..Self::default() }
    }

    /// A task that fails after this time.
    pub fn failing(seconds: f64, error: &str) -> Self {
        Self { end: seconds, error: Some(error.to_owned()), ..Self::default() }
    }

    /// What becomes of this training: the trainer runs here and now, and time is what the backend charges for it.
    ///
    /// Its expected ends are those of an [`Estimate`], and it fails where the trainer does.
    pub fn training(
        trainer: &Trainer,
        backend: &mut SimulatedBackend,
        train: &Dataset,
        validation: &Dataset,
        candidates: Vec<Candidate>,
        policy: &dyn ExitPolicy,
    ) -> Self {
        let clock = backend.clock();
        Self::trained(&clock, trainer, backend, train, validation, candidates, policy).0
    }

    /// The same with what the training came to, on any backend, as one around a simulated one, of which the time is on this
    /// clock.
    pub fn trained(
        clock: &Clock,
        trainer: &Trainer,
        backend: &mut dyn Backend,
        train: &Dataset,
        validation: &Dataset,
        candidates: Vec<Candidate>,
        policy: &dyn ExitPolicy,
    ) -> (Self, Result<Outcome, TrainError>) {
        let begin = clock.seconds();
        let jobs: Vec<Job> = candidates.iter().map(|candidate| candidate.job.clone()).collect();
        let (mut estimate, mut expected) = (Estimate::new(&jobs), vec![]);
        let outcome = trainer.run(backend, train, validation, candidates, policy, &mut |event| {
            let now = clock.seconds() - begin;
            expected.extend(estimate.observe(now, &event.kind).map(|end| (now, end)));
        });
        let error = outcome.as_ref().err().map(|error| failure::words(error));
        (Self { expected, end: clock.seconds() - begin, error }, outcome)
    }
}
