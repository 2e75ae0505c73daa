//! Tasks onto a virtual site.

use std::sync::Arc;

use super::error::StudyError;
use super::training::Trained;
use super::trainings::Trainings;
use crate::fleet::{Timeline, Virtual};
use crate::simulated::systems::System;
use crate::simulated::workload::{TraceTask, TuningTask, Work};

impl Trainings<'_> {
    /// Has this task come to a site at its release, to be trained by this system with the exits of this corpus. It is
    /// planned with what it takes if no job exits, since nobody knows beforehand which will.
    ///
    /// Gives what it comes to.
    ///
    /// # Errors
    /// As [`of`](Self::of).
    pub fn submit(
        &mut self,
        site: &mut Virtual,
        task: &TuningTask,
        system: System,
        corpus: usize,
    ) -> Result<Arc<Trained>, StudyError> {
        let planned = self.of(task, system, None)?.seconds();
        let trained = self.of(task, system, Some(corpus))?;
        let becomes = trained.clone();
        site.submit(task.release, task.to_task(None, planned), move |_| becomes.timeline.clone());
        Ok(trained)
    }

    /// The same for a task of a trace, on devices of its kind. One that has a duration takes as long as that.
    ///
    /// # Errors
    /// As [`of`](Self::of).
    pub fn submit_traced(
        &mut self,
        site: &mut Virtual,
        task: &TraceTask,
        system: System,
        corpus: usize,
    ) -> Result<(), StudyError> {
        let (planned, timeline) = match &task.work {
            Work::Duration(seconds) => (*seconds, Timeline::lasting(*seconds)),
            Work::Tuning(tuning) => {
                let planned = self.of(tuning, system, None)?.seconds();
                (planned, self.of(tuning, system, Some(corpus))?.timeline.clone())
            }
        };
        site.submit(task.arrival, task.to_task(planned), move |_| timeline);
        Ok(())
    }
}
