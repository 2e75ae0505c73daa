//! Keeps a job that few others have come as far as.

use serde::{Deserialize, Serialize};

use crate::curve::Curve;
use crate::policy::{ExitPolicy, Verdict, judge_some};
use crate::setting::{SettingError, checked};

/// Ends a job only if at least so many others have come as far, and another policy says so.
///
/// Another job has come as far if the progress of its latest evaluation is at least that of this job's, whether it still
/// runs or has ended. Deserialized settings are checked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(remote = "Self", deny_unknown_fields)]
pub struct AtLeastPeers<P> {
    /// How many other jobs.
    pub peers: usize,
    /// Who judges.
    pub policy: P,
}

checked!(AtLeastPeers<P>, "at_least_peers");

impl<P: ExitPolicy> ExitPolicy for AtLeastPeers<P> {
    fn rungs(&self, job: usize) -> Vec<f64> {
        self.policy.rungs(job)
    }

    fn judge(&self, job: usize, cohort: &[Curve]) -> Verdict {
        self.judge_all(&[job], cohort).remove(0)
    }

    fn judge_all(&self, jobs: &[usize], cohort: &[Curve]) -> Vec<Verdict> {
        let progress = |job: usize| cohort[job].latest().map(|at| at.progress).filter(|at| !at.is_nan());
        let mut ascending: Vec<f64> = (0..cohort.len()).filter_map(progress).collect();
        ascending.sort_by(f64::total_cmp);
        let has_peers = |job| {
            progress(job).is_some_and(|own| {
                let behind = ascending.partition_point(|&other| other < own);
                // Itself is one of those that are not behind.
                ascending.len() - behind > self.peers
            })
        };
        judge_some(&self.policy, jobs, cohort, has_peers)
    }

    fn check(&self) -> Result<(), SettingError> {
        self.policy.check()
    }
}
