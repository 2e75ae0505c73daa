//! How far a run has come, for people to watch.

use std::time::Duration;

use alto_core::job::Job;
use alto_core::trainer::{Event, EventKind};
use indicatif::{ProgressBar, ProgressStyle};

use crate::tell;

/// One bar over all jobs, with a line for every job that ends; on a terminal. Elsewhere a line for each tenth, too.
#[derive(Debug)]
pub struct Progress {
    bar: ProgressBar,
    names: Vec<String>,
    /// By job, the share of its budget that is used or will never be.
    done: Vec<f64>,
    best: Option<(f64, usize)>,
    tenths: u64,
}

impl Progress {
    /// A display of these jobs, which are the run's, or of as many as a search proposes, on standard error.
    pub fn new(jobs: &[Job], proposed: usize) -> Self {
        let bar = ProgressBar::new(1000).with_style(
            ProgressStyle::with_template("{spinner} {elapsed} {bar:30} {percent}%  {msg}").expect("a valid template"),
        );
        bar.enable_steady_tick(Duration::from_millis(200));
        let names = jobs.iter().map(|job| job.name.clone()).collect();
        Self { bar, names, done: vec![0.0; jobs.len().max(proposed)], best: None, tenths: 0 }
    }

    /// Shows what happened.
    pub fn observe(&mut self, event: &Event) {
        match &event.kind {
            EventKind::Proposed { name, .. } => self.names.push(name.clone()),
            EventKind::Evaluated { job, validation, .. } => {
                // An audited job had been done already.
                self.done[*job] = validation.progress.max(self.done[*job]);
                if self.best.is_none_or(|(loss, _)| validation.loss < loss) {
                    self.best = Some((validation.loss, *job));
                }
                self.advance();
                let tenths = self.bar.position() / 100;
                if tenths > self.tenths && self.bar.is_hidden() {
                    self.say(event.seconds, &format!("{tenths}0% done, {}", self.bar.message()));
                }
                self.tenths = tenths;
            }
            EventKind::Ended { job, step, how } => {
                self.done[*job] = 1.0;
                self.say(event.seconds, &format!("{} ends after {step} steps: {how}", self.names[*job]));
                self.advance();
            }
            EventKind::Skipped { job, step, tensor } => {
                self.say(event.seconds, &format!("{} skips step {step}: {tensor} is not finite", self.names[*job]));
            }
            kind @ (EventKind::Profiled(_)
            | EventKind::RungClosed { .. }
            | EventKind::Refused(_)
            | EventKind::AuditStarted { .. }) => {
                self.say(event.seconds, &kind.to_string());
            }
            _ => {}
        }
    }

    fn advance(&self) {
        let done = self.done.iter().sum::<f64>() / self.done.len() as f64;
        let best = self.best.map(|(loss, job)| format!("best {loss:.4}, {}", self.names[job]));
        self.bar.set_position((1000.0 * done) as u64);
        self.bar.set_message(best.unwrap_or_default());
    }

    fn say(&self, seconds: f64, line: &str) {
        self.bar.suspend(|| tell(format_args!("{seconds:>6.1} s  {line}")));
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
