//! What a fleet would do.

use std::fmt;

use alto_sched::{Plan, Scheduler, Snapshot, Task};

use super::error::FleetError;
use super::run::Fleet;

/// A plan for tasks that are all known, of which nothing runs. Its `Display` is a Gantt chart with makespan and bound.
#[derive(Debug, Clone, PartialEq)]
pub struct DryRun {
    /// What was planned.
    pub snapshot: Snapshot,
    /// The plan.
    pub plan: Plan,
}

impl Fleet {
    /// Plans these tasks and runs nothing. A task that comes later says so by its release.
    ///
    /// The plan knows all tasks beforehand and lets them overtake one another; a run doesn't know who is yet to come.
    ///
    /// ```
    /// use alto_core::fleet::Fleet;
    /// use alto_sched::{Cluster, Makespan, Task};
    ///
    /// let tasks = vec![Task::rigid("a", 2, 10.0), Task::rigid("b", 1, 20.0), Task::rigid("c", 1, 10.0)];
    /// let dry = Fleet::new(Cluster::single("H100", 2)).dry_run(&Makespan::default(), tasks)?;
    /// println!("{dry}");
    /// assert_eq!((dry.plan.makespan, dry.plan.proven), (30.0, true));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// A task can't run and is not to be skipped, or the scheduler gives no plan or a wrong one.
    pub fn dry_run(&self, scheduler: &dyn Scheduler, tasks: Vec<Task>) -> Result<DryRun, FleetError> {
        self.check()?;
        let (cluster, skip_bad) = (self.cluster.clone(), self.skip_bad);
        let snapshot = Snapshot { cluster, waiting: tasks, skip_bad, ..Snapshot::default() };
        let plan = scheduler.plan(&snapshot)?;
        plan.check(&snapshot)
            .map_err(|source| FleetError::BrokenPlan { scheduler: format!("{scheduler:?}"), source })?;
        Ok(DryRun { snapshot, plan })
    }
}

impl fmt::Display for DryRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { snapshot, plan } = self;
        write!(f, "{}", plan.gantt(snapshot))?;
        for refused in &plan.refused {
            let name = &snapshot.waiting[refused.task].name;
            writeln!(f, "Task {} ({name}) is left out: it {}.", refused.task, refused.reason)?;
        }
        write!(f, "The last task ends after {:.1} s", plan.makespan)?;
        match plan.proven {
            true => writeln!(f, ", which no plan can do better."),
            false => writeln!(
                f,
                "; no plan can do it in less than {:.1} s, so this is at most {:.1}% from the best.",
                plan.lower_bound,
                100.0 * plan.gap()
            ),
        }
    }
}
