//! The settings of a run, and its loop.

use alto_exit::ExitPolicy;
use serde::{Deserialize, Serialize};

use super::candidate::Candidate;
use super::error::{Fault, TrainError};
use super::event::Event;
use super::memory::Admission;
use super::proposals::Proposals;
use super::report::Outcome;
use super::sweep::Sweep;
use crate::backend::Backend;
use crate::data::Dataset;

/// Trains the jobs of one task on one backend. These are its settings; a run leaves nothing behind in them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Trainer {
    /// Progress from one evaluation of a job to the next, over 0 and at most 1; 0.01 is each hundredth of its budget.
    pub interval: f64,
    /// Jobs that may have a place at a time; `None` is no limit but memory's.
    pub slots: Option<usize>,
    /// What decides which jobs fit into memory together.
    pub admission: Admission,
    /// Steps in a row that may be skipped, as something in them is not finite, before the job ends.
    pub skips: u64,
    /// Validation rows in one call of the backend; fewer where memory asks for it.
    pub evaluation_rows: usize,
    /// Share of the exited jobs that go on to their end when all have ended, 0 to 1, to tell how often the policy was
    /// wrong; see [`AuditReport`](super::AuditReport). None by default.
    #[serde(skip_serializing_if = "is_zero")]
    pub audit: f64,
    /// Which of them: that follows from this seed and their names.
    #[serde(skip_serializing_if = "is_none")]
    pub audit_seed: u64,
}

// Files of runs without an audit are what they were before there were any.
fn is_zero(share: &f64) -> bool {
    *share == 0.0
}

fn is_none(seed: &u64) -> bool {
    *seed == 0
}

impl Default for Trainer {
    fn default() -> Self {
        Self {
            interval: 0.01,
            slots: None,
            admission: Admission::Measured,
            skips: 3,
            evaluation_rows: 16,
            audit: 0.0,
            audit_seed: 0,
        }
    }
}

impl Trainer {
    /// Trains every candidate until its budget is used up or the policy ends it; [`Outcome`] has its best adapter.
    ///
    /// A job is evaluated before its first step, at the first step at or past each multiple of
    /// [`interval`](Self::interval) and each of its rungs, and after its last; the policy judges it there, at a rung
    /// once that is closed, and no more after the last. No mark is reached while the learning rate was 0 at every step,
    /// as at the first of a warm-up: the job goes on until its adapter has moved, and is evaluated then. `observe` is
    /// told what happens, as `tracing` is.
    ///
    /// # Errors
    /// Before any training: a setting, job, starting adapter or policy that can't be trained with, two jobs of one
    /// name, no jobs, a micro-batch of more rows than the training set has, a job that never fits. Later only
    /// [`TrainError::Interrupted`], which has everything trained so far.
    pub fn run(
        &self,
        backend: &mut dyn Backend,
        train: &Dataset,
        validation: &Dataset,
        candidates: Vec<Candidate>,
        policy: &dyn ExitPolicy,
        observe: &mut dyn FnMut(&Event),
    ) -> Result<Outcome, TrainError> {
        self.train(backend, (train, validation), Jobs::Listed(candidates), policy, observe)
    }

    /// The same for jobs that a search proposes while places are free: [`Proposals`] says which and how many.
    ///
    /// What is asked and answered depends on the number of [`slots`](Self::slots): without a limit, all jobs start at once
    /// and the search has nothing to learn from. A proposed job that can't be trained, or never fits, is told as an event,
    /// stands in [`Report::refused`](super::Report::refused), and counts as tried.
    ///
    /// # Errors
    /// As [`run`](Self::run), and when one of the first points makes no job; later ones are refused.
    pub fn search(
        &self,
        backend: &mut dyn Backend,
        train: &Dataset,
        validation: &Dataset,
        proposals: &Proposals,
        policy: &dyn ExitPolicy,
        observe: &mut dyn FnMut(&Event),
    ) -> Result<Outcome, TrainError> {
        self.train(backend, (train, validation), Jobs::Proposed(proposals), policy, observe)
    }

    fn train(
        &self,
        backend: &mut dyn Backend,
        data: (&Dataset, &Dataset),
        jobs: Jobs,
        policy: &dyn ExitPolicy,
        observe: &mut dyn FnMut(&Event),
    ) -> Result<Outcome, TrainError> {
        let mut sweep = Sweep::prepare(self, backend, data, jobs, policy, observe)?;
        let mut trained = train_all(&mut sweep);
        if trained.is_ok() && sweep.begin_audit() {
            trained = train_all(&mut sweep);
        }
        match trained {
            Ok(()) => Ok(sweep.into_outcome()),
            Err(fault) => Err(sweep.into_interrupted(fault)),
        }
    }

    pub(super) fn check(&self) -> Result<(), TrainError> {
        let wrong = |setting, value, expected| Err(TrainError::Setting { setting, value, expected });
        if !(self.interval > 0.0 && self.interval <= 1.0) {
            return wrong("interval", self.interval, "over 0 and at most 1");
        }
        if !(0.0..=1.0).contains(&self.audit) {
            return wrong("audit", self.audit, "from 0 to 1");
        }
        for (setting, value) in [
            ("slots", self.slots.unwrap_or(1)),
            ("evaluation_rows", self.evaluation_rows),
            ("skips", self.skips as usize),
        ] {
            if value == 0 {
                return wrong(setting, 0.0, "at least 1");
            }
        }
        Ok(())
    }
}

/// Where a run's jobs come from.
pub(super) enum Jobs<'a> {
    Listed(Vec<Candidate>),
    Proposed(&'a Proposals<'a>),
}

fn train_all(sweep: &mut Sweep) -> Result<(), Fault> {
    loop {
        sweep.admit()?;
        if sweep.residents().is_empty() {
            return Ok(());
        }
        while sweep.due().is_empty() {
            sweep.step()?;
        }
        // Once for all: it waits for the device. Jobs whose steps are not finite end here, so ask anew who is due.
        sweep.read()?;
        let due = sweep.due();
        sweep.evaluate(&due)?;
        sweep.judge(&due)?;
        sweep.close_rungs()?;
    }
}
