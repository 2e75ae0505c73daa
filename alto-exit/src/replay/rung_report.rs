//! What the ranking at a rung was worth.

use serde::{Deserialize, Serialize};

use super::play::step_at;
use super::recorded_run::RecordedRun;
use super::task_report::{final_loss, steps_done};
use crate::curve::{Curve, End};
use crate::policy::ExitPolicy;
use crate::rank_correlation::{kendall, spearman};

/// How the ranking of the jobs at a rung compares with the final one, and who went on from there.
///
/// All jobs that have the rung are ranked by their recorded validation losses there, also one that was ended before. The
/// final ranking is by the best validation loss of the whole run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RungReport {
    /// The mark of progress.
    pub mark: f64,
    /// How many jobs have the rung.
    pub jobs: usize,
    /// How many went on from it, or had finished.
    pub went_on: usize,
    /// [Spearman's](spearman) correlation of the two rankings.
    pub spearman: Option<f64>,
    /// [Kendall's](kendall) tau-b of the two rankings.
    pub kendall: Option<f64>,
    /// Top-25% coverage: of the jobs of the final top quarter that have the rung, the share that went on from it.
    pub coverage: Option<f64>,
    /// Whether the best in the end of the top quarter's jobs that have the rung went on.
    pub best_went_on: Option<bool>,
}

impl RungReport {
    /// Of every rung that the policy has, ascending. `top` is the final top quarter, the best first.
    pub(super) fn all(runs: &[&RecordedRun], curves: &[Curve], top: &[usize], policy: &dyn ExitPolicy) -> Vec<Self> {
        let marks: Vec<Vec<f64>> = (0..runs.len()).map(|job| policy.rungs(job)).collect();
        let mut all = marks.concat();
        all.sort_by(f64::total_cmp);
        all.dedup();
        let jobs_at = |mark: f64| (0..runs.len()).filter(|&job| marks[job].contains(&mark)).collect::<Vec<_>>();
        all.into_iter().map(|mark| Self::at(mark, &jobs_at(mark), runs, curves, top)).collect()
    }

    fn at(mark: f64, jobs: &[usize], runs: &[&RecordedRun], curves: &[Curve], top: &[usize]) -> Self {
        let there = |run: &RecordedRun| {
            let step = step_at(run, mark);
            run.evaluations().find(|evaluation| evaluation.step == step).map_or(f64::NAN, |evaluation| evaluation.loss)
        };
        let at_rung: Vec<f64> = jobs.iter().map(|&job| there(runs[job])).collect();
        let finals: Vec<f64> = jobs.iter().map(|&job| final_loss(runs[job]).unwrap_or(f64::NAN)).collect();
        let went_on = |job: usize| {
            let (run, curve) = (runs[job], &curves[job]);
            curve.end == Some(End::Finished) || steps_done(run, curve) > step_at(run, mark)
        };
        let top: Vec<usize> = top.iter().copied().filter(|job| jobs.contains(job)).collect();
        let stayed = top.iter().filter(|&&job| went_on(job)).count();
        Self {
            mark,
            jobs: jobs.len(),
            went_on: jobs.iter().filter(|&&job| went_on(job)).count(),
            spearman: spearman(&at_rung, &finals),
            kendall: kendall(&at_rung, &finals),
            coverage: (!top.is_empty()).then(|| stayed as f64 / top.len() as f64),
            best_went_on: top.first().map(|&job| went_on(job)),
        }
    }
}
