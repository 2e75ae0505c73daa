//! When a training will end, from what its trainer tells.

use std::collections::BTreeMap;

use crate::job::Job;
use crate::trainer::EventKind;

/// A new expectation is told when it differs from the last by more than this share of the time that was left.
const TOLD: f64 = 0.02;
/// The first is told once this share of all samples has been seen: less says little of the rate.
const ENOUGH: f64 = 0.02;

/// When the training of some jobs will end: the samples that are left over the rate of those seen so far.
///
/// A job that exits takes its samples with it. Nobody knows beforehand how many will exit, so the expected end comes
/// closer with each of them. Jobs that a search proposes are unknown here and don't count. The time until the first step,
/// which goes into evaluations of the untrained adapters, says nothing of the rate.
#[derive(Debug, Clone)]
pub struct Estimate {
    /// Rows of each job's optimizer step.
    rows: Vec<u64>,
    /// Rows that each has seen.
    seen: Vec<u64>,
    /// Rows that are left to those that have not ended.
    left: BTreeMap<usize, u64>,
    /// Rows that all were to see.
    all: u64,
    /// When the first step began, as far as is known.
    began: Option<f64>,
    /// The last expectation that was told.
    end: Option<f64>,
}

impl Estimate {
    /// Before any of these jobs has started.
    pub fn new(jobs: &[Job]) -> Self {
        let left: BTreeMap<usize, u64> = jobs.iter().map(|job| job.samples(job.steps)).enumerate().collect();
        let rows = jobs.iter().map(|job| job.samples(1)).collect();
        Self { rows, seen: vec![0; jobs.len()], all: left.values().sum(), left, began: None, end: None }
    }

    /// Takes an event that came at this time, in seconds on a clock of the caller's, and gives the time at which the
    /// training is expected to end, if that has moved by more than 2% of what was left.
    pub fn observe(&mut self, now: f64, event: &EventKind) -> Option<f64> {
        match event {
            EventKind::Started { .. } | EventKind::Evaluated { .. } if !self.has_trained(event) => {
                self.began = Some(now);
                return None;
            }
            EventKind::Evaluated { job, validation, .. } => self.count(*job, validation.step),
            EventKind::Ended { job, step, .. } => {
                self.count(*job, *step);
                self.left.remove(job);
            }
            _ => return None,
        }
        if self.left.is_empty() {
            // What still goes on is unknown here: jobs of a search, an audit.
            return None;
        }
        let began = self.began?;
        let (seconds, seen) = (now - began, self.seen.iter().sum::<u64>());
        if (seen as f64) < ENOUGH * self.all as f64 || seconds <= 0.0 {
            return None;
        }
        let end = now + self.left.values().sum::<u64>() as f64 * seconds / seen as f64;
        // Of the last moments nobody need know.
        let was_left = |told: f64| (told - now).max(TOLD * (told - began));
        let is_news = self.end.is_none_or(|told| (end - told).abs() > TOLD * was_left(told));
        if is_news {
            self.end = Some(end);
        }
        is_news.then_some(end)
    }

    /// Whether anybody has made a step by this event.
    fn has_trained(&self, event: &EventKind) -> bool {
        let now = matches!(event, EventKind::Evaluated { validation, .. } if validation.step > 0);
        now || self.seen.iter().any(|&seen| seen > 0)
    }

    fn count(&mut self, job: usize, step: u64) {
        let Some(&rows) = self.rows.get(job) else { return };
        let seen = step * rows;
        let more = seen.saturating_sub(self.seen[job]);
        self.seen[job] += more;
        if let Some(left) = self.left.get_mut(&job) {
            *left = left.saturating_sub(more);
        }
    }
}
