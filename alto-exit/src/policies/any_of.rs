//! Several policies as one.

use crate::curve::Curve;
use crate::policy::{ExitPolicy, Verdict};
use crate::setting::SettingError;

/// Ends a job as soon as one of its policies does; the first that speaks gives the reason.
///
/// Its rungs are those of all its policies together. Without any policy it keeps every job. In a file it is
/// [`Policy::AnyOf`](crate::Policy::AnyOf).
#[derive(Debug, Default)]
pub struct AnyOf(pub Vec<Box<dyn ExitPolicy>>);

impl AnyOf {
    fn parts(&self) -> impl Iterator<Item = &dyn ExitPolicy> {
        self.0.iter().map(|policy| &**policy)
    }
}

impl ExitPolicy for AnyOf {
    fn rungs(&self, job: usize) -> Vec<f64> {
        rungs(self.parts(), job)
    }

    fn judge(&self, job: usize, cohort: &[Curve]) -> Verdict {
        first_exit(self.parts(), job, cohort)
    }

    fn judge_all(&self, jobs: &[usize], cohort: &[Curve]) -> Vec<Verdict> {
        first_exits(self.parts(), jobs, cohort)
    }

    fn compares(&self) -> bool {
        self.parts().any(ExitPolicy::compares)
    }

    fn check(&self) -> Result<(), SettingError> {
        self.parts().try_for_each(ExitPolicy::check)
    }
}

/// The marks of all, ascending, each once.
pub(crate) fn rungs<'a>(policies: impl Iterator<Item = &'a dyn ExitPolicy>, job: usize) -> Vec<f64> {
    let mut rungs: Vec<f64> = policies.flat_map(|policy| policy.rungs(job)).collect();
    rungs.sort_by(f64::total_cmp);
    rungs.dedup();
    rungs
}

/// The verdict of the first that speaks.
pub(crate) fn first_exit<'a>(
    policies: impl Iterator<Item = &'a dyn ExitPolicy>,
    job: usize,
    cohort: &[Curve],
) -> Verdict {
    let mut verdicts = policies.map(|policy| policy.judge(job, cohort));
    verdicts.find(|verdict| *verdict != Verdict::Keep).unwrap_or(Verdict::Keep)
}

/// The same for several jobs: each policy is asked about those that the ones before it keep.
pub(crate) fn first_exits<'a>(
    policies: impl Iterator<Item = &'a dyn ExitPolicy>,
    jobs: &[usize],
    cohort: &[Curve],
) -> Vec<Verdict> {
    let mut verdicts = vec![Verdict::Keep; jobs.len()];
    for policy in policies {
        let open: Vec<usize> = (0..jobs.len()).filter(|&at| verdicts[at] == Verdict::Keep).collect();
        let asked: Vec<usize> = open.iter().map(|&at| jobs[at]).collect();
        for (at, verdict) in open.into_iter().zip(policy.judge_all(&asked, cohort)) {
            verdicts[at] = verdict;
        }
    }
    verdicts
}
