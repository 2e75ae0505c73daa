//! Keeps every job up to a progress.

use serde::{Deserialize, Serialize};

use crate::curve::Curve;
use crate::policy::{ExitPolicy, Verdict, judge_some};
use crate::setting::{SettingError, Settings, checked};

/// Ends a job only at an evaluation at or past a progress, if another policy says so.
///
/// The policy sees all evaluations, the early ones too. What it has to say at an earlier mark is lost, so its rungs
/// before the progress are left out: nobody waits at them. Deserialized settings are checked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(remote = "Self", deny_unknown_fields)]
pub struct NotBefore<P> {
    /// Samples seen over samples budgeted, from 0 to 1.
    pub progress: f64,
    /// Who judges.
    pub policy: P,
}

checked!(NotBefore<P>, "not_before");

impl<P: ExitPolicy> ExitPolicy for NotBefore<P> {
    fn rungs(&self, job: usize) -> Vec<f64> {
        let mut rungs = self.policy.rungs(job);
        rungs.retain(|&mark| mark >= self.progress);
        rungs
    }

    fn judge(&self, job: usize, cohort: &[Curve]) -> Verdict {
        if self.has_come(&cohort[job]) { self.policy.judge(job, cohort) } else { Verdict::Keep }
    }

    fn judge_all(&self, jobs: &[usize], cohort: &[Curve]) -> Vec<Verdict> {
        judge_some(&self.policy, jobs, cohort, |job| self.has_come(&cohort[job]))
    }

    fn compares(&self) -> bool {
        self.policy.compares()
    }

    fn check(&self) -> Result<(), SettingError> {
        Settings("not_before").progress("progress", self.progress)?;
        self.policy.check()
    }
}

impl<P: ExitPolicy> NotBefore<P> {
    fn has_come(&self, curve: &Curve) -> bool {
        self.check().is_ok() && curve.latest().is_some_and(|latest| latest.progress >= self.progress)
    }
}
