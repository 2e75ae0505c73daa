//! A small trainer over one backend, with comparisons that name the check.

use std::collections::BTreeMap;

use super::ConformanceError;
use crate::adapter::LoraPair;
use crate::backend::{Backend, BackendError, Evaluation, JobState, Slot, StepReport};
use crate::batch::{Batch, Example, Lane, Objective};
use crate::job::{AccumulationMode, Job};
use crate::matrix::Matrix;

/// Optimizer steps that a check trains a job for; even, so that it can be halved.
pub(super) const STEPS: u64 = 6;

/// One backend under one check.
pub(super) struct Trial<'a> {
    pub(super) check: &'static str,
    pub(super) backend: Box<dyn Backend>,
    pub(super) examples: &'a [Example],
    pub(super) tolerance: f64,
}

/// An attached job and how far its data has been read.
pub(super) struct Tenant<'a> {
    pub(super) job: &'a Job,
    pub(super) slot: Slot,
    /// Optimizer steps done.
    pub(super) step: u64,
    /// Micro-batches done of the next one.
    pub(super) micro: usize,
}

impl<'a> Trial<'a> {
    pub(super) fn attach<'j>(&mut self, job: &'j Job, state: Option<JobState>) -> Result<Tenant<'j>, ConformanceError> {
        let step = state.as_ref().map_or(0, |state| state.step);
        let slot = self.done("attach", |backend| backend.attach(job, state))?;
        Ok(Tenant { job, slot, step, micro: 0 })
    }

    pub(super) fn detach(&mut self, tenant: Tenant<'_>) -> Result<JobState, ConformanceError> {
        self.done("detach", |backend| backend.detach(tenant.slot))
    }

    pub(super) fn snapshot(&mut self, tenant: &Tenant<'_>) -> Result<JobState, ConformanceError> {
        self.done("snapshot", |backend| backend.snapshot(tenant.slot))
    }

    pub(super) fn step(&mut self, batch: &Batch) -> Result<(), ConformanceError> {
        self.done("step", |backend| backend.step(batch))
    }

    pub(super) fn read(&mut self) -> Result<Vec<StepReport>, ConformanceError> {
        self.done("read", |backend| backend.read())
    }

    pub(super) fn evaluate(&mut self, batch: &Batch) -> Result<Vec<Evaluation>, ConformanceError> {
        self.done("evaluate", |backend| backend.evaluate(batch))
    }

    /// One optimizer step of every tenant; tenants with fewer micro-batches leave the batch earlier.
    pub(super) fn round(&mut self, tenants: &mut [&mut Tenant<'_>]) -> Result<(), ConformanceError> {
        let most = tenants.iter().map(|tenant| tenant.job.accumulation - tenant.micro).max().unwrap_or(0);
        let goals: Vec<u64> = tenants.iter().map(|tenant| tenant.step + 1).collect();
        for _ in 0..most {
            let mut batch = Batch::default();
            for (tenant, goal) in tenants.iter_mut().zip(&goals) {
                if tenant.step < *goal {
                    self.push_next(&mut batch, tenant);
                }
            }
            self.step(&batch)?;
        }
        Ok(())
    }

    /// The losses of so many steps of one job alone.
    pub(super) fn train(&mut self, tenant: &mut Tenant<'_>, steps: u64) -> Result<Vec<f64>, ConformanceError> {
        for _ in 0..steps {
            self.round(&mut [tenant])?;
        }
        let reports = self.read()?;
        self.losses(&reports, tenant, steps)
    }

    /// The losses of a tenant's last `steps` steps, out of reports that also tell of others.
    pub(super) fn losses(
        &self,
        reports: &[StepReport],
        tenant: &Tenant<'_>,
        steps: u64,
    ) -> Result<Vec<f64>, ConformanceError> {
        let mut own: Vec<_> = reports.iter().filter(|report| report.slot == tenant.slot).collect();
        own.sort_by_key(|report| report.step);
        self.equal(tenant.job, "the number of its reports", own.len() as u64, steps)?;
        for (report, step) in own.iter().zip(tenant.step + 1 - steps..) {
            self.equal(tenant.job, "the step of its next report", report.step, step)?;
        }
        Ok(own.iter().map(|report| report.loss).collect())
    }

    /// Appends the tenant's next micro-batch and moves its cursor.
    pub(super) fn push_next(&self, batch: &mut Batch, tenant: &mut Tenant<'_>) {
        let job = tenant.job;
        let labelled =
            |micro| self.rows(job, tenant.step, micro).iter().map(|row| row.labelled()).sum::<usize>() as f64;
        let divisor = match job.accumulation_mode {
            AccumulationMode::TokenMean => (0..job.accumulation).map(labelled).sum(),
            AccumulationMode::MeanOfMeans => labelled(tenant.micro) * job.accumulation as f64,
        };
        let last = tenant.micro + 1 == job.accumulation;
        let rows = self.rows(job, tenant.step, tenant.micro);
        batch.push(lane(Some(tenant.slot), rows.len(), divisor, last), rows);
        if last {
            (tenant.step, tenant.micro) = (tenant.step + 1, 0);
        } else {
            tenant.micro += 1;
        }
    }

    /// The rows of a micro-batch: they follow from the job's seed and step alone.
    fn rows(&self, job: &Job, step: u64, micro: usize) -> Vec<&'a Example> {
        let n = self.examples.len();
        let first = (job.samples(step) + job.seed % n as u64) as usize + micro * job.batch;
        (first..first + job.batch).map(|row| &self.examples[row % n]).collect()
    }

    pub(super) fn done<T>(
        &mut self,
        call: &'static str,
        action: impl FnOnce(&mut dyn Backend) -> Result<T, BackendError>,
    ) -> Result<T, ConformanceError> {
        let failed = |source| ConformanceError::Failed { check: self.check, call, source: Box::new(source) };
        action(self.backend.as_mut()).map_err(failed)
    }

    pub(super) fn refused<T>(
        &mut self,
        call: &'static str,
        expected: &'static str,
        right: impl FnOnce(&BackendError) -> bool,
        action: impl FnOnce(&mut dyn Backend) -> Result<T, BackendError>,
    ) -> Result<(), ConformanceError> {
        let check = self.check;
        match action(self.backend.as_mut()) {
            Ok(_) => Err(ConformanceError::Accepted { check, call, expected }),
            Err(source) if !right(&source) => {
                Err(ConformanceError::WrongRefusal { check, call, expected, source: Box::new(source) })
            }
            Err(_) => Ok(()),
        }
    }

    pub(super) fn equal(
        &self,
        job: &Job,
        what: &'static str,
        found: u64,
        expected: u64,
    ) -> Result<(), ConformanceError> {
        if found == expected {
            return Ok(());
        }
        Err(ConformanceError::Count { check: self.check, job: job.name.clone(), what, found, expected })
    }

    /// Compares losses from step `first` on.
    pub(super) fn same_losses(
        &self,
        job: &Job,
        first: u64,
        found: &[f64],
        expected: &[f64],
    ) -> Result<(), ConformanceError> {
        self.equal(job, "the number of its losses", found.len() as u64, expected.len() as u64)?;
        for (step, (&found, &expected)) in (first..).zip(found.iter().zip(expected)) {
            self.close(job, "the loss", step, found, expected, self.tolerance)?;
        }
        Ok(())
    }

    /// Compares a number with a relative tolerance; two that aren't finite are the same.
    pub(super) fn close(
        &self,
        job: &Job,
        what: &'static str,
        step: u64,
        found: f64,
        expected: f64,
        tolerance: f64,
    ) -> Result<(), ConformanceError> {
        let neither = !found.is_finite() && !expected.is_finite();
        if neither || (found - expected).abs() <= tolerance * expected.abs() {
            return Ok(());
        }
        let (check, job) = (self.check, job.name.clone());
        Err(ConformanceError::Differs { check, job, what, step, found, expected, tolerance })
    }

    /// Compares step clocks, adapters and moments.
    pub(super) fn same_state(
        &self,
        job: &Job,
        what: &'static str,
        found: &JobState,
        expected: &JobState,
        tolerance: f64,
    ) -> Result<(), ConformanceError> {
        self.equal(job, "the steps done in its state", found.step, expected.step)?;
        let (found, expected) = (tensors(found), tensors(expected));
        for tensor in found.keys().chain(expected.keys()) {
            let difference = match (found.get(tensor), expected.get(tensor)) {
                (Some(found), Some(expected)) => largest_difference(found, expected),
                _ => f64::INFINITY,
            };
            if difference > tolerance {
                let (check, job, tensor) = (self.check, job.name.clone(), tensor.clone());
                return Err(ConformanceError::StateDiffers { check, job, what, tensor, difference, tolerance });
            }
        }
        Ok(())
    }
}

pub(super) fn lane(slot: Option<Slot>, rows: usize, divisor: f64, last: bool) -> Lane {
    Lane { slot, rows, objective: Objective::NegativeLogLikelihood, divisor, last }
}

fn tensors(state: &JobState) -> BTreeMap<String, &Matrix> {
    fn factors<'s>(all: &mut BTreeMap<String, &'s Matrix>, module: &str, kind: &str, pair: &'s LoraPair) {
        all.insert(format!("{kind}{module}.lora_A"), &pair.a);
        all.insert(format!("{kind}{module}.lora_B"), &pair.b);
    }
    let mut all = BTreeMap::new();
    for (module, pair) in &state.adapter.modules {
        factors(&mut all, module, "", pair);
    }
    for (module, moments) in &state.moments {
        factors(&mut all, module, "first moment of ", &moments.first);
        factors(&mut all, module, "second moment of ", &moments.second);
    }
    all
}

/// The largest difference of two entries, relative to the largest expected one.
fn largest_difference(found: &Matrix, expected: &Matrix) -> f64 {
    if (found.rows(), found.columns()) != (expected.rows(), expected.columns()) {
        return f64::INFINITY;
    }
    let largest = expected.data().iter().fold(0.0_f64, |most, &x| most.max(f64::from(x).abs()));
    let difference = |(&found, &expected): (&f32, &f32)| match found == expected || found.is_nan() && expected.is_nan()
    {
        true => 0.0,
        false => (f64::from(found) - f64::from(expected)).abs() / largest,
    };
    let differences = found.data().iter().zip(expected.data()).map(difference);
    // A NaN against a number is as far as can be.
    differences.fold(0.0, |most, x| if x.is_nan() { f64::INFINITY } else { most.max(x) })
}
