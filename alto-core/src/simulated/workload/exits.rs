//! What early exit leaves of each job, as recorded runs have it.

use alto_exit::replay::{Corpus, RecordedRun, Replay};
use alto_exit::{Curve, End, ExitPolicy};

use super::error::WorkloadError;

/// For each corpus, the share of its steps that each run makes before this policy ends it, replayed so.
///
/// # Errors
/// A policy or a run that can't be replayed.
pub fn kept_shares(
    corpora: &[Corpus],
    policy: &dyn ExitPolicy,
    replay: &Replay,
) -> Result<Vec<Vec<f64>>, WorkloadError> {
    let shares = |corpus: &Corpus| {
        let curves = replay.run(&corpus.runs, policy)?;
        Ok(corpus.runs.iter().zip(&curves).map(|(run, curve)| share(run, curve)).collect())
    };
    corpora.iter().map(shares).collect()
}

fn share(run: &RecordedRun, curve: &Curve) -> f64 {
    let steps = match &curve.end {
        Some(End::Finished) => run.steps,
        Some(End::Failed { step, .. }) => *step,
        _ => curve.evaluations.last().map_or(0, |last| last.step),
    };
    run.progress(steps)
}
