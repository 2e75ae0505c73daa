//! A backend that counts what it is asked, and fails when told to.

use alto_core::backend::{Backend, BackendError, Evaluation, JobState, Memory, Slot, StepReport};
use alto_core::batch::{Batch, Lane};
use alto_core::job::Job;
use alto_core::simulated::SimulatedBackend;

/// Passes everything on to a simulated backend.
#[derive(Debug)]
pub(crate) struct Watched {
    pub(crate) inner: SimulatedBackend,
    pub(crate) attached: Vec<Slot>,
    pub(crate) attaches: usize,
    pub(crate) most_attached: usize,
    pub(crate) reads: usize,
    pub(crate) evaluated_rows: Vec<usize>,
    pub(crate) snapshots: usize,
    /// The lanes of each step.
    pub(crate) steps: Vec<Vec<Lane>>,
    /// Fails at the step call of this index.
    pub(crate) fail_at: Option<usize>,
    /// Keeps one report back at the read of this index.
    pub(crate) lose_report_at: Option<usize>,
}

impl Watched {
    pub(crate) fn new(inner: SimulatedBackend) -> Self {
        Self {
            inner,
            attached: vec![],
            attaches: 0,
            most_attached: 0,
            reads: 0,
            evaluated_rows: vec![],
            snapshots: 0,
            steps: vec![],
            fail_at: None,
            lose_report_at: None,
        }
    }
}

impl Backend for Watched {
    fn check(&self, job: &Job) -> Result<(), BackendError> {
        self.inner.check(job)
    }

    fn adapter_bytes(&self, job: &Job) -> u64 {
        self.inner.adapter_bytes(job)
    }

    fn attach(&mut self, job: &Job, state: Option<JobState>) -> Result<Slot, BackendError> {
        let slot = self.inner.attach(job, state)?;
        self.attached.push(slot);
        self.attaches += 1;
        self.most_attached = self.most_attached.max(self.attached.len());
        Ok(slot)
    }

    fn step(&mut self, batch: &Batch) -> Result<(), BackendError> {
        if self.fail_at == Some(self.steps.len()) {
            return Err(BackendError::Device { source: "pulled the plug".into() });
        }
        self.steps.push(batch.lanes.clone());
        self.inner.step(batch)
    }

    fn read(&mut self) -> Result<Vec<StepReport>, BackendError> {
        self.reads += 1;
        let mut reports = self.inner.read()?;
        if self.lose_report_at == Some(self.reads) {
            reports.pop();
        }
        Ok(reports)
    }

    fn evaluate(&mut self, batch: &Batch) -> Result<Vec<Evaluation>, BackendError> {
        self.evaluated_rows.push(batch.row_lengths.len());
        self.inner.evaluate(batch)
    }

    fn snapshot(&mut self, slot: Slot) -> Result<JobState, BackendError> {
        self.snapshots += 1;
        self.inner.snapshot(slot)
    }

    fn detach(&mut self, slot: Slot) -> Result<JobState, BackendError> {
        self.attached.retain(|&attached| attached != slot);
        self.inner.detach(slot)
    }

    fn memory(&mut self) -> Memory {
        self.inner.memory()
    }
}
