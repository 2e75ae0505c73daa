//! What a run of a fleet came to.

use alto_sched::Placement;
use serde::{Deserialize, Serialize};

use super::course::Course;
use super::error::FleetError;
use super::run::Fleet;
use crate::version;

/// The version of a [`Report`] in a file.
pub const REPORT_VERSION: u32 = 1;

/// What every task came to, and by which choices. [`table`](Self::table) shows it to people.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Report {
    /// [`REPORT_VERSION`].
    #[serde(deserialize_with = "version::known::<REPORT_VERSION, _>")]
    pub version: u32,
    /// The run's settings.
    pub fleet: Fleet,
    /// The scheduler with its settings, as its `Debug` prints it.
    pub scheduler: String,
    /// Every task, in the order in which they came.
    pub tasks: Vec<TaskReport>,
    /// Sums over the run.
    pub totals: Totals,
}

/// What one task came to. Times are in seconds on the site's clock.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TaskReport {
    /// Its name.
    pub name: String,
    /// When it came.
    pub arrived: f64,
    /// When it started; `None` if it was refused.
    pub started: Option<f64>,
    /// When it ended or failed.
    pub ended: Option<f64>,
    /// When it was to end, as planned at its start.
    pub planned: Option<f64>,
    /// The devices that it had, ascending.
    pub devices: Vec<u32>,
    /// How many tasks that came later started before it.
    pub overtaken: u32,
    /// Seconds spent on measuring how long it takes.
    pub profile_seconds: f64,
    /// Why it failed or was refused.
    pub failure: Option<String>,
}

/// Sums over a run.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Totals {
    /// Tasks that ended without a failure.
    pub finished: u64,
    /// Tasks that failed.
    pub failed: u64,
    /// Tasks that were refused.
    pub refused: u64,
    /// Seconds from the first arrival of a task that ran to the last end.
    pub makespan: f64,
    /// Device-seconds in use, over those that all devices have during the makespan, 0 to 1.
    pub utilization: f64,
    /// Mean over the tasks that ran of the seconds from arrival to start.
    pub mean_wait: f64,
    /// The longest of these.
    pub longest_wait: f64,
    /// How often the waiting tasks were planned anew.
    pub replans: u64,
    /// Seconds spent on that, on the machine that plans.
    pub planning_seconds: f64,
    /// Seconds spent on measuring how long tasks take.
    pub profile_seconds: f64,
    /// Seconds that tasks ran, one by one.
    pub run_seconds: f64,
}

impl Totals {
    /// Share of the time of all tasks that measuring how long they take took, 0 to 1.
    pub fn profile_share(&self) -> f64 {
        let all = self.profile_seconds + self.run_seconds;
        if all > 0.0 { self.profile_seconds / all } else { 0.0 }
    }
}

impl TaskReport {
    pub(super) fn new(name: &str, now: f64, profile_seconds: f64) -> Self {
        Self {
            name: name.to_owned(),
            arrived: now,
            started: None,
            ended: None,
            planned: None,
            devices: vec![],
            overtaken: 0,
            profile_seconds,
            failure: None,
        }
    }

    pub(super) fn start(&mut self, placement: &Placement, overtaken: u32) {
        (self.started, self.planned) = (Some(placement.start), Some(placement.end));
        self.devices.clone_from(&placement.devices);
        self.overtaken = overtaken;
    }

    /// Seconds from its arrival to its start.
    pub fn wait(&self) -> Option<f64> {
        Some(self.started? - self.arrived)
    }

    /// Seconds from its start to its end.
    pub fn run(&self) -> Option<f64> {
        Some(self.ended? - self.started?)
    }
}

impl Course<'_> {
    /// What the run came to.
    pub(super) fn into_report(self) -> Result<Report, FleetError> {
        if let Some(error) = self.unfinished() {
            return Err(error);
        }
        let totals = Totals {
            replans: self.replans,
            planning_seconds: self.planning.as_secs_f64(),
            ..totals(self.fleet, &self.tasks)
        };
        Ok(Report {
            version: REPORT_VERSION,
            fleet: self.fleet.clone(),
            scheduler: format!("{:?}", self.scheduler),
            tasks: self.tasks,
            totals,
        })
    }
}

fn totals(fleet: &Fleet, tasks: &[TaskReport]) -> Totals {
    let ran = || tasks.iter().filter(|task| task.started.is_some());
    let first = ran().map(|task| task.arrived).fold(f64::INFINITY, f64::min);
    let last = ran().filter_map(|task| task.ended).fold(first, f64::max);
    let makespan = if last > first { last - first } else { 0.0 };
    let devices: usize = fleet.cluster.nodes.iter().map(|node| node.devices.len()).sum();
    let busy: f64 = ran().filter_map(|task| Some(task.run()? * task.devices.len() as f64)).sum();
    let waits = || ran().filter_map(TaskReport::wait);
    let failed = ran().filter(|task| task.failure.is_some()).count() as u64;
    Totals {
        finished: ran().count() as u64 - failed,
        failed,
        refused: tasks.len() as u64 - ran().count() as u64,
        makespan,
        utilization: if makespan > 0.0 { busy / (devices as f64 * makespan) } else { 0.0 },
        mean_wait: waits().sum::<f64>() / ran().count().max(1) as f64,
        longest_wait: waits().fold(0.0, f64::max),
        profile_seconds: tasks.iter().map(|task| task.profile_seconds).sum(),
        run_seconds: ran().filter_map(TaskReport::run).sum(),
        ..Totals::default()
    }
}
