//! Waits until another policy has insisted.

use serde::{Deserialize, Serialize};

use crate::curve::Curve;
use crate::policy::{ExitPolicy, Verdict};
use crate::setting::{SettingError, Settings, checked};

/// Ends a job only if another policy would have ended it at each of its last so many evaluations; the reason is the one
/// of the latest.
///
/// What the policy would have said is found by asking again with the job's curve as it was then; the other curves are
/// those of now. A policy that speaks at one evaluation only, as all do that rank at marks, is silenced by more
/// than one evaluation. Where the policy speaks, a copy is made of the job's curve; if the policy
/// [compares](ExitPolicy::compares), of the cohort, once for all jobs that are judged together. Deserialized settings are checked.
///
/// ```
/// use alto_exit::{Overfitting, Patient, Policy, PolicyFile};
///
/// let policy = Patient { evaluations: 3, policy: Overfitting::default() };
/// let text = r#"{"version": 1, "policy": {"patient": {"evaluations": 3, "policy": {"overfitting": {}}}}}"#;
/// let read: PolicyFile = serde_json::from_str(text)?;
/// let named = Patient { evaluations: 3, policy: Policy::Overfitting(policy.policy) };
/// assert_eq!(read.policy, Policy::Patient(Box::new(named)));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(remote = "Self", deny_unknown_fields)]
pub struct Patient<P> {
    /// Evaluations in a row, at least 1.
    pub evaluations: usize,
    /// Who judges.
    pub policy: P,
}

checked!(Patient<P>, "patient");

impl<P: ExitPolicy> ExitPolicy for Patient<P> {
    fn rungs(&self, job: usize) -> Vec<f64> {
        self.policy.rungs(job)
    }

    fn judge(&self, job: usize, cohort: &[Curve]) -> Verdict {
        self.judge_all(&[job], cohort).remove(0)
    }

    fn judge_all(&self, jobs: &[usize], cohort: &[Curve]) -> Vec<Verdict> {
        if self.check().is_err() {
            return vec![Verdict::Keep; jobs.len()];
        }
        let mut verdicts = self.policy.judge_all(jobs, cohort);
        if self.evaluations == 1 {
            return verdicts;
        }
        let mut past = Past { cohort, compares: self.policy.compares(), copy: vec![] };
        for (verdict, &job) in verdicts.iter_mut().zip(jobs).filter(|(verdict, _)| **verdict != Verdict::Keep) {
            // Too few evaluations need no copy.
            let are_enough = cohort[job].trained().take(self.evaluations).count() == self.evaluations;
            if !(are_enough && past.of(job, |job, past| self.insisted(job, past))) {
                *verdict = Verdict::Keep;
            }
        }
        verdicts
    }

    fn compares(&self) -> bool {
        self.policy.compares()
    }

    fn check(&self) -> Result<(), SettingError> {
        Settings("patient").at_least(1, "evaluations", self.evaluations)?;
        self.policy.check()
    }
}

impl<P: ExitPolicy> Patient<P> {
    /// Whether the policy would have ended the job at the evaluations before the latest, too.
    fn insisted(&self, job: usize, past: &mut [Curve]) -> bool {
        (1..self.evaluations).all(|_| past[job].forget_latest() && self.policy.judge(job, past) != Verdict::Keep)
    }
}

/// Curves as they were when one job had fewer evaluations.
struct Past<'a> {
    cohort: &'a [Curve],
    /// Whether the others are looked at, too.
    compares: bool,
    /// Where the job's evaluations are taken back; made when first needed.
    copy: Vec<Curve>,
}

impl Past<'_> {
    /// What is found on a copy of the curves, in which the job has this index.
    fn of(&mut self, job: usize, find: impl FnOnce(usize, &mut [Curve]) -> bool) -> bool {
        if !self.compares {
            return find(0, &mut [self.cohort[job].clone()]);
        }
        if self.copy.is_empty() {
            self.copy = self.cohort.to_vec();
        }
        let found = find(job, &mut self.copy);
        self.copy[job].clone_from(&self.cohort[job]);
        found
    }
}
