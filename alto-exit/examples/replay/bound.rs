//! Whether the adaptive rung keeps its promise: how often it cuts the eventual best, on resampled sweeps.
//!
//! A sweep is two thirds of the runs of one corpus, drawn at random. The bound is checked leaving one task out: the caution
//! is the least that kept the promise on all the other tasks together, and is tried on the one that is left. Below stands
//! what the caution of the default does, which was fitted to none.

use std::collections::BTreeMap;
use std::fmt::Write;

use alto_exit::replay::{Corpus, RecordedRun, Replay, TaskReport};
use alto_exit::{AdaptiveRung, End, Reason};
use rand::SeedableRng;
use rand::seq::index::sample;
use rand_chacha::ChaCha8Rng;

const CAUTIONS: [f64; 9] = [0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.25, 1.5];

/// What came of some sweeps, in sums.
#[derive(Debug, Clone, Copy, Default)]
struct Tally {
    sweeps: usize,
    lost: usize,
    claimed: f64,
    saved: f64,
    regret: f64,
}

/// A line for each task that is left out, and one for the default on each.
pub(crate) fn table(replay: &Replay, corpora: &[Corpus], risk: f64, sweeps: usize) -> Result<String, String> {
    let mut tasks: BTreeMap<&str, Vec<&Corpus>> = BTreeMap::new();
    for corpus in corpora {
        tasks.entry(&corpus.task).or_default().push(corpus);
    }
    let mut tallies: BTreeMap<&str, Vec<Tally>> = BTreeMap::new();
    for (&task, corpora) in &tasks {
        for caution in CAUTIONS {
            let policy = AdaptiveRung { risk, caution, ..AdaptiveRung::default() };
            tallies.entry(task).or_default().push(tally(replay, corpora, &policy, sweeps)?);
        }
    }
    let mut text = format!(
        "{sweeps} resampled sweeps of each task; the best is to be lost in at most {} of them\n{:<18} {:>7}  {:>7}  {:>8}  {:>6}  {:>7}\n",
        percent(risk),
        "left out",
        "caution",
        "claimed",
        "observed",
        "saved",
        "regret"
    );
    let mut line = |task: &str, caution: f64, tally: &Tally| {
        let n = tally.sweeps.max(1) as f64;
        let (claimed, observed) = (percent(tally.claimed / n), percent(tally.lost as f64 / n));
        let (saved, regret) = (percent(tally.saved / n), tally.regret / n);
        writeln!(text, "{task:<18} {caution:>7}  {claimed:>7}  {observed:>8}  {saved:>6}  {regret:>7.4}")
    };
    for (task, own) in &tallies {
        let others = |at: usize| {
            let rates = tallies.iter().filter(|other| other.0 != task).map(|other| other.1[at]);
            rates.fold(Tally::default(), Tally::plus)
        };
        let kept = |at: &usize| others(*at).lost as f64 <= risk * others(*at).sweeps as f64;
        // More caution loses less; beyond the list there is none to choose.
        let at = (0..CAUTIONS.len()).find(kept).unwrap_or(CAUTIONS.len() - 1);
        line(task, CAUTIONS[at], &own[at]).map_err(|error| error.to_string())?;
    }
    let default = AdaptiveRung::default().caution;
    let at = CAUTIONS.iter().position(|&caution| caution == default).unwrap_or_default();
    let all = tallies.values().map(|own| own[at]).fold(Tally::default(), Tally::plus);
    for (task, tally) in tallies.iter().map(|(task, own)| (*task, own[at])).chain([("all, default", all)]) {
        line(task, default, &tally).map_err(|error| error.to_string())?;
    }
    Ok(text)
}

fn tally(replay: &Replay, corpora: &[&Corpus], policy: &AdaptiveRung, sweeps: usize) -> Result<Tally, String> {
    // The same sweeps for every policy.
    let mut random = ChaCha8Rng::seed_from_u64(0);
    let mut tally = Tally::default();
    for sweep in 0..sweeps {
        let runs = &corpora[sweep % corpora.len()].runs;
        let mut drawn = sample(&mut random, runs.len(), (2 * runs.len()).div_ceil(3)).into_vec();
        drawn.sort_unstable();
        let drawn: Vec<&RecordedRun> = drawn.into_iter().map(|run| &runs[run]).collect();
        let curves = replay.run(&drawn, policy).map_err(|error| error.to_string())?;
        let report = TaskReport::new("", &drawn, &curves, policy);
        let spent = curves.iter().filter_map(|curve| match &curve.end {
            Some(End::Exited(Reason::Outpaced { spent, .. })) => Some(*spent),
            _ => None,
        });
        tally = tally.plus(Tally {
            sweeps: 1,
            lost: usize::from(!report.best_survived()),
            claimed: spent.fold(0.0, f64::max),
            saved: report.saved_share(),
            regret: report.regret().unwrap_or(0.0),
        });
    }
    Ok(tally)
}

impl Tally {
    fn plus(self, other: Tally) -> Tally {
        Tally {
            sweeps: self.sweeps + other.sweeps,
            lost: self.lost + other.lost,
            claimed: self.claimed + other.claimed,
            saved: self.saved + other.saved,
            regret: self.regret + other.regret,
        }
    }
}

fn percent(share: f64) -> String {
    format!("{:.1}%", 100.0 * share)
}
