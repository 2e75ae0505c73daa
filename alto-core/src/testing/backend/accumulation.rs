//! Micro-batches of one optimizer step, and lanes without rows.

use super::trial::{Tenant, Trial, lane};
use super::{ConformanceError, Suite};
use crate::batch::{Batch, Example};
use crate::job::Job;

/// A lane whose step isn't over stays as it is, while another in the batch trains.
pub(super) fn waits_for_last(suite: &Suite<'_>, check: &'static str) -> Result<(), ConformanceError> {
    let mut trial = suite.trial(check);
    let mut waits = trial.attach(&suite.jobs[0], None)?;
    let mut trains = trial.attach(&suite.jobs[1], None)?;
    // A state that has moments to leave alone.
    trial.round(&mut [&mut waits, &mut trains])?;
    trial.read()?;
    let before = trial.snapshot(&waits)?;
    for micro in 0..3 {
        let mut batch = Batch::default();
        let row = &suite.examples[micro % suite.examples.len()];
        batch.push(lane(Some(waits.slot), 1, 1.0, false), [row]);
        batch.push(lane(Some(trains.slot), 1, row.labelled() as f64, true), [row]);
        trial.step(&batch)?;
        trains.step += 1;
    }
    let after = trial.snapshot(&waits)?;
    trial.same_state(waits.job, "before and after micro-batches that aren't the last", &after, &before, 0.0)?;
    let reports = trial.read()?;
    trial.losses(&reports, &waits, 0)?;
    trial.losses(&reports, &trains, 3)?;
    Ok(())
}

/// Rows in several micro-batches train as the same rows in one.
pub(super) fn adds_up(suite: &Suite<'_>, check: &'static str) -> Result<(), ConformanceError> {
    for job in suite.jobs {
        let rows: Vec<&Example> = suite.examples.iter().cycle().take(3).collect();
        let whole = losses(suite, check, job, &[&rows])?;
        let parts = losses(suite, check, job, &[&rows[..1], &rows[1..]])?;
        suite.trial(check).same_losses(job, 1, &parts, &whole)?;
    }
    Ok(())
}

/// A lane without rows has no say, whether it is alone in the batch or among others.
pub(super) fn empty_lane(suite: &Suite<'_>, check: &'static str) -> Result<(), ConformanceError> {
    let mut trial = suite.trial(check);
    let mut alone = trial.attach(&suite.jobs[0], None)?;
    let expected = trial.train(&mut alone, 3)?;
    trial.detach(alone)?;

    let mut trains = trial.attach(&suite.jobs[0], None)?;
    let empty = trial.attach(&suite.jobs[1], None)?;
    let before = trial.snapshot(&empty)?;
    let nobody = Batch { lanes: vec![lane(Some(empty.slot), 0, 1.0, false)], ..Batch::default() };
    while trains.step < 3 {
        let mut batch = nobody.clone();
        trial.push_next(&mut batch, &mut trains);
        batch.lanes.push(lane(None, 0, 1.0, true));
        trial.step(&batch)?;
        trial.step(&nobody)?;
    }
    let reports = trial.read()?;
    let found = trial.losses(&reports, &trains, 3)?;
    trial.same_losses(trains.job, 1, &found, &expected)?;
    trial.losses(&reports, &empty, 0)?;
    let after = trial.snapshot(&empty)?;
    trial.same_state(empty.job, "before and after batches without its rows", &after, &before, 0.0)
}

/// A step whose last micro-batch has no rows is the step of those before.
pub(super) fn empty_last(suite: &Suite<'_>, check: &'static str) -> Result<(), ConformanceError> {
    for job in suite.jobs {
        let rows = [&suite.examples[0]];
        let whole = losses(suite, check, job, &[&rows])?;
        let parts = losses(suite, check, job, &[&rows, &[]])?;
        suite.trial(check).same_losses(job, 1, &parts, &whole)?;
    }
    Ok(())
}

/// The losses of a job whose every step has these micro-batches.
fn losses(
    suite: &Suite<'_>,
    check: &'static str,
    job: &Job,
    micros: &[&[&Example]],
) -> Result<Vec<f64>, ConformanceError> {
    let mut trial: Trial<'_> = suite.trial(check);
    let mut tenant: Tenant<'_> = trial.attach(job, None)?;
    let divisor = micros.iter().flat_map(|rows| rows.iter()).map(|row| row.labelled()).sum::<usize>() as f64;
    for _ in 0..3 {
        for (micro, rows) in micros.iter().enumerate() {
            let mut batch = Batch::default();
            let last = micro + 1 == micros.len();
            batch.push(lane(Some(tenant.slot), rows.len(), divisor, last), rows.iter().copied());
            trial.step(&batch)?;
        }
        tenant.step += 1;
    }
    let reports = trial.read()?;
    trial.losses(&reports, &tenant, 3)
}
