//! When a training will end, from what its trainer tells.

use std::collections::BTreeMap;

use crate::job::Job;
use crate::trainer::EventKind;

/// A new expectation is told when it differs from the last by more than this share of the time that was left.
const TOLD: f64 = 0.02;
/// The first is told once this share of all samples has been seen: less says little of the rate.
const ENOUGH: f64 = 0.02;
/// What comes within this share of the time so far belongs together.
const TOGETHER: f64 = 1e-3;

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
    /// When the first and the last of the events came that belong together.
    round: Option<(f64, f64)>,
    /// The last expectation that was told.
    end: Option<f64>,
}

impl Estimate {
    /// Before any of these jobs has started.
    pub fn new(jobs: &[Job]) -> Self {
        let left: BTreeMap<usize, u64> = jobs.iter().map(|job| job.samples(job.steps)).enumerate().collect();
        let rows = jobs.iter().map(|job| job.samples(1)).collect();
        let (seen, all) = (vec![0; jobs.len()], left.values().sum());
        Self { rows, seen, all, left, began: None, round: None, end: None }
    }

    /// Takes an event that came at this time, in seconds on a clock of the caller's, and gives the time at which the
    /// training is expected to end, if that has moved by more than 2% of what was left.
    ///
    /// Jobs that train together are evaluated together, one event after the other: what they say is told when the next
    /// event comes after them.
    pub fn observe(&mut self, now: f64, event: &EventKind) -> Option<f64> {
        match event {
            EventKind::Started { .. } | EventKind::Evaluated { .. } if !self.has_trained(event) => {
                self.began = Some(now);
                return None;
            }
            EventKind::Evaluated { .. } | EventKind::Ended { .. } => {}
            _ => return None,
        }
        let began = self.began?;
        let told = match self.round {
            Some((first, last)) if now - first > TOGETHER * (now - began) => {
                self.round = Some((now, now));
                self.tell(began, last, now)
            }
            Some((first, _)) => {
                self.round = Some((first, now));
                None
            }
            None => {
                self.round = Some((now, now));
                None
            }
        };
        match event {
            EventKind::Evaluated { job, validation, .. } => self.count(*job, validation.step),
            EventKind::Ended { job, step, .. } => {
                self.count(*job, *step);
                self.left.remove(job);
            }
            _ => {}
        }
        told
    }

    /// What was known at `last`, if it is news.
    fn tell(&mut self, began: f64, last: f64, now: f64) -> Option<f64> {
        let (seconds, seen) = (last - began, self.seen.iter().sum::<u64>());
        // Once all have ended, what still goes on is unknown here: jobs of a search, an audit.
        if self.left.is_empty() || (seen as f64) < ENOUGH * self.all as f64 || seconds <= 0.0 {
            return None;
        }
        let end = (last + self.left.values().sum::<u64>() as f64 * seconds / seen as f64).max(now);
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
