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
        check_job(job, train, backend)?;
        if let Some(first) = names.insert(&job.name, second) {
            return Err(TrainError::DuplicateName { name: job.name.clone(), first, second });
        }
    }
    candidates.iter().try_for_each(|candidate| check_start(candidate, backend))
}

/// The same for one that comes when others are there already.
pub(super) fn check_late<'a>(
    candidate: &Candidate,
    mut names: impl Iterator<Item = &'a String>,
    train: &Dataset,
    backend: &mut dyn Backend,
) -> Result<(), TrainError> {
    let name = &candidate.job.name;
    check_job(&candidate.job, train, backend)?;
    let known = names.by_ref().position(|other| other == name);
    if let Some(first) = known {
        return Err(TrainError::DuplicateName { name: name.clone(), first, second: first + 1 + names.count() });
    }
    check_start(candidate, backend)
}

fn check_job(job: &Job, train: &Dataset, backend: &dyn Backend) -> Result<(), TrainError> {
    job.check()?;
    let (batch, rows) = (job.batch, train.examples().len());
    if batch > rows {
        return Err(TrainError::BatchTooLarge { job: job.name.clone(), batch, rows });
    }
    Ok(backend.check(job)?)
}

fn check_start(Candidate { job, start }: &Candidate, backend: &mut dyn Backend) -> Result<(), TrainError> {
    if let Some(adapter) = start {
        // Only attaching tells whether an adapter fits the model.
        let slot = backend.attach(job, Some(JobState::starting_from(adapter.clone())))?;
        backend.detach(slot)?;
    }
    Ok(())
}
