//! Several policies as one.

use crate::curve::Curve;
use crate::policy::{ExitPolicy, Verdict};
use crate::setting::SettingError;

/// Ends a job as soon as one of its policies does; the first that speaks gives the reason.
///
/// Its rungs are those of all its policies together. Without any policy it keeps every job.
#[derive(Debug, Default)]
pub struct AnyOf(pub Vec<Box<dyn ExitPolicy>>);

impl ExitPolicy for AnyOf {
    fn rungs(&self, job: usize) -> Vec<f64> {
        let mut rungs: Vec<f64> = self.0.iter().flat_map(|policy| policy.rungs(job)).collect();
        rungs.sort_by(f64::total_cmp);
        rungs.dedup();
        rungs
    }

    fn judge(&self, job: usize, cohort: &[Curve]) -> Verdict {
        first_exit(self.0.iter().map(|policy| &**policy), job, cohort)
    }

    fn check(&self) -> Result<(), SettingError> {
        self.0.iter().try_for_each(ExitPolicy::check)
    }
}

pub(crate) fn first_exit<'a>(
    policies: impl IntoIterator<Item = &'a dyn ExitPolicy>,
    job: usize,
    cohort: &[Curve],
) -> Verdict {
    let mut verdicts = policies.into_iter().map(|policy| policy.judge(job, cohort));
    verdicts.find(|verdict| *verdict != Verdict::Keep).unwrap_or(Verdict::Keep)
}
