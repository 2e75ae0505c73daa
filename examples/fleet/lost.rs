//! A device that is lost, for trials of what happens then.

use alto_core::backend::{Backend, BackendError, Evaluation, JobState, Memory, Slot, StepReport};
use alto_core::batch::Batch;
use alto_core::job::Job;

/// A backend that fails for ever after so many steps.
#[derive(Debug)]
pub(crate) struct Lost<'a> {
    pub(crate) backend: &'a mut dyn Backend,
    /// Steps until then; `None` is never.
    pub(crate) after: Option<u64>,
}

impl Backend for Lost<'_> {
    fn step(&mut self, batch: &Batch) -> Result<(), BackendError> {
        if let Some(left) = &mut self.after {
            *left = left.checked_sub(1).ok_or_else(|| BackendError::Device { source: "it is lost".into() })?;
        }
        self.backend.step(batch)
    }

    fn check(&self, job: &Job) -> Result<(), BackendError> {
        self.backend.check(job)
    }

    fn adapter_bytes(&self, job: &Job) -> u64 {
        self.backend.adapter_bytes(job)
    }

    fn attach(&mut self, job: &Job, state: Option<JobState>) -> Result<Slot, BackendError> {
        self.backend.attach(job, state)
    }

    fn read(&mut self) -> Result<Vec<StepReport>, BackendError> {
        self.backend.read()
    }

    fn evaluate(&mut self, batch: &Batch) -> Result<Vec<Evaluation>, BackendError> {
        self.backend.evaluate(batch)
    }

    fn snapshot(&mut self, slot: Slot) -> Result<JobState, BackendError> {
        self.backend.snapshot(slot)
    }

    fn detach(&mut self, slot: Slot) -> Result<JobState, BackendError> {
        self.backend.detach(slot)
    }

    fn memory(&mut self) -> Memory {
        self.backend.memory()
    }
}
