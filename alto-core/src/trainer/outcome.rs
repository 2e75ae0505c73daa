//! A run's outcome, from its state at the end.

use std::collections::BTreeMap;

use alto_exit::Curve;

use super::audit::AuditReport;
use super::entry::Entry;
use super::error::{Fault, TrainError};
use super::report::{JobReport, Outcome, REPORT_VERSION, Report, Totals, ValidationSet};
use super::sweep::Sweep;
use crate::batch::Example;
use crate::data::Dataset;

impl Sweep<'_> {
    /// What the run came to.
    pub(super) fn into_outcome(mut self) -> Outcome {
        let seconds = self.started.elapsed().as_secs_f64();
        let mut ran_on = BTreeMap::new();
        let mut came_to = |(index, (entry, curve)): (usize, (Entry, Curve))| {
            let now = entry.into_report(curve);
            match self.exited.remove(&index) {
                // What it was in the competition.
                Some(then) => {
                    ran_on.insert(index, now.0);
                    then
                }
                None => now,
            }
        };
        let entries = self.entries.into_iter().zip(self.curves).enumerate();
        let (jobs, adapters): (Vec<JobReport>, Vec<_>) = entries.map(&mut came_to).unzip();
        let memory = self.memory.profile;
        let totals = Totals {
            seconds,
            profile_seconds: memory.as_ref().map_or(0.0, |profile| profile.seconds),
            samples: jobs.iter().map(|job| job.samples).sum(),
            samples_budgeted: jobs.iter().map(|job| job.job.samples(job.job.steps)).fold(0, u64::saturating_add),
            tokens: jobs.iter().map(|job| job.tokens).sum(),
        };
        let warnings = [("training", self.train), ("validation", self.validation)];
        let warnings = warnings.into_iter().filter_map(|(set, data)| truncated(set, data));
        let mut report = Report {
            version: REPORT_VERSION,
            trainer: self.trainer.clone(),
            policy: format!("{:?}", self.policy),
            memory,
            validation: validation_set(self.validation),
            winner: winner(&jobs),
            search: self.proposals.map(|proposals| format!("{proposals:?}")),
            refused: self.refused,
            audit: None,
            jobs,
            totals,
            warnings: warnings.collect(),
        };
        report.warnings.extend(nothing_learned(&report));
        if report.trainer.audit > 0.0 {
            report.audit = Some(AuditReport::new(&report.jobs, report.winner, ran_on));
        }
        Outcome { report, adapters }
    }

    /// The error of a run that a fault ended, with what it came to until then.
    pub(super) fn into_interrupted(self, source: Fault) -> TrainError {
        for slot in self.entries.iter().filter_map(Entry::slot) {
            if let Err(error) = self.backend.detach(slot) {
                tracing::warn!(slot = slot.0, %error, "a job of the interrupted run stays on the backend");
            }
        }
        let outcome = Box::new(self.into_outcome());
        TrainError::Interrupted { seconds: outcome.report.totals.seconds, outcome, source: Box::new(source) }
    }
}

/// Index of the job of the lowest best loss; the first on ties.
fn winner(jobs: &[JobReport]) -> Option<usize> {
    let losses = jobs.iter().enumerate().filter_map(|(index, job)| Some((index, job.best?.loss)));
    losses.min_by(|a, b| a.1.total_cmp(&b.1)).map(|(index, _)| index)
}

fn nothing_learned(report: &Report) -> Option<String> {
    let JobReport { job, best, .. } = &report.jobs[report.winner?];
    let (best, before) = (best.as_ref()?.loss, report.untrained_loss()?);
    (!report.learned()).then(|| {
        let name = &job.name;
        format!("the best validation loss, {best:.4} of job {name}, is not below {before:.4}, that before training")
    })
}

fn validation_set(data: &Dataset) -> ValidationSet {
    let rows = data.examples();
    let tokens = rows.iter().map(Example::labelled).sum::<usize>() as u64;
    ValidationSet { rows: rows.len() as u64, tokens, bytes: data.labelled_bytes() }
}

fn truncated(set: &str, data: &Dataset) -> Option<String> {
    let cut = data.truncated().len();
    let rows = data.examples().len();
    (cut > 0).then(|| format!("{cut} of {rows} completions of the {set} set are cut off by the context length"))
}
