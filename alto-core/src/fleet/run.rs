//! The settings of a fleet, and its loop.

use alto_sched::{Cluster, Scheduler};
use serde::{Deserialize, Serialize};

use super::course::Course;
use super::error::FleetError;
use super::event::Event;
use super::report::Report;
use super::site::Site;

/// Runs many tasks on a cluster: what starts where and when. These are its settings; a run leaves nothing behind in them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fleet {
    /// The devices.
    pub cluster: Cluster,
    /// Tasks are planned anew when a running task's expected end moves by more than this share of the time that was left
    /// to it, or of a tenth of all its time if less was left; at least 0.
    #[serde(default = "tenth")]
    pub threshold: f64,
    /// How many of the tasks that come later may start before a task that waits, whatever the scheduler makes of it; `None`
    /// is no limit. 0 is the order of arrival. A task counts as come once it is released.
    #[serde(default)]
    pub overtaking: Option<u32>,
    /// How many waiting tasks a plan holds at most, the first in line: those that came or were released first; `None` is
    /// all of them. At least 1.
    ///
    /// What planning costs is bounded by it, however many wait. Those behind are in no plan and can't overtake, so that
    /// devices may be idle that only one of them would fit on, and a scheduler has fewer to choose from: 2000 tasks at
    /// once, the longest first, ended 1.45 times as late with 500 in the plan as with all. While others wait, at least
    /// half as many tasks as this are kept in the plan.
    #[serde(default)]
    pub planned: Option<usize>,
    /// Whether tasks that can't run are refused, each with its reason, instead of ending the run.
    #[serde(default)]
    pub skip_bad: bool,
}

fn tenth() -> f64 {
    0.1
}

impl Fleet {
    /// A fleet on this cluster that plans anew when a tenth of what was left has moved, lets tasks overtake without
    /// limit, and ends at the first task that can't run.
    pub fn new(cluster: Cluster) -> Self {
        Self { cluster, threshold: tenth(), overtaking: None, planned: None, skip_bad: false }
    }

    /// Runs all tasks that the site tells of, until it has none to tell of any more.
    ///
    /// A task starts once its planned start has come and its devices are free, and keeps them to its end. All that wait
    /// are planned anew when a task comes, when one ends or fails, when a running task's expected end has moved by more
    /// than [`threshold`](Self::threshold), and when the bound on [`overtaking`](Self::overtaking) asks for it. `observe`
    /// is told what happens, as `tracing` is.
    ///
    /// A task that runs past its expected end is expected to take another tenth of what it has taken, once somebody is to
    /// start on its devices.
    ///
    /// # Errors
    /// A setting is out of range, a task can't run and is not to be skipped, the scheduler gives no plan or a wrong one,
    /// or the site contradicts itself. What happened until then is in the events: [`Report::from_events`]. A task that
    /// fails is no error: it stands in the report.
    pub fn run(
        &self,
        scheduler: &dyn Scheduler,
        site: &mut dyn Site,
        observe: &mut dyn FnMut(&Event),
    ) -> Result<Report, FleetError> {
        let mut course = Course::new(self, scheduler, observe)?;
        loop {
            course.replan()?;
            course.start_due(site)?;
            if course.is_settled() {
                let Some(signals) = site.next(course.next_start()) else { break };
                course.take(site.now(), signals)?;
            }
        }
        course.into_report()
    }

    pub(super) fn check(&self) -> Result<(), FleetError> {
        match (self.threshold, self.planned) {
            (_, Some(0)) => Err(FleetError::Setting { setting: "planned", value: 0.0, expected: "at least 1" }),
            (value, _) if value.is_finite() && value >= 0.0 => Ok(()),
            (value, _) => {
                Err(FleetError::Setting { setting: "threshold", value, expected: "a finite number of at least 0" })
            }
        }
    }
}
