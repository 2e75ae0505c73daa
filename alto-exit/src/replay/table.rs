//! Reports as tables that people read.

use std::fmt;

use super::policy_report::{PolicyReport, Total};
use super::task_report::TaskReport;

/// A report in plain text; see [`PolicyReport::table`] and [`comparison`].
#[derive(Debug)]
pub struct Table {
    title: String,
    lines: Vec<Vec<String>>,
}

impl PolicyReport {
    /// A line for each task and one for all together, in plain text.
    ///
    /// Correlations and coverage are of the policy's first rung. The last line has sums of samples and jobs, and means of
    /// the rest.
    pub fn table(&self) -> Table {
        let total = self.total();
        let words: Vec<String> = total.saved_by.keys().cloned().collect();
        let names = ["best kept", "regret", "rung", "went on", "spearman", "kendall", "top 25%", "late killed"];
        let header = ["task", "jobs", "saved"].into_iter().chain(words.iter().map(String::as_str)).chain(names);
        let mut lines = vec![header.map(str::to_owned).collect()];
        lines.extend(self.tasks.iter().map(|task| cells(task, &words)));
        lines.push(total_cells(&total, &words));
        let slots = self.replay.slots.map_or("as many slots as jobs".to_owned(), |slots| format!("{slots} slots"));
        Table { title: format!("{}, {slots}", self.policy), lines }
    }
}

/// Head of the one column besides the first that holds words.
const BY_REASON: &str = "saved by reason";

/// A line for each policy, of all its tasks together.
///
/// Shares saved are of all budgets, by reason; `regret` is the mean over the tasks, in nats per token.
pub fn comparison(reports: &[PolicyReport]) -> Table {
    let totals: Vec<Total> = reports.iter().map(PolicyReport::total).collect();
    let header = ["policy", "saved", "best kept", "regret", "worst", "spearman", "kendall", "top 25%", "late killed"];
    let mut lines = vec![header.into_iter().chain([BY_REASON]).map(str::to_owned).collect()];
    for (report, total) in reports.iter().zip(&totals) {
        let mut reasons: Vec<(&String, &f64)> = total.saved_by.iter().collect();
        reasons.sort_by(|a, b| b.1.total_cmp(a.1));
        let reasons: Vec<String> = reasons.iter().map(|(word, share)| format!("{word} {}", percent(**share))).collect();
        lines.push(vec![
            report.policy.clone(),
            percent(total.saved),
            format!("{}/{}", total.best_survived, total.tasks),
            decimals(total.regret, 4),
            decimals(total.worst_regret, 4),
            decimals(total.spearman, 2),
            decimals(total.kendall, 2),
            total.coverage.map_or("-".into(), percent),
            total.late_bloomers.to_string(),
            reasons.join(", "),
        ]);
    }
    Table { title: format!("{} tasks together", totals.first().map_or(0, |total| total.tasks)), lines }
}

fn cells(task: &TaskReport, words: &[String]) -> Vec<String> {
    let share = |samples: u64| percent(samples as f64 / task.budget.max(1) as f64);
    let rung = task.rungs.first();
    let mut line = vec![task.task.clone(), task.jobs.to_string(), percent(task.saved_share())];
    line.extend(words.iter().map(|word| task.saved.get(word).map_or("-".into(), |&samples| share(samples))));
    line.extend([
        if task.best_survived() { "yes" } else { "no" }.into(),
        decimals(task.regret(), 4),
        rung.map_or("-".into(), |rung| rung.mark.to_string()),
        rung.map_or("-".into(), |rung| format!("{}/{}", rung.went_on, rung.jobs)),
        decimals(rung.and_then(|rung| rung.spearman), 2),
        decimals(rung.and_then(|rung| rung.kendall), 2),
        rung.and_then(|rung| rung.coverage).map_or("-".into(), percent),
        task.late_bloomers.to_string(),
    ]);
    line
}

fn total_cells(total: &Total, words: &[String]) -> Vec<String> {
    let mut line = vec!["together".to_owned(), total.jobs.to_string(), percent(total.saved)];
    line.extend(words.iter().map(|word| percent(total.saved_by[word])));
    line.extend([
        format!("{}/{}", total.best_survived, total.tasks),
        decimals(total.regret, 4),
        String::new(),
        String::new(),
        decimals(total.spearman, 2),
        decimals(total.kendall, 2),
        total.coverage.map_or("-".into(), percent),
        total.late_bloomers.to_string(),
    ]);
    line
}

fn percent(share: f64) -> String {
    format!("{:.1}%", 100.0 * share)
}

fn decimals(number: Option<f64>, decimals: usize) -> String {
    number.map_or("-".into(), |number| format!("{number:.decimals$}"))
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.title)?;
        let width = |column: usize| self.lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..self.lines[0].len()).map(width).collect();
        for line in &self.lines {
            // Names to the left, numbers to the right.
            let mut text = format!("{:<1$}", line[0], widths[0]);
            for ((cell, &width), head) in line.iter().zip(&widths).zip(&self.lines[0]).skip(1) {
                text += &if head == BY_REASON { format!("  {cell}") } else { format!("  {cell:>width$}") };
            }
            writeln!(f, "{}", text.trim_end())?;
        }
        Ok(())
    }
}
