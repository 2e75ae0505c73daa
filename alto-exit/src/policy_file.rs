//! A policy as a file has it.

use serde::{Deserialize, Deserializer, Serialize};

use crate::curve::Curve;
use crate::policies::any_of;
use crate::policies::{
    AdaptiveRung, Asha, AtLeastPeers, Diverging, Extrapolation, Hyperband, LossAware, MedianStopping, Never, NotBefore,
    Overfitting, Patience, Patient, SuccessiveHalving, Underperforming, WorseThanUntrained,
};
use crate::policy::{ExitPolicy, Verdict};
use crate::setting::SettingError;

/// The version that policies in files have.
pub const POLICY_VERSION: u32 = 1;

/// A file that holds a policy.
///
/// ```
/// use alto_exit::{ExitPolicy, PolicyFile};
///
/// let text = r#"{
///     "version": 1,
///     "policy": {"any_of": [
///         {"diverging": {"window": 3}},
///         {"underperforming": {"mark": 0.1, "keep": 0.5}}
///     ]}
/// }"#;
/// let PolicyFile { policy, .. } = serde_json::from_str(text)?;
/// assert_eq!(policy.rungs(0), [0.1]);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PolicyFile {
    /// [`POLICY_VERSION`].
    #[serde(deserialize_with = "known")]
    pub version: u32,
    /// The policy.
    pub policy: Policy,
}

fn known<'de, D: Deserializer<'de>>(from: D) -> Result<u32, D::Error> {
    match u32::deserialize(from)? {
        POLICY_VERSION => Ok(POLICY_VERSION),
        found => Err(serde::de::Error::custom(format!("the policy has version {found}, expected {POLICY_VERSION}"))),
    }
}

/// One of the policies that come with this crate, so that it can be read from a file and written to one.
///
/// Its name stands before its settings: `{"overfitting": {"patience": 3}}`. Settings that are left out have their
/// defaults.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Policy {
    /// No early exit.
    Never,
    /// [`Diverging`].
    Diverging(Diverging),
    /// [`Overfitting`].
    Overfitting(Overfitting),
    /// [`Underperforming`].
    Underperforming(Underperforming),
    /// [`AdaptiveRung`].
    AdaptiveRung(AdaptiveRung),
    /// [`LossAware`].
    LossAware(LossAware),
    /// [`WorseThanUntrained`].
    WorseThanUntrained(WorseThanUntrained),
    /// [`Patience`], with its criterion: `{"patience": {"rising": {"strips": 2}}}`.
    Patience(Patience),
    /// [`MedianStopping`].
    MedianStopping(MedianStopping),
    /// [`SuccessiveHalving`].
    SuccessiveHalving(SuccessiveHalving),
    /// [`Hyperband`].
    Hyperband(Hyperband),
    /// [`Asha`].
    Asha(Asha),
    /// [`Extrapolation`].
    Extrapolation(Extrapolation),
    /// [`Patient`], around any of these.
    Patient(Box<Patient<Policy>>),
    /// [`NotBefore`], around any of these.
    NotBefore(Box<NotBefore<Policy>>),
    /// [`AtLeastPeers`], around any of these.
    AtLeastPeers(Box<AtLeastPeers<Policy>>),
    /// The first of several that speaks, as [`AnyOf`](crate::AnyOf).
    AnyOf(Vec<Policy>),
}

impl Policy {
    /// What the policy of this name answers.
    fn ask<T>(&self, question: impl FnOnce(&dyn ExitPolicy) -> T) -> T {
        match self {
            Self::Never => question(&Never),
            Self::Diverging(policy) => question(policy),
            Self::Overfitting(policy) => question(policy),
            Self::Underperforming(policy) => question(policy),
            Self::AdaptiveRung(policy) => question(policy),
            Self::LossAware(policy) => question(policy),
            Self::WorseThanUntrained(policy) => question(policy),
            Self::Patience(policy) => question(policy),
            Self::MedianStopping(policy) => question(policy),
            Self::SuccessiveHalving(policy) => question(policy),
            Self::Hyperband(policy) => question(policy),
            Self::Asha(policy) => question(policy),
            Self::Extrapolation(policy) => question(policy),
            Self::Patient(policy) => question(policy),
            Self::NotBefore(policy) => question(policy),
            Self::AtLeastPeers(policy) => question(policy),
            Self::AnyOf(policies) => question(&Parts(policies)),
        }
    }
}

impl ExitPolicy for Policy {
    fn rungs(&self, job: usize) -> Vec<f64> {
        self.ask(|policy| policy.rungs(job))
    }

    fn judge(&self, job: usize, cohort: &[Curve]) -> Verdict {
        self.ask(|policy| policy.judge(job, cohort))
    }

    fn judge_all(&self, jobs: &[usize], cohort: &[Curve]) -> Vec<Verdict> {
        self.ask(|policy| policy.judge_all(jobs, cohort))
    }

    fn compares(&self) -> bool {
        self.ask(|policy| policy.compares())
    }

    fn check(&self) -> Result<(), SettingError> {
        self.ask(|policy| policy.check())
    }
}

/// Several policies by their names, as one.
#[derive(Debug)]
struct Parts<'a>(&'a [Policy]);

impl Parts<'_> {
    fn each(&self) -> impl Iterator<Item = &dyn ExitPolicy> {
        self.0.iter().map(|policy| policy as &dyn ExitPolicy)
    }
}

impl ExitPolicy for Parts<'_> {
    fn rungs(&self, job: usize) -> Vec<f64> {
        any_of::rungs(self.each(), job)
    }

    fn judge(&self, job: usize, cohort: &[Curve]) -> Verdict {
        any_of::first_exit(self.each(), job, cohort)
    }

    fn judge_all(&self, jobs: &[usize], cohort: &[Curve]) -> Vec<Verdict> {
        any_of::first_exits(self.each(), jobs, cohort)
    }

    fn compares(&self) -> bool {
        self.each().any(ExitPolicy::compares)
    }

    fn check(&self) -> Result<(), SettingError> {
        self.each().try_for_each(ExitPolicy::check)
    }
}
