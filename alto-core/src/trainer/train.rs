//! The settings of a run, and its loop.

use alto_exit::ExitPolicy;
use serde::{Deserialize, Serialize};

use super::candidate::Candidate;
use super::error::{Fault, TrainError};
use super::event::Event;
use super::memory::Admission;
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
}

impl Default for Trainer {
    fn default() -> Self {
        Self { interval: 0.01, slots: None, admission: Admission::Measured, skips: 3, evaluation_rows: 16 }
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
        let mut sweep = Sweep::prepare(self, backend, (train, validation), candidates, policy, observe)?;
        match train_all(&mut sweep) {
            Ok(()) => Ok(sweep.into_outcome()),
            Err(fault) => Err(sweep.into_interrupted(fault)),
        }
    }

    pub(super) fn check(&self) -> Result<(), TrainError> {
        let wrong = |setting, value, expected| Err(TrainError::Setting { setting, value, expected });
        if !(self.interval > 0.0 && self.interval <= 1.0) {
            return wrong("interval", self.interval, "over 0 and at most 1");
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
