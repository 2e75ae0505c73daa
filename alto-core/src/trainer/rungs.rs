//! Which step brings each job to its rungs.

use alto_exit::{ExitPolicy, Rungs};

use super::error::TrainError;
use super::marks::first_step;
use crate::job::Job;

/// The rungs that the policy gives these jobs.
pub(super) fn rungs(jobs: &[&Job], policy: &dyn ExitPolicy) -> Result<Rungs, TrainError> {
    let rungs = Rungs::new(jobs.len(), policy, |job, mark| first_step(jobs[job], mark));
    rungs.map_err(|bad| TrainError::BadRung { job: jobs[bad.job].name.clone(), mark: bad.mark })
}

/// One more job that the policy gives rungs, late.
pub(super) fn add(rungs: &mut Rungs, job: &Job, policy: &dyn ExitPolicy) -> Result<(), TrainError> {
    let added = rungs.add(policy, |mark| first_step(job, mark));
    added.map_err(|bad| TrainError::BadRung { job: job.name.clone(), mark: bad.mark })
}
