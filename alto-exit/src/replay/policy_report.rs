//! What a policy did to several tasks.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::corpus::Corpus;
use super::play::{Replay, ReplayError};
use super::rung_report::RungReport;
use super::task_report::TaskReport;
use crate::policy::ExitPolicy;
use crate::version;

/// The version of a [`PolicyReport`] in a file.
pub const POLICY_REPORT_VERSION: u32 = 1;

/// What one policy saved and gave up, task by task. [`table`](Self::table) shows it to people.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PolicyReport {
    /// [`POLICY_REPORT_VERSION`].
    #[serde(deserialize_with = "version::known::<POLICY_REPORT_VERSION, _>")]
    pub version: u32,
    /// What the policy is called.
    pub policy: String,
    /// How it was replayed.
    pub replay: Replay,
    /// Each task's.
    pub tasks: Vec<TaskReport>,
}

/// Several tasks together. Sums are of samples and jobs, means are over the tasks that have the number.
#[derive(Debug, Clone, PartialEq)]
pub struct Total {
    /// How many tasks there are.
    pub tasks: usize,
    /// How many jobs.
    pub jobs: usize,
    /// Samples saved, as a share of all budgets.
    pub saved: f64,
    /// The same by the word for the reason; these add up to `saved`.
    pub saved_by: BTreeMap<String, f64>,
    /// Tasks of which the best loss is kept.
    pub best_survived: usize,
    /// Mean regret, in nats per token.
    pub regret: Option<f64>,
    /// The largest regret.
    pub worst_regret: Option<f64>,
    /// Mean of Spearman's correlation at each task's first rung.
    pub spearman: Option<f64>,
    /// Mean of Kendall's.
    pub kendall: Option<f64>,
    /// Mean top-25% coverage at each task's first rung.
    pub coverage: Option<f64>,
    /// Tasks of which the best job went on from the first rung, and tasks that have one.
    pub best_went_on: (usize, usize),
    /// Late bloomers that were killed.
    pub late_bloomers: usize,
}

impl Replay {
    /// What the policy does to each of these tasks.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub fn report(
        &self,
        name: impl Into<String>,
        policy: &dyn ExitPolicy,
        corpora: &[Corpus],
    ) -> Result<PolicyReport, ReplayError> {
        let report = |corpus: &Corpus| {
            let curves = self.run(&corpus.runs, policy)?;
            Ok(TaskReport::new(corpus.label(), &corpus.runs, &curves, policy))
        };
        let tasks = corpora.iter().map(report).collect::<Result<_, ReplayError>>()?;
        Ok(PolicyReport { version: POLICY_REPORT_VERSION, policy: name.into(), replay: *self, tasks })
    }
}

impl PolicyReport {
    /// All tasks together.
    pub fn total(&self) -> Total {
        let tasks = &self.tasks;
        let budget = tasks.iter().map(|task| task.budget).fold(0, u64::saturating_add).max(1) as f64;
        let mut saved_by = BTreeMap::new();
        for (word, &samples) in tasks.iter().flat_map(|task| &task.saved) {
            *saved_by.entry(word.clone()).or_insert(0) += samples;
        }
        let regrets = || tasks.iter().filter_map(TaskReport::regret);
        let rungs = || tasks.iter().filter_map(|task| task.rungs.first());
        let mean_of = |number: fn(&RungReport) -> Option<f64>| mean(rungs().filter_map(number));
        let went_on = || rungs().filter_map(|rung| rung.best_went_on);
        Total {
            tasks: tasks.len(),
            jobs: tasks.iter().map(|task| task.jobs).sum(),
            saved: saved_by.values().sum::<u64>() as f64 / budget,
            saved_by: saved_by.into_iter().map(|(word, samples)| (word, samples as f64 / budget)).collect(),
            best_survived: tasks.iter().filter(|task| task.best_survived()).count(),
            regret: mean(regrets()),
            worst_regret: regrets().reduce(f64::max),
            spearman: mean_of(|rung| rung.spearman),
            kendall: mean_of(|rung| rung.kendall),
            coverage: mean_of(|rung| rung.coverage),
            best_went_on: (went_on().filter(|&went_on| went_on).count(), went_on().count()),
            late_bloomers: tasks.iter().map(|task| task.late_bloomers).sum(),
        }
    }
}

fn mean(numbers: impl Iterator<Item = f64>) -> Option<f64> {
    let (sum, count) = numbers.fold((0.0, 0_u32), |(sum, count), number| (sum + number, count + 1));
    (count > 0).then(|| sum / f64::from(count))
}
