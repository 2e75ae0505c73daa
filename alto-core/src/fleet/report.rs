//! What a run of a fleet came to.

use std::time::Duration;

use alto_sched::Scheduler;
use serde::{Deserialize, Serialize};

use super::course::Course;
use super::error::FleetError;
use super::event::Event;
use super::ledger::Ledger;
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
    /// When it started; `None` if it was refused or waits.
    pub started: Option<f64>,
    /// When it ended or failed; `None` also while it runs.
    pub ended: Option<f64>,
    /// When it was to end, as planned at its start.
    pub planned: Option<f64>,
    /// The devices that it had, ascending.
    pub devices: Vec<u32>,
    /// How many tasks that came later started before it.
    pub overtaken: u32,
    /// Seconds spent on measuring how long it takes; 0 for a task that was refused as it came.
    pub profile_seconds: f64,
    /// Why it failed or was refused.
    pub failure: Option<String>,
}

/// Sums over a run, or over what there is of it.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Totals {
    /// Tasks that ended without a failure.
    pub finished: u64,
    /// Tasks that failed.
    pub failed: u64,
    /// Tasks that were refused.
    pub refused: u64,
    /// Tasks that run or wait: none once a run is over.
    pub unfinished: u64,
    /// Seconds from the first arrival of a task that ran to the last end, or to the last event while a task runs.
    pub makespan: f64,
    /// Device-seconds in use, over those that all devices have during the makespan, 0 to 1.
    pub utilization: f64,
    /// Mean over the tasks that ran of the seconds from arrival to start.
    pub mean_wait: f64,
    /// The longest of these.
    pub longest_wait: f64,
    /// How often the waiting tasks were planned anew.
    pub replans: u64,
    /// Seconds spent on that by the clock of the machine that plans. `None` in a report that was made of events, which
    /// don't tell: the same run gives the same events on any machine.
    pub planning_seconds: Option<f64>,
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
    pub(super) fn new(name: &str, now: f64) -> Self {
        Self {
            name: name.to_owned(),
            arrived: now,
            started: None,
            ended: None,
            planned: None,
            devices: vec![],
            overtaken: 0,
            profile_seconds: 0.0,
            failure: None,
        }
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

impl Report {
    /// What a run came to by these events, which are all of it or the first of them, in order: after an error or a crash,
    /// or while it goes on. Settings and scheduler are those of the run.
    ///
    /// ```
    /// use alto_core::fleet::{Event, Fleet, Report, Timeline, Virtual};
    /// use alto_sched::{Backfill, Cluster, Task};
    ///
    /// let mut site = Virtual::default();
    /// site.submit(0.0, Task::rigid("a", 2, 100.0), |_| Timeline::lasting(60.0));
    /// site.submit(10.0, Task::rigid("too wide", 3, 5.0), |_| Timeline::lasting(5.0));
    /// let fleet = Fleet::new(Cluster::single("H100", 2));
    /// let mut log: Vec<Event> = vec![];
    /// assert!(fleet.run(&Backfill, &mut site, &mut |event| log.push(event.clone())).is_err());
    ///
    /// let report = Report::from_events(&fleet, &Backfill, &log)?;
    /// assert_eq!((report.totals.unfinished, report.totals.refused), (1, 1));
    /// assert_eq!((report.totals.makespan, report.totals.utilization), (10.0, 1.0));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// The events tell of a task of which they don't say that it came.
    pub fn from_events<'a>(
        fleet: &Fleet,
        scheduler: &dyn Scheduler,
        events: impl IntoIterator<Item = &'a Event>,
    ) -> Result<Self, FleetError> {
        let mut ledger = Ledger::default();
        events.into_iter().try_for_each(|event| ledger.note(event))?;
        Ok(Self::new(fleet, scheduler, ledger, None))
    }

    fn new(fleet: &Fleet, scheduler: &dyn Scheduler, ledger: Ledger, planning: Option<Duration>) -> Self {
        let planning_seconds = planning.map(|planning| planning.as_secs_f64());
        Self {
            version: REPORT_VERSION,
            fleet: fleet.clone(),
            scheduler: format!("{scheduler:?}"),
            totals: Totals { planning_seconds, ..totals(fleet, &ledger) },
            tasks: ledger.tasks,
        }
    }
}

impl Course<'_> {
    /// What the run came to.
    pub(super) fn into_report(self) -> Result<Report, FleetError> {
        match self.unfinished() {
            Some(error) => Err(error),
            None => Ok(Report::new(self.fleet, self.scheduler, self.ledger, Some(self.planning))),
        }
    }
}

fn totals(fleet: &Fleet, Ledger { tasks, replans, now }: &Ledger) -> Totals {
    let ran = || tasks.iter().filter(|task| task.started.is_some());
    let count = |is: &dyn Fn(&TaskReport) -> bool| tasks.iter().filter(|task| is(task)).count() as u64;
    // A task that runs has its devices until now.
    let run = |task: &TaskReport| task.ended.unwrap_or(*now) - task.started.unwrap_or(*now);
    let first = ran().map(|task| task.arrived).fold(f64::INFINITY, f64::min);
    let last = ran().map(|task| task.ended.unwrap_or(*now)).fold(first, f64::max);
    let makespan = if last > first { last - first } else { 0.0 };
    let devices: usize = fleet.cluster.nodes.iter().map(|node| node.devices.len()).sum();
    let busy = sum(ran().map(|task| run(task) * task.devices.len() as f64));
    let waits = || ran().filter_map(TaskReport::wait);
    Totals {
        finished: count(&|task| task.ended.is_some() && task.failure.is_none()),
        failed: count(&|task| task.ended.is_some() && task.failure.is_some()),
        refused: count(&|task| task.started.is_none() && task.failure.is_some()),
        unfinished: count(&|task| task.ended.is_none() && task.failure.is_none()),
        makespan,
        utilization: if makespan > 0.0 { busy / (devices as f64 * makespan) } else { 0.0 },
        mean_wait: sum(waits()) / ran().count().max(1) as f64,
        longest_wait: waits().fold(0.0, f64::max),
        replans: *replans,
        planning_seconds: None,
        profile_seconds: sum(tasks.iter().map(|task| task.profile_seconds)),
        run_seconds: sum(ran().map(run)),
    }
}

fn sum(values: impl Iterator<Item = f64>) -> f64 {
    // Of nothing it would be -0, which people and files would see.
    0.0 + values.sum::<f64>()
}
