//! The trait of everything that may end a job early.

use std::fmt::Debug;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::curve::Curve;
use crate::reason::Reason;
use crate::setting::SettingError;

/// Decides from loss curves alone which jobs stop early.
///
/// A policy is pure: it holds settings and no counters, and reads "twice in a row" off the curve. The same curves give
/// the same verdict, live or replayed from a log.
///
/// A trainer calls [`check`](Self::check) once before it starts, and [`judge`](Self::judge) for a job after each of its
/// evaluations. At a rung it parks the job instead, and asks only once the rung is closed: once no job that it knows of
/// is short of it. It then judges each of them before any goes on.
pub trait ExitPolicy: Debug + Send + Sync {
    /// Progress marks at which this job waits until its peers have come as far.
    ///
    /// A mark is reached at the first step at or past it, and an evaluation happens there.
    fn rungs(&self, job: usize) -> Vec<f64> {
        let _ = job;
        Vec::new()
    }

    /// Whether `cohort[job]` goes on.
    ///
    /// The cohort holds every job of the task, those that ended included: a record at a mark counts whatever became of
    /// the job since, so that one exit never changes the next verdict.
    ///
    /// # Panics
    /// May panic if `job` is not an index of `cohort`; never for what the curves hold.
    fn judge(&self, job: usize, cohort: &[Curve]) -> Verdict;

    /// [`judge`](Self::judge) for each of these jobs, in their order, all by the same curves.
    ///
    /// A policy that compares jobs can rank them once for all; what it answers is what `judge` answers, job by job.
    fn judge_all(&self, jobs: &[usize], cohort: &[Curve]) -> Vec<Verdict> {
        jobs.iter().map(|&job| self.judge(job, cohort)).collect()
    }

    /// Whether a verdict may depend on the curves of other jobs.
    ///
    /// `false` promises that the job's own curve alone gives the same verdict; then one that asks about a job's past, as
    /// [`Patient`](crate::Patient) does, needs no copy of the others.
    fn compares(&self) -> bool {
        true
    }

    /// Checks the settings; a policy whose settings fail here keeps every job.
    ///
    /// # Errors
    /// Names the policy, the setting, its value and what would be right.
    fn check(&self) -> Result<(), SettingError> {
        Ok(())
    }
}

/// What becomes of a job after an evaluation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[must_use]
pub enum Verdict {
    /// It goes on.
    Keep,
    /// It ends here.
    Exit(Reason),
}

/// The policy's verdicts on those of the jobs that are asked about; the others go on.
pub(crate) fn judge_some(
    policy: &dyn ExitPolicy,
    jobs: &[usize],
    cohort: &[Curve],
    is_asked: impl Fn(usize) -> bool,
) -> Vec<Verdict> {
    let (places, asked): (Vec<usize>, Vec<usize>) =
        jobs.iter().copied().enumerate().filter(|&(_, job)| is_asked(job)).unzip();
    let mut verdicts = vec![Verdict::Keep; jobs.len()];
    for (place, verdict) in places.into_iter().zip(policy.judge_all(&asked, cohort)) {
        verdicts[place] = verdict;
    }
    verdicts
}

impl<P: ExitPolicy + ?Sized> ExitPolicy for &P {
    fn rungs(&self, job: usize) -> Vec<f64> {
        (**self).rungs(job)
    }

    fn judge(&self, job: usize, cohort: &[Curve]) -> Verdict {
        (**self).judge(job, cohort)
    }

    fn judge_all(&self, jobs: &[usize], cohort: &[Curve]) -> Vec<Verdict> {
        (**self).judge_all(jobs, cohort)
    }

    fn compares(&self) -> bool {
        (**self).compares()
    }

    fn check(&self) -> Result<(), SettingError> {
        (**self).check()
    }
}

impl<P: ExitPolicy + ?Sized> ExitPolicy for Box<P> {
    fn rungs(&self, job: usize) -> Vec<f64> {
        (**self).rungs(job)
    }

    fn judge(&self, job: usize, cohort: &[Curve]) -> Verdict {
        (**self).judge(job, cohort)
    }

    fn judge_all(&self, jobs: &[usize], cohort: &[Curve]) -> Vec<Verdict> {
        (**self).judge_all(jobs, cohort)
    }

    fn compares(&self) -> bool {
        (**self).compares()
    }

    fn check(&self) -> Result<(), SettingError> {
        (**self).check()
    }
}

impl<P: ExitPolicy + ?Sized> ExitPolicy for Arc<P> {
    fn rungs(&self, job: usize) -> Vec<f64> {
        (**self).rungs(job)
    }

    fn judge(&self, job: usize, cohort: &[Curve]) -> Verdict {
        (**self).judge(job, cohort)
    }

    fn judge_all(&self, jobs: &[usize], cohort: &[Curve]) -> Vec<Verdict> {
        (**self).judge_all(jobs, cohort)
    }

    fn compares(&self) -> bool {
        (**self).compares()
    }

    fn check(&self) -> Result<(), SettingError> {
        (**self).check()
    }
}

const _: Option<&dyn ExitPolicy> = None;
