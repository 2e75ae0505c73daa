//! What a policy did to one task, and what that cost.

use std::borrow::Borrow;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::recorded_run::RecordedRun;
use super::rung_report::RungReport;
use crate::any_float;
use crate::curve::{Curve, End};
use crate::policy::ExitPolicy;
use crate::rank_correlation::order;

/// What a replayed policy saved on one task, and what it gave up.
///
/// A job's *final* loss is the best validation loss of its whole run: the lowest finite one after the first step, which
/// is what it leaves behind if nobody ends it. A job that is ended leaves behind the best until then. Losses are in nats
/// per token.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TaskReport {
    /// The task.
    pub task: String,
    /// How many jobs there are.
    pub jobs: usize,
    /// Samples in the budgets of all jobs.
    pub budget: u64,
    /// Samples that ended jobs were spared, by the [word](crate::Reason::word) for the reason; `failed` is for those that
    /// couldn't go on.
    pub saved: BTreeMap<String, u64>,
    /// The lowest final loss.
    #[serde(with = "any_float::option")]
    pub best: Option<f64>,
    /// The lowest loss that a job left behind.
    #[serde(with = "any_float::option")]
    pub kept: Option<f64>,
    /// Each rung of the policy, ascending.
    pub rungs: Vec<RungReport>,
    /// Late bloomers that were killed: jobs of the final top quarter that were ended while outside of the top quarter at
    /// that progress, their best loss yet to come.
    pub late_bloomers: usize,
}

impl TaskReport {
    /// What the ends of these curves saved and cost, `curves[i]` being how far the policy let `runs[i]` come.
    ///
    /// # Panics
    /// If the lists differ in length.
    pub fn new(
        task: impl Into<String>,
        runs: &[impl Borrow<RecordedRun>],
        curves: &[Curve],
        policy: &dyn ExitPolicy,
    ) -> Self {
        assert_eq!(runs.len(), curves.len(), "each run has its curve");
        let runs: Vec<&RecordedRun> = runs.iter().map(Borrow::borrow).collect();
        let mut saved = BTreeMap::new();
        for (run, curve) in runs.iter().zip(curves) {
            if let Some(word) = why(curve) {
                *saved.entry(word.to_owned()).or_default() += run.samples() - run.samples_after(steps_done(run, curve));
            }
        }
        let top = top_quarter(&runs);
        let is_killed = |&&job: &&usize| {
            let (run, curve) = (runs[job], &curves[job]);
            let left_behind = curve.best().map(|best| best.loss);
            why(curve).is_some()
                && left_behind != final_loss(run)
                && place(job, steps_done(run, curve), &runs) >= top.len()
        };
        Self {
            task: task.into(),
            jobs: runs.len(),
            budget: runs.iter().map(|run| run.samples()).fold(0, u64::saturating_add),
            saved,
            best: lowest(runs.iter().filter_map(|run| final_loss(run))),
            kept: lowest(curves.iter().filter_map(|curve| Some(curve.best()?.loss))),
            rungs: RungReport::all(&runs, curves, &top, policy),
            late_bloomers: top.iter().filter(is_killed).count(),
        }
    }

    /// Samples saved by all reasons together, as a share of the budget.
    pub fn saved_share(&self) -> f64 {
        self.saved.values().sum::<u64>() as f64 / self.budget.max(1) as f64
    }

    /// How far the best loss kept is over the best there was; infinite if none was kept, `None` if there was none.
    pub fn regret(&self) -> Option<f64> {
        let best = self.best?;
        Some(self.kept.map_or(f64::INFINITY, |kept| kept - best))
    }

    /// Whether the best loss there was is kept: the job that has it came as far.
    pub fn best_survived(&self) -> bool {
        self.best == self.kept
    }
}

/// The jobs of the lowest final losses, a quarter of those that have one, rounded up; ties by index.
fn top_quarter(runs: &[&RecordedRun]) -> Vec<usize> {
    let finals: Vec<f64> = runs.iter().map(|run| final_loss(run).unwrap_or(f64::NAN)).collect();
    let rated = finals.iter().filter(|loss| loss.is_finite()).count();
    order(&finals)[..rated.div_ceil(4)].to_vec()
}

/// How many jobs are better than this one where it has made so many steps, by their validation losses at equal progress;
/// ties by index.
fn place(job: usize, steps: u64, runs: &[&RecordedRun]) -> usize {
    let losses: Vec<f64> = runs.iter().map(|run| run.val_loss(steps, runs[job].steps)).collect();
    order(&losses).iter().take_while(|&&other| other != job).count()
}

pub(super) fn final_loss(run: &RecordedRun) -> Option<f64> {
    run.best().map(|best| best.loss)
}

/// One word for why the job was ended before its budget was used up.
fn why(curve: &Curve) -> Option<&str> {
    match curve.end.as_ref()? {
        End::Finished => None,
        End::Exited(reason) => Some(reason.word()),
        End::Failed { .. } => Some("failed"),
    }
}

/// Steps that the job made: up to the evaluation by which it was judged, or to where it failed.
pub(super) fn steps_done(run: &RecordedRun, curve: &Curve) -> u64 {
    match &curve.end {
        Some(End::Finished) => run.steps,
        Some(End::Failed { step, .. }) => *step,
        Some(End::Exited(_)) | None => curve.evaluations.last().map_or(0, |last| last.step),
    }
}

fn lowest(losses: impl Iterator<Item = f64>) -> Option<f64> {
    losses.reduce(f64::min)
}
