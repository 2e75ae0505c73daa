//! What a run is given to train, and the checks that come before it.

use std::collections::BTreeMap;

use super::error::TrainError;
use crate::adapter::Adapter;
use crate::backend::{Backend, JobState};
use crate::data::Dataset;
use crate::job::Job;

/// A job, and the adapter that it starts from.
#[derive(Debug, Clone, PartialEq)]
pub struct Candidate {
    /// The configuration to train.
    pub job: Job,
    /// The adapter to go on from, with a fresh optimizer; `None` for the start that the job's seed gives.
    pub start: Option<Adapter>,
}

impl From<Job> for Candidate {
    fn from(job: Job) -> Self {
        Self { job, start: None }
    }
}

/// Checks everything about the jobs that can be known before training.
pub(super) fn check(candidates: &[Candidate], train: &Dataset, backend: &mut dyn Backend) -> Result<(), TrainError> {
    if candidates.is_empty() {
        return Err(TrainError::NoJobs);
    }
    let mut names = BTreeMap::new();
    for (second, Candidate { job, .. }) in candidates.iter().enumerate() {
        job.check()?;
        let (batch, rows) = (job.batch, train.examples().len());
        if batch > rows {
            return Err(TrainError::BatchTooLarge { job: job.name.clone(), batch, rows });
        }
        backend.check(job)?;
        if let Some(first) = names.insert(&job.name, second) {
            return Err(TrainError::DuplicateName { name: job.name.clone(), first, second });
        }
    }
    for Candidate { job, start } in candidates {
        if let Some(adapter) = start {
            // Only attaching tells whether an adapter fits the model.
            let slot = backend.attach(job, Some(JobState::starting_from(adapter.clone())))?;
            backend.detach(slot)?;
        }
    }
    Ok(())
}
