//! Slots, starts and step reports.

use std::collections::BTreeSet;

use super::trial::{STEPS, Tenant};
use super::{ConformanceError, Suite};

/// Slots stay unique across attaching and detaching.
pub(super) fn slots_are_unique(suite: &Suite<'_>, check: &'static str) -> Result<(), ConformanceError> {
    let mut trial = suite.trial(check);
    let mut seen = BTreeSet::new();
    let mut previous = None;
    for _ in 0..3 {
        for job in suite.jobs {
            let tenant = trial.attach(job, None)?;
            if !seen.insert(tenant.slot) {
                return Err(ConformanceError::RepeatedSlot { check, slot: tenant.slot });
            }
            if let Some(previous) = previous.replace(tenant) {
                trial.detach(previous)?;
            }
        }
    }
    Ok(())
}

/// A fresh job has done no step, has no moments, and starts the same each time.
pub(super) fn starts_follow_from_seeds(suite: &Suite<'_>, check: &'static str) -> Result<(), ConformanceError> {
    let mut trial = suite.trial(check);
    for job in suite.jobs {
        let mut first = trial.attach(job, None)?;
        let start = trial.snapshot(&first)?;
        trial.equal(job, "the steps done at its start", start.step, 0)?;
        trial.equal(job, "the number of its moments at its start", start.moments.len() as u64, 0)?;
        trial.round(&mut [&mut first])?;
        let again = trial.attach(job, None)?;
        let again = trial.detach(again)?;
        trial.same_state(job, "two starts", &again, &start, 0.0)?;
        trial.detach(first)?;
    }
    Ok(())
}

/// One report for each step of each job, with its learning rate; none twice.
pub(super) fn every_step_once(suite: &Suite<'_>, check: &'static str) -> Result<(), ConformanceError> {
    let mut trial = suite.trial(check);
    let mut tenants = Vec::new();
    for job in suite.jobs {
        tenants.push(trial.attach(job, None)?);
    }
    for part in 1..=2 {
        for _ in 0..STEPS / 2 {
            trial.round(&mut tenants.iter_mut().collect::<Vec<_>>())?;
        }
        let reports = trial.read()?;
        for tenant in &tenants {
            trial.losses(&reports, tenant, STEPS / 2)?;
            trial.equal(tenant.job, "the steps it did", tenant.step, part * STEPS / 2)?;
            for report in reports.iter().filter(|report| report.slot == tenant.slot) {
                let expected = tenant.job.learning_rate(report.step - 1);
                let found = report.learning_rate;
                // Wide enough for a backend that keeps learning rates in f32.
                trial.close(tenant.job, "the learning rate", report.step, found, expected, 1e-6)?;
            }
        }
        let own = (STEPS / 2) * tenants.len() as u64;
        trial.equal(tenants[0].job, "the number of reports of it and all others", reports.len() as u64, own)?;
    }
    let again = trial.read()?;
    trial.equal(tenants[0].job, "the number of reports read a second time", again.len() as u64, 0)?;
    for tenant in &tenants {
        let state = trial.snapshot(tenant)?;
        trial.equal(tenant.job, "the steps done in its state", state.step, STEPS)?;
    }
    Ok(())
}

/// Reports of a job that has left are there, also when another has come since.
pub(super) fn survive_detaching(suite: &Suite<'_>, check: &'static str) -> Result<(), ConformanceError> {
    let [first, second, ..] = suite.jobs else { return Ok(()) };
    let mut trial = suite.trial(check);
    let mut alone = trial.attach(first, None)?;
    let expected = trial.train(&mut alone, STEPS)?;
    trial.detach(alone)?;

    let mut leaves = trial.attach(first, None)?;
    for _ in 0..STEPS {
        trial.round(&mut [&mut leaves])?;
    }
    let Tenant { job, slot, step, micro } = leaves;
    trial.detach(leaves)?;
    let mut comes = trial.attach(second, None)?;
    trial.round(&mut [&mut comes])?;
    let reports = trial.read()?;
    let left = Tenant { job, slot, step, micro };
    let found = trial.losses(&reports, &left, STEPS)?;
    trial.same_losses(first, 1, &found, &expected)?;
    trial.losses(&reports, &comes, 1)?;
    Ok(())
}
