//! Leaving and coming back.

use super::trial::STEPS;
use super::{ConformanceError, Suite};

/// Detached half-way and attached again: to the same backend while another trains, and to a fresh one.
pub(super) fn goes_on(suite: &Suite<'_>, check: &'static str) -> Result<(), ConformanceError> {
    let half = STEPS / 2;
    for (job, other) in suite.jobs.iter().zip(suite.jobs.iter().cycle().skip(1)) {
        let mut trial = suite.trial(check);
        let mut uninterrupted = trial.attach(job, None)?;
        let expected = trial.train(&mut uninterrupted, STEPS)?;
        let end = trial.detach(uninterrupted)?;

        let mut before = trial.attach(job, None)?;
        let found = trial.train(&mut before, half)?;
        trial.same_losses(job, 1, &found, &expected[..half as usize])?;
        let snapshot = trial.snapshot(&before)?;
        let state = trial.detach(before)?;
        trial.same_state(job, "a snapshot and the state at detaching", &snapshot, &state, 0.0)?;
        trial.equal(job, "the steps done at detaching", state.step, half)?;

        let mut between = trial.attach(other, None)?;
        trial.train(&mut between, half)?;
        let mut back = trial.attach(job, Some(state.clone()))?;
        let attached = trial.snapshot(&back)?;
        trial.same_state(job, "the state at attaching and a snapshot at once", &attached, &state, 0.0)?;
        let found = trial.train(&mut back, half)?;
        trial.same_losses(job, half + 1, &found, &expected[half as usize..])?;
        let found = trial.detach(back)?;
        trial.same_state(job, "the end of an interrupted run", &found, &end, trial.tolerance)?;

        let mut elsewhere = suite.trial(check);
        let mut back = elsewhere.attach(job, Some(state))?;
        let found = elsewhere.train(&mut back, half)?;
        elsewhere.same_losses(job, half + 1, &found, &expected[half as usize..])?;
    }
    Ok(())
}
