//! How often the policy was wrong, from exited jobs that run on to their end.

use std::collections::BTreeMap;
use std::fmt;

use alto_exit::{Curve, EvaluationPoint};
use serde::{Deserialize, Serialize};

use super::report::{Ended, JobReport};

/// What became of the exited jobs that were let run on.
///
/// They go on once all other jobs have ended, so that they take no place and no time from those that compete, and are in
/// no ranking: the run's jobs, winner and verdicts are what they are without an audit. Which exited jobs run on follows
/// from [`Trainer::audit_seed`](super::Trainer::audit_seed) and their names alone.
///
/// Only under a memory budget there is a difference: room for the states of exited jobs is set aside from the start, where
/// the policy has no rungs. Fewer jobs may then fit at a time, so that a policy that compares jobs without waiting may see
/// others beside them, and a budget that is just enough without an audit may be refused with one.
///
/// An exit was *wrong* if the job's lowest loss over its whole course is below the winner's; the difference is the
/// *regret*. That adapter is not offered: an audit tells whether to trust the policy, and what it finds was paid for
/// outside of the competition. Train the job anew, alone, to have it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AuditReport {
    /// Over all exits first, then by reason, in the alphabet's order.
    pub rates: Vec<AuditRate>,
    /// The jobs that ran on, ascending.
    pub jobs: Vec<AuditedJob>,
    /// Rows that they saw after their exits; in no other sum of the report.
    pub samples: u64,
}

/// How often exits were wrong.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AuditRate {
    /// The reason of these exits, as [`Ended::word`] has it; `None` for all.
    pub reason: Option<String>,
    /// How many exits there were.
    pub exits: u64,
    /// How many of them ran on to their end.
    pub audited: u64,
    /// How many of those were wrong.
    pub wrong: u64,
    /// Where the share of wrong exits lies with 95% confidence, 0 to 1: the score interval (Wilson, 1927).
    pub interval: (f64, f64),
    /// Mean regret over the audited, in nats per token, with 0 where the exit was right; `None` if there are none.
    pub mean_regret: Option<f64>,
    /// The largest regret.
    pub largest_regret: Option<f64>,
}

/// One job that ran on after its exit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AuditedJob {
    /// Which job; the report's entry of it is what it was when it exited.
    pub job: usize,
    /// How it ended at last.
    pub ended: Ended,
    /// Its evaluation with the lowest finite loss, before or after the exit.
    pub best: Option<EvaluationPoint>,
    /// By how much that is below the winner's, in nats per token; 0 if it is not. Without a winner, any loss is below.
    pub regret: f64,
    /// Its losses, those before the exit included.
    pub curve: Curve,
}

impl AuditReport {
    /// The report of these jobs as they were when they exited, and, by index, as they were in the end.
    pub(super) fn new(jobs: &[JobReport], winner: Option<usize>, ran_on: BTreeMap<usize, JobReport>) -> Self {
        let kept = winner.and_then(|index| jobs[index].best).map_or(f64::INFINITY, |best| best.loss);
        let samples = ran_on.iter().map(|(&job, after)| after.samples - jobs[job].samples).sum();
        let audited = ran_on.into_iter().map(|(job, after)| {
            let best = after.curve.best().copied();
            let regret = best.map_or(0.0, |best| (kept - best.loss).max(0.0));
            AuditedJob { job, ended: after.ended, best, regret, curve: after.curve }
        });
        let audited: Vec<AuditedJob> = audited.collect();
        let mut reasons: Vec<&str> = jobs.iter().filter_map(reason).collect();
        reasons.sort_unstable();
        reasons.dedup();
        let rate = |wanted: Option<&str>| {
            let counts = |report: &JobReport| reason(report).is_some_and(|found| wanted.is_none_or(|w| w == found));
            // A job that the run left unfinished tells nothing.
            let known =
                audited.iter().filter(|audited| audited.ended != Ended::Unfinished && counts(&jobs[audited.job]));
            let regrets: Vec<f64> = known.map(|audited| audited.regret).collect();
            let exits = jobs.iter().filter(|report| counts(report)).count();
            AuditRate::new(wanted, exits, &regrets)
        };
        let rates = std::iter::once(rate(None)).chain(reasons.iter().map(|reason| rate(Some(reason)))).collect();
        Self { rates, jobs: audited, samples }
    }
}

impl fmt::Display for AuditRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { reason, exits, audited, wrong, interval: (low, high), .. } = self;
        match reason {
            None => write!(f, "Audit: ")?,
            Some(reason) => write!(f, "  {reason}: ")?,
        }
        write!(f, "{audited} of {exits} exits ran on to their end")?;
        if let (Some(mean), Some(largest)) = (self.mean_regret, self.largest_regret) {
            let share = 100.0 * *wrong as f64 / *audited as f64;
            write!(
                f,
                ", {wrong} of them below the winner ({share:.0}%, with 95% confidence {:.0} to {:.0}%), by {mean:.4} on \
                 average over all and {largest:.4} at most",
                100.0 * low,
                100.0 * high
            )?;
        }
        f.write_str(".")
    }
}

impl AuditRate {
    fn new(reason: Option<&str>, exits: usize, regrets: &[f64]) -> Self {
        let (audited, wrong) = (regrets.len(), regrets.iter().filter(|&&regret| regret > 0.0).count());
        let is_any = !regrets.is_empty();
        Self {
            reason: reason.map(str::to_owned),
            exits: exits as u64,
            audited: audited as u64,
            wrong: wrong as u64,
            interval: wilson(wrong, audited),
            mean_regret: is_any.then(|| regrets.iter().sum::<f64>() / audited as f64),
            largest_regret: is_any.then(|| regrets.iter().copied().fold(0.0, f64::max)),
        }
    }
}

/// Why a job exited, in a word; `None` if it didn't.
fn reason(report: &JobReport) -> Option<&str> {
    matches!(report.ended, Ended::Exited(_)).then(|| report.ended.word())
}

/// The 95% score interval of a share of which `hits` of `count` are known; all of 0 to 1 if none are.
fn wilson(hits: usize, count: usize) -> (f64, f64) {
    if count == 0 {
        return (0.0, 1.0);
    }
    // The normal distribution's 97.5% quantile.
    let z = 1.959_963_984_540_054;
    let (n, share) = (count as f64, hits as f64 / count as f64);
    let centre = share + z * z / (2.0 * n);
    let spread = z * (share * (1.0 - share) / n + z * z / (4.0 * n * n)).sqrt();
    let at = |place: f64| (place / (1.0 + z * z / n)).clamp(0.0, 1.0);
    // Exact at the ends, where rounding would leave a trace.
    let low = if hits == 0 { 0.0 } else { at(centre - spread) };
    let high = if hits == count { 1.0 } else { at(centre + spread) };
    (low, high)
}

/// Whether an exited job of this name is among the share that runs on.
pub(super) fn is_chosen(name: &str, seed: u64, share: f64) -> bool {
    // FNV-1a over the name, then the seed mixed in as SplitMix64 does.
    let hash = name
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3));
    let mut x = hash ^ seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^= x >> 31;
    ((x >> 11) as f64 / (1_u64 << 53) as f64) < share
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_is_that_of_the_tables() {
        // From R: prop.test(hits, count, correct = FALSE).
        for (hits, count, low, high) in [(1, 10, 0.017_876, 0.404_150), (5, 10, 0.236_593, 0.763_407)] {
            let found = wilson(hits, count);
            assert!((found.0 - low).abs() < 1e-5 && (found.1 - high).abs() < 1e-5, "{found:?}");
        }
        assert_eq!(wilson(0, 0), (0.0, 1.0));
        assert_eq!((wilson(0, 7).0, wilson(7, 7).1), (0.0, 1.0));
    }

    #[test]
    fn the_choice_is_of_the_share_asked_for_and_follows_from_seed_and_name() {
        let chosen = |seed, share| (0..2000).filter(|i| is_chosen(&format!("r8-lr{i}"), seed, share)).count();
        assert_eq!((chosen(0, 0.0), chosen(0, 1.0)), (0, 2000));
        // Five standard deviations.
        assert!((chosen(0, 0.25) as f64 - 500.0).abs() < 100.0, "{}", chosen(0, 0.25));
        assert!((0..50).any(|i| is_chosen(&format!("{i}"), 0, 0.5) != is_chosen(&format!("{i}"), 1, 0.5)));
    }
}
