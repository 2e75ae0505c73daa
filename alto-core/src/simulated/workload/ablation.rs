//! Which of batching, planning and early exit wins how much, alone and together.

use alto_sched::{Cluster, FirstComeFirstServed, Makespan, Scheduler, Snapshot, Task};

use super::error::WorkloadError;
use super::generator::{DataSize, ModelShare};
use super::space::Space;
use super::task::TuningTask;
use crate::simulated::systems::{Device, System};

/// ALTO's ablation (arXiv:2604.05426): eleven tasks of four model sizes on eight devices, by what helps them.
#[derive(Debug, Clone, PartialEq)]
pub struct Ablation {
    /// The tasks, in the order in which they come.
    pub tasks: Vec<AblationTask>,
    /// All eight ways, those of the paper in its order, then the two that it leaves out.
    pub rows: Vec<AblationRow>,
}

/// A task and how long it takes when nothing else runs, in seconds.
#[derive(Debug, Clone, PartialEq)]
pub struct AblationTask {
    /// What it is.
    pub task: TuningTask,
    /// What trains one adapter after another.
    pub alone_by: System,
    /// One adapter after another.
    pub alone: f64,
    /// The same with early exit.
    pub alone_with_exits: f64,
    /// All adapters together, spread over its devices.
    pub batched: f64,
    /// The same with early exit.
    pub batched_with_exits: f64,
}

/// What one choice of the three comes to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AblationRow {
    /// Whether the adapters of a task are trained together.
    pub batching: bool,
    /// Whether tasks are placed so that the last ends early, instead of in the order in which they come.
    pub scheduling: bool,
    /// Whether jobs are ended early.
    pub exits: bool,
    /// When the last task ends, in seconds.
    pub makespan: f64,
    /// How much earlier that is than with batching alone, which is the paper's baseline.
    pub speedup: f64,
    /// How much earlier that is than with none of the three.
    pub over_none: f64,
    /// What the paper has; `None` where it says nothing.
    pub paper: Option<f64>,
}

/// Batching, scheduling, exits, and what the paper has for them.
const ROWS: [(bool, bool, bool, Option<f64>); 8] = [
    (true, false, false, Some(1.00)),
    (false, true, false, Some(1.46)),
    (false, false, true, Some(1.80)),
    (true, true, false, Some(1.50)),
    (true, false, true, Some(3.48)),
    (true, true, true, Some(5.22)),
    (false, false, false, None),
    (false, true, true, None),
];

impl Ablation {
    /// The paper's tasks as far as it says: eleven that go through its four models in turn, each with its search space,
    /// three passes over GSM8K. All are there from the start.
    pub fn paper_tasks() -> Vec<TuningTask> {
        let samples = 3 * DataSize::GSM8K.rows;
        let models = ModelShare::paper();
        let task = |index: usize| {
            let ModelShare { model, devices, .. } = models[index % models.len()].clone();
            let jobs = Space::paper(devices).jobs(samples);
            let (name, row_tokens) = (format!("{index}-{model}"), DataSize::GSM8K.row_tokens);
            TuningTask { name, release: 0.0, model, devices, row_tokens, jobs }
        };
        (0..11).map(task).collect()
    }

    /// Times the tasks on these devices and plans them. Early exit leaves task `i` what `kept[i % kept.len()]` says of
    /// its jobs. Without batching, a task of several devices trains by the fastest of these systems: the paper sets
    /// adapter parallelism against [`DataParallel`](System::DataParallel).
    ///
    /// # Errors
    /// No shares or systems, a task that doesn't fit, or one that needs more devices than there are.
    pub fn new(
        tasks: Vec<TuningTask>,
        device: &Device,
        devices: u32,
        kept: &[Vec<f64>],
        systems: &[System],
    ) -> Result<Ablation, WorkloadError> {
        if kept.is_empty() {
            return Err(WorkloadError::Empty { setting: "kept shares" });
        }
        let timed = |(index, task): (usize, TuningTask)| timed(task, device, &kept[index % kept.len()], systems);
        let tasks = tasks.into_iter().enumerate().map(timed).collect::<Result<Vec<_>, _>>()?;
        let cluster = Cluster::single(&device.name, devices);
        let baseline = makespan(&tasks, &cluster, true, false, false)?;
        let none = makespan(&tasks, &cluster, false, false, false)?;
        let row = |(batching, scheduling, exits, paper)| {
            let makespan = makespan(&tasks, &cluster, batching, scheduling, exits)?;
            let (speedup, over_none) = (baseline / makespan, none / makespan);
            Ok(AblationRow { batching, scheduling, exits, makespan, speedup, over_none, paper })
        };
        let rows = ROWS.into_iter().map(row).collect::<Result<_, WorkloadError>>()?;
        Ok(Ablation { tasks, rows })
    }

    /// The way that is chosen so.
    pub fn row(&self, batching: bool, scheduling: bool, exits: bool) -> Option<&AblationRow> {
        self.rows.iter().find(|row| (row.batching, row.scheduling, row.exits) == (batching, scheduling, exits))
    }
}

fn timed(task: TuningTask, device: &Device, kept: &[f64], systems: &[System]) -> Result<AblationTask, WorkloadError> {
    let (alone_by, alone) = fastest(&task, device, systems)?;
    let batched = task.setup(System::AdapterParallel, device)?;
    Ok(AblationTask {
        alone_by,
        alone,
        alone_with_exits: task.seconds(&task.setup(alone_by, device)?, kept)?,
        batched: task.seconds(&batched, &[])?,
        batched_with_exits: task.seconds(&batched, kept)?,
        task,
    })
}

fn fastest(task: &TuningTask, device: &Device, systems: &[System]) -> Result<(System, f64), WorkloadError> {
    let on_one = [System::OneAfterAnother];
    let systems = if task.devices == 1 { &on_one } else { systems };
    let mut fastest = None;
    for &system in systems {
        let seconds = task.seconds(&task.setup(system, device)?, &[])?;
        if fastest.is_none_or(|(_, least)| seconds < least) {
            fastest = Some((system, seconds));
        }
    }
    fastest.ok_or(WorkloadError::Empty { setting: "systems without batching" })
}

fn makespan(
    tasks: &[AblationTask],
    cluster: &Cluster,
    batching: bool,
    scheduling: bool,
    exits: bool,
) -> Result<f64, WorkloadError> {
    let task = |timed: &AblationTask| -> Task {
        let seconds = match (batching, exits) {
            (false, false) => timed.alone,
            (false, true) => timed.alone_with_exits,
            (true, false) => timed.batched,
            (true, true) => timed.batched_with_exits,
        };
        timed.task.to_task(None, seconds)
    };
    let waiting = tasks.iter().map(task).collect();
    let snapshot = Snapshot { cluster: cluster.clone(), waiting, ..Snapshot::default() };
    let planner: &dyn Scheduler = if scheduling { &Makespan::default() } else { &FirstComeFirstServed };
    Ok(planner.plan(&snapshot)?.makespan)
}
