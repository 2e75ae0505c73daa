//! How much of the final ranking shows at a rung, by where it is and how many stay.

use std::fmt::Write;

use alto_exit::Underperforming;
use alto_exit::replay::{Corpus, PolicyReport, Replay, Total};

const MARKS: [f64; 9] = [0.01, 0.02, 0.03, 0.04, 0.05, 0.075, 0.1, 0.15, 0.2];
const KEEPS: [f64; 3] = [0.125, 0.25, 0.5];

/// The rungs' worth, each with its line; the paper's figure has the same axes.
pub(crate) fn table(replay: &Replay, corpora: &[Corpus], json: bool) -> Result<String, String> {
    let mut reports: Vec<PolicyReport> = vec![];
    let mut text = format!(
        "{:<6}  {:<6}  {:>8}  {:>7}  {:>7}  {:>10}  {:>7}  {:>6}\n",
        "rung", "stay", "spearman", "kendall", "top 25%", "best stays", "regret", "saved"
    );
    for mark in MARKS {
        for keep in KEEPS {
            let policy = Underperforming { mark, keep };
            let name = format!("underperforming, mark {mark}, keep {keep}");
            let report = replay.report(name, &policy, corpora).map_err(|error| error.to_string())?;
            let Total { spearman, kendall, coverage, best_went_on, regret, saved, .. } = report.total();
            let number = |value: Option<f64>, decimals| value.map_or("-".into(), |value| format!("{value:.decimals$}"));
            let percent = |share: f64| format!("{:.1}%", 100.0 * share);
            writeln!(
                text,
                "{:<6}  {:<6}  {:>8}  {:>7}  {:>7}  {:>10}  {:>7}  {:>6}",
                percent(mark),
                percent(keep),
                number(spearman, 2),
                number(kendall, 2),
                coverage.map_or("-".into(), percent),
                format!("{}/{}", best_went_on.0, best_went_on.1),
                number(regret, 4),
                percent(saved),
            )
            .map_err(|error| error.to_string())?;
            reports.push(report);
        }
    }
    if json {
        return serde_json::to_string_pretty(&reports).map(|text| text + "\n").map_err(|error| error.to_string());
    }
    Ok(text)
}
