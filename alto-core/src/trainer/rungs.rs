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
