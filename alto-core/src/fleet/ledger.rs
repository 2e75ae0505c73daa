//! What every task has come to, kept by the events alone.

use super::error::FleetError;
use super::event::{Event, EventKind};
use super::report::TaskReport;

/// The tasks of a run so far. A run and the reader of its log keep it in the same way.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    pub(super) tasks: Vec<TaskReport>,
    pub(super) replans: u64,
    /// When the last event was.
    pub(super) now: f64,
}

impl Ledger {
    pub(super) fn note(&mut self, event: &Event) -> Result<(), FleetError> {
        self.now = event.seconds;
        match &event.kind {
            EventKind::Arrived { task, needs, profile_seconds } => {
                self.enlist(*task, &needs.name)?.profile_seconds = *profile_seconds;
            }
            EventKind::Refused { task, name, error } => {
                let report = match *task < self.tasks.len() {
                    true => self.task(*task)?,
                    false => self.enlist(*task, name)?,
                };
                report.failure = Some(error.clone());
            }
            EventKind::Expected { .. } => {}
            EventKind::Replanned(_) => self.replans += 1,
            EventKind::Started { task, placement, overtaken } => {
                let report = self.task(*task)?;
                (report.started, report.planned) = (Some(placement.start), Some(placement.end));
                report.devices.clone_from(&placement.devices);
                report.overtaken = *overtaken;
            }
            EventKind::Ended { task } => self.task(*task)?.ended = Some(event.seconds),
            EventKind::Failed { task, error } => {
                let report = self.task(*task)?;
                (report.ended, report.failure) = (Some(event.seconds), Some(error.clone()));
            }
        }
        Ok(())
    }

    /// Tasks are numbered in the order in which they come.
    fn enlist(&mut self, task: usize, name: &str) -> Result<&mut TaskReport, FleetError> {
        if task == self.tasks.len() {
            self.tasks.push(TaskReport::new(name, self.now));
        }
        self.task(task)
    }

    fn task(&mut self, task: usize) -> Result<&mut TaskReport, FleetError> {
        let arrived = self.tasks.len();
        self.tasks.get_mut(task).ok_or(FleetError::NotArrived { task, arrived })
    }
}
