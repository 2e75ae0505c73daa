//! As if alone: whoever shares the batch, and whoever had the place before.

use super::trial::STEPS;
use super::{ConformanceError, Suite};
use crate::job::Job;

/// All together; then with one that joins later and one that leaves half-way.
pub(super) fn as_if_alone(suite: &Suite<'_>, check: &'static str) -> Result<(), ConformanceError> {
    let mut alone = Vec::new();
    for job in suite.jobs {
        alone.push(losses_alone(suite, check, job)?);
    }
    let mut trial = suite.trial(check);
    let mut tenants = Vec::new();
    for job in suite.jobs {
        tenants.push(trial.attach(job, None)?);
    }
    for _ in 0..STEPS {
        trial.round(&mut tenants.iter_mut().collect::<Vec<_>>())?;
    }
    let reports = trial.read()?;
    for (tenant, expected) in tenants.iter().zip(&alone) {
        let found = trial.losses(&reports, tenant, STEPS)?;
        trial.same_losses(tenant.job, 1, &found, expected)?;
    }

    let [stays, leaves, ..] = suite.jobs else { return Ok(()) };
    let joins = &suite.jobs[suite.jobs.len() - 1];
    let half = STEPS / 2;
    let mut trial = suite.trial(check);
    let mut staying = trial.attach(stays, None)?;
    let mut leaving = trial.attach(leaves, None)?;
    for _ in 0..half {
        trial.round(&mut [&mut staying, &mut leaving])?;
    }
    let mut joining = trial.attach(joins, None)?;
    trial.round(&mut [&mut joining, &mut leaving, &mut staying])?;
    trial.detach(leaving)?;
    for _ in half + 1..STEPS {
        trial.round(&mut [&mut joining, &mut staying])?;
    }
    let reports = trial.read()?;
    let found = trial.losses(&reports, &staying, STEPS)?;
    trial.same_losses(stays, 1, &found, &alone[0])?;
    let found = trial.losses(&reports, &joining, half)?;
    trial.same_losses(joins, 1, &found, &alone[suite.jobs.len() - 1][..half as usize])
}

/// The place of a job that left, in the middle of a step, goes to another.
pub(super) fn inherits_nothing(suite: &Suite<'_>, check: &'static str) -> Result<(), ConformanceError> {
    for (job, former) in suite.jobs.iter().zip(suite.jobs.iter().cycle().skip(1)) {
        let expected = losses_alone(suite, check, job)?;
        let mut trial = suite.trial(check);
        let mut tenant = trial.attach(former, None)?;
        trial.train(&mut tenant, STEPS / 2)?;
        let mut unfinished = crate::batch::Batch::default();
        trial.push_next(&mut unfinished, &mut tenant);
        unfinished.lanes[0].last = false;
        trial.step(&unfinished)?;
        trial.detach(tenant)?;
        let mut tenant = trial.attach(job, None)?;
        let found = trial.train(&mut tenant, STEPS)?;
        trial.same_losses(job, 1, &found, &expected)?;
    }
    Ok(())
}

fn losses_alone(suite: &Suite<'_>, check: &'static str, job: &Job) -> Result<Vec<f64>, ConformanceError> {
    let mut trial = suite.trial(check);
    let mut tenant = trial.attach(job, None)?;
    trial.train(&mut tenant, STEPS)
}
