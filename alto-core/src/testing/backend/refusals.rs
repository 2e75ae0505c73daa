//! What must not be accepted, and leaves everything as it was.

use super::trial::{Trial, lane};
use super::{ConformanceError, Suite};
use crate::backend::{BackendError, Slot};
use crate::batch::Batch;
use crate::job::Job;

/// A slot that was never handed out, and one whose job has left.
pub(super) fn unknown_slot(suite: &Suite<'_>, check: &'static str) -> Result<(), ConformanceError> {
    let mut trial = suite.trial(check);
    let gone = trial.attach(&suite.jobs[0], None)?;
    let stays = trial.attach(&suite.jobs[1], None)?;
    let slot = gone.slot;
    trial.detach(gone)?;
    let before = trial.snapshot(&stays)?;
    for slot in [slot, Slot(u64::MAX)] {
        let batch =
            Batch { lanes: [stays.slot, slot].map(|slot| lane(Some(slot), 1, 1.0, true)).into(), ..two_rows(&trial) };
        let expected = "UnknownSlot";
        let right = |error: &BackendError| matches!(error, BackendError::UnknownSlot { slot: named } if *named == slot);
        trial.refused("step on an unknown slot", expected, right, |backend| backend.step(&batch))?;
        trial.refused("evaluate on an unknown slot", expected, right, |backend| backend.evaluate(&batch))?;
        trial.refused("snapshot of an unknown slot", expected, right, |backend| backend.snapshot(slot))?;
        trial.refused("detach of an unknown slot", expected, right, |backend| backend.detach(slot))?;
    }
    let after = trial.snapshot(&stays)?;
    trial.same_state(stays.job, "before and after a refused step", &after, &before, 0.0)?;
    let reports = trial.read()?;
    trial.equal(stays.job, "the number of reports after refused steps", reports.len() as u64, 0)
}

/// A rank of 0, a learning rate that is no number, no rows.
pub(super) fn impossible_job(suite: &Suite<'_>, check: &'static str) -> Result<(), ConformanceError> {
    let mut trial = suite.trial(check);
    let but = |change: fn(&mut Job)| {
        let mut job = suite.jobs[0].clone();
        change(&mut job);
        job
    };
    let jobs = [
        ("a job of rank 0", but(|job| job.adapter.rank = 0)),
        ("a job whose learning rate is NaN", but(|job| job.optimizer.learning_rate = f64::NAN)),
        ("a job without target modules", but(|job| job.adapter.targets.clear())),
        ("a job of batch size 0", but(|job| job.batch = 0)),
    ];
    for (call, job) in &jobs {
        let right = |error: &BackendError| matches!(error, BackendError::Job(_));
        trial.refused(call, "Job", right, |backend| backend.check(job))?;
        trial.refused(call, "Job", right, |backend| backend.attach(job, None))?;
    }
    for job in suite.jobs {
        trial.done("check", |backend| backend.check(job))?;
    }
    Ok(())
}

/// A state of another rank.
pub(super) fn foreign_state(suite: &Suite<'_>, check: &'static str) -> Result<(), ConformanceError> {
    let mut trial = suite.trial(check);
    let job = &suite.jobs[0];
    let tenant = trial.attach(job, None)?;
    let state = trial.detach(tenant)?;
    let mut wider = job.clone();
    wider.adapter.rank += 1;
    let right = |error: &BackendError| matches!(error, BackendError::StateMismatch { .. });
    let call = "attach with a state of another rank";
    trial.refused(call, "StateMismatch", right, |backend| backend.attach(&wider, Some(state)))
}

/// Lengths that don't add up, a slot in two lanes, a divisor that isn't a positive number.
pub(super) fn contradictory_batch(suite: &Suite<'_>, check: &'static str) -> Result<(), ConformanceError> {
    let mut trial = suite.trial(check);
    let tenant = trial.attach(&suite.jobs[0], None)?;
    let before = trial.snapshot(&tenant)?;
    let divided_by = |divisor| vec![lane(Some(tenant.slot), 2, divisor, true)];
    let good = Batch { lanes: divided_by(1.0), ..two_rows(&trial) };
    let mut short_targets = good.clone();
    short_targets.targets.pop();
    let mut long_row = good.clone();
    long_row.row_lengths[0] += 1;
    let twice = vec![lane(Some(tenant.slot), 1, 1.0, true); 2];
    let few_rows = vec![lane(Some(tenant.slot), 1, 1.0, true)];
    let many_rows = vec![lane(Some(tenant.slot), 3, 1.0, true)];
    let inconsistent = [
        ("step with fewer targets than tokens", short_targets),
        ("step with row lengths over the number of tokens", long_row),
        ("step with rows that belong to no lane", Batch { lanes: few_rows, ..good.clone() }),
        ("step with a lane of more rows than there are", Batch { lanes: many_rows, ..good.clone() }),
        ("step with a slot in two lanes", Batch { lanes: twice, ..good.clone() }),
    ];
    for (call, batch) in &inconsistent {
        let right = |error: &BackendError| matches!(error, BackendError::InconsistentBatch { .. });
        trial.refused(call, "InconsistentBatch", right, |backend| backend.step(batch))?;
    }
    for divisor in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let batch = Batch { lanes: divided_by(divisor), ..good.clone() };
        let right = |error: &BackendError| matches!(error, BackendError::BadDivisor { lane: 0, .. });
        let call = "step with a divisor that is not a positive number";
        trial.refused(call, "BadDivisor", right, |backend| backend.step(&batch))?;
    }
    let after = trial.snapshot(&tenant)?;
    trial.same_state(tenant.job, "before and after a refused step", &after, &before, 0.0)?;
    let reports = trial.read()?;
    trial.equal(tenant.job, "the number of reports after refused steps", reports.len() as u64, 0)
}

/// Two rows that belong to no lane yet.
fn two_rows(trial: &Trial<'_>) -> Batch {
    let mut batch = Batch::default();
    let row = &trial.examples[0];
    batch.push(lane(None, 2, 1.0, true), [row, row]);
    batch.lanes.clear();
    batch
}
