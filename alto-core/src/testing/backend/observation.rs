//! Evaluations, snapshots and memory: looking changes nothing.

use super::trial::{STEPS, Trial, lane};
use super::{ConformanceError, Suite};
use crate::backend::{Memory, Slot};
use crate::batch::Batch;
use crate::job::Job;

/// Sums and counts per lane, of the base model and of empty lanes too; the same rows give the same.
pub(super) fn evaluation_counts(suite: &Suite<'_>, check: &'static str) -> Result<(), ConformanceError> {
    let mut trial = suite.trial(check);
    let tenant = trial.attach(&suite.jobs[0], None)?;
    let batch = every_example(suite, &[Some(tenant.slot), None]);
    let mut with_empty = batch.clone();
    with_empty.lanes.insert(1, lane(None, 0, 1.0, false));
    let whole = loss_of(&mut trial, tenant.job, &batch, 0)?;
    loss_of(&mut trial, tenant.job, &batch, 1)?;
    let again = loss_of(&mut trial, tenant.job, &with_empty, 0)?;
    trial.close(tenant.job, "the evaluated loss", 0, again, whole, trial.tolerance)?;
    loss_of(&mut trial, tenant.job, &with_empty, 2)?;
    let of_empty = trial.evaluate(&with_empty)?.iter().filter(|e| e.lane == 1).map(|e| e.count).sum();
    trial.equal(tenant.job, "the number of labelled tokens in an empty lane", of_empty, 0)
}

/// Evaluations leave the state, the losses and the reports as they would be.
pub(super) fn evaluation_does_not_train(suite: &Suite<'_>, check: &'static str) -> Result<(), ConformanceError> {
    for job in suite.jobs {
        let mut trial = suite.trial(check);
        let mut alone = trial.attach(job, None)?;
        let expected = trial.train(&mut alone, STEPS)?;
        trial.detach(alone)?;

        let mut tenant = trial.attach(job, None)?;
        let batch = every_example(suite, &[Some(tenant.slot)]);
        while tenant.step < STEPS {
            let before = trial.snapshot(&tenant)?;
            let first = loss_of(&mut trial, job, &batch, 0)?;
            let second = loss_of(&mut trial, job, &batch, 0)?;
            trial.close(job, "the evaluated loss", tenant.step, second, first, trial.tolerance)?;
            let after = trial.snapshot(&tenant)?;
            trial.same_state(job, "before and after an evaluation", &after, &before, 0.0)?;
            // Also between the micro-batches of one step.
            let step = tenant.step;
            while tenant.step == step {
                let mut micro = Batch::default();
                trial.push_next(&mut micro, &mut tenant);
                trial.step(&micro)?;
                trial.evaluate(&batch)?;
            }
        }
        let reports = trial.read()?;
        let found = trial.losses(&reports, &tenant, STEPS)?;
        trial.same_losses(job, 1, &found, &expected)?;
    }
    Ok(())
}

/// Snapshots, also in the middle of a step, leave the losses and the reports as they would be.
pub(super) fn snapshot_does_not_disturb(suite: &Suite<'_>, check: &'static str) -> Result<(), ConformanceError> {
    for job in suite.jobs {
        let mut trial = suite.trial(check);
        let mut alone = trial.attach(job, None)?;
        let expected = trial.train(&mut alone, STEPS)?;
        trial.detach(alone)?;

        let mut tenant = trial.attach(job, None)?;
        while tenant.step < STEPS {
            let mut batch = Batch::default();
            trial.push_next(&mut batch, &mut tenant);
            trial.step(&batch)?;
            let state = trial.snapshot(&tenant)?;
            trial.equal(job, "the steps done in its snapshot", state.step, tenant.step)?;
        }
        let reports = trial.read()?;
        let found = trial.losses(&reports, &tenant, STEPS)?;
        trial.same_losses(job, 1, &found, &expected)?;
    }
    Ok(())
}

/// A larger adapter takes no fewer bytes, and the peak isn't under what is in use.
pub(super) fn memory_adds_up(suite: &Suite<'_>, check: &'static str) -> Result<(), ConformanceError> {
    let mut trial = suite.trial(check);
    let job = &suite.jobs[0];
    let mut wider = job.clone();
    wider.adapter.rank *= 2;
    let (bytes, more) = (trial.backend.adapter_bytes(job), trial.backend.adapter_bytes(&wider));
    trial.equal(job, "the bytes of its adapter, if over those at twice the rank", bytes.max(more), more)?;
    for _ in 0..3 {
        let mut tenant = trial.attach(job, None)?;
        trial.round(&mut [&mut tenant])?;
        trial.read()?;
        let Memory { in_use, peak, .. } = trial.backend.memory();
        trial.equal(job, "the peak of memory, if under what is in use", peak.max(in_use), peak)?;
        trial.detach(tenant)?;
    }
    Ok(())
}

/// All examples in each lane, with a divisor that an evaluation must not mind.
fn every_example(suite: &Suite<'_>, slots: &[Option<Slot>]) -> Batch {
    let mut batch = Batch::default();
    for &slot in slots {
        batch.push(lane(slot, suite.examples.len(), 0.0, true), suite.examples);
    }
    batch
}

/// The mean loss of a lane that holds every example; checks its count and that no report comes of it.
fn loss_of(trial: &mut Trial<'_>, job: &Job, batch: &Batch, index: usize) -> Result<f64, ConformanceError> {
    let labelled: usize = trial.examples.iter().map(|example| example.labelled()).sum();
    let evaluations = trial.evaluate(batch)?;
    let losses: Vec<_> = evaluations.iter().filter(|e| e.lane == index && e.metric == "loss").collect();
    trial.equal(job, "the number of evaluations of the loss of one lane", losses.len() as u64, 1)?;
    trial.equal(job, "the number of labelled tokens that an evaluation counts", losses[0].count, labelled as u64)?;
    Ok(losses[0].sum / labelled as f64)
}
