//! Why a fleet stops before all tasks have ended.

use alto_sched::{CheckError, PlanError, TaskFault};

/// Why a fleet stops before all tasks have ended. What runs by then is the site's to end or to wait for.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FleetError {
    /// A setting is out of range.
    #[error("fleet: {setting} is {value}, but must be {expected}")]
    Setting {
        /// What the number sets.
        setting: &'static str,
        /// The number.
        value: f64,
        /// What would be right.
        expected: &'static str,
    },
    /// A task that this cluster can't run. With [`skip_bad`](super::Fleet::skip_bad) the others go on.
    #[error("task {task} ({name:?}) {fault}")]
    Task {
        /// Its number.
        task: usize,
        /// Its name.
        name: String,
        /// What is wrong with it.
        fault: TaskFault,
    },
    /// A task that the site can't run. With [`skip_bad`](super::Fleet::skip_bad) the others go on.
    #[error("task {task} ({name:?}) can't run: {error}")]
    Refused {
        /// Its number.
        task: usize,
        /// Its name.
        name: String,
        /// What the site said.
        error: String,
    },
    /// There is no plan.
    #[error(transparent)]
    Plan(PlanError),
    /// The scheduler made a plan that can't be carried out.
    #[error("the plan of {scheduler} can't be carried out")]
    BrokenPlan {
        /// The scheduler, as its `Debug` prints it.
        scheduler: String,
        /// What is wrong with its plan.
        #[source]
        source: CheckError,
    },
    /// The site tells of a task that doesn't run.
    #[error("the site tells of task {task}, which doesn't run; {running} tasks do")]
    NotRunning {
        /// The number that it tells.
        task: usize,
        /// How many tasks run.
        running: usize,
    },
    /// A list of events tells of a task before it comes: it isn't whole, or out of order.
    #[error(
        "the events tell of task {task}, but {arrived} tasks have come; expected all events of a run from its first on"
    )]
    NotArrived {
        /// The number that they tell.
        task: usize,
        /// How many tasks have come.
        arrived: usize,
    },
    /// The site has nothing more to tell, though tasks run or wait: a recording that stops before its end, for instance.
    #[error(
        "the site has nothing more to tell, but {running} tasks run and {waiting} wait, the first of them task {task}"
    )]
    Silent {
        /// The first of those that run, or else of those that wait.
        task: usize,
        /// How many run.
        running: usize,
        /// How many wait.
        waiting: usize,
    },
}

impl From<PlanError> for FleetError {
    fn from(error: PlanError) -> Self {
        match error {
            PlanError::Task { task, name, fault } => Self::Task { task, name, fault },
            other => Self::Plan(other),
        }
    }
}
