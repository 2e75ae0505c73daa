//! Which of batching, planning and early exit wins how much, alone and together.

use std::sync::Arc;

use alto_sched::{Cluster, FirstComeFirstServed, Makespan, Scheduler};

use super::error::StudyError;
use super::training::Trained;
use super::trainings::Trainings;
use crate::fleet::{Fleet, Virtual};
use crate::simulated::systems::System;
use crate::simulated::workload::{DataSize, ModelShare, Space, TuningTask, WorkloadError};

/// ALTO's ablation (arXiv:2604.05426): eleven tasks of four model sizes on eight devices, by what helps them.
#[derive(Debug, Clone, PartialEq)]
pub struct Ablation {
    /// The tasks, in the order in which they come.
    pub tasks: Vec<AblationTask>,
    /// All eight ways, those of the paper in its order, then the two that it leaves out.
    pub rows: Vec<AblationRow>,
}

/// A task and what it comes to.
#[derive(Debug, Clone, PartialEq)]
pub struct AblationTask {
    /// What it is.
    pub task: TuningTask,
    /// What trains one adapter after another.
    pub alone_by: System,
    /// One adapter after another.
    pub alone: Arc<Trained>,
    /// The same with early exit.
    pub alone_with_exits: Arc<Trained>,
    /// All adapters together, spread over its devices.
    pub batched: Arc<Trained>,
    /// The same with early exit.
    pub batched_with_exits: Arc<Trained>,
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
    /// Seconds until the last task has ended.
    pub makespan: f64,
    /// How often the fleet planned anew.
    pub replans: u64,
    /// How much earlier the last ends than with batching alone, which is the paper's baseline.
    pub speedup: f64,
    /// How much earlier it ends than with none of the three.
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

    /// Trains the tasks, task `i` with the runs of corpus `i`, and has a fleet of so many devices run them in all eight
    /// ways. Without batching, a task of several devices trains by the fastest of these systems: the paper sets adapter
    /// parallelism against [`DataParallel`](System::DataParallel).
    ///
    /// The fleet plans with what tasks take if no job exits, since nobody knows beforehand which will. As jobs exit, the
    /// trainer's expected ends come closer, and the fleet plans anew.
    ///
    /// # Errors
    /// No systems, a task that can't be trained, or one that needs more devices than there are.
    pub fn new(
        tasks: Vec<TuningTask>,
        devices: u32,
        trainings: &mut Trainings,
        systems: &[System],
    ) -> Result<Ablation, StudyError> {
        let trained = |(index, task)| trained(index, task, trainings, systems);
        let tasks = tasks.into_iter().enumerate().map(trained).collect::<Result<Vec<_>, _>>()?;
        let cluster = Cluster::single(&trainings.device().name, devices);
        let row = |(batching, scheduling, exits, paper)| {
            let (makespan, replans) = run(&tasks, &cluster, batching, scheduling, exits)?;
            Ok(AblationRow { batching, scheduling, exits, makespan, replans, speedup: 1.0, over_none: 1.0, paper })
        };
        let mut rows = ROWS.into_iter().map(row).collect::<Result<Vec<_>, StudyError>>()?;
        let of = |batching| {
            let row = rows.iter().find(|row| (row.batching, row.scheduling, row.exits) == (batching, false, false));
            row.map_or(f64::NAN, |row| row.makespan)
        };
        let (baseline, none) = (of(true), of(false));
        for row in &mut rows {
            (row.speedup, row.over_none) = (baseline / row.makespan, none / row.makespan);
        }
        Ok(Ablation { tasks, rows })
    }

    /// The way that is chosen so.
    pub fn row(&self, batching: bool, scheduling: bool, exits: bool) -> Option<&AblationRow> {
        self.rows.iter().find(|row| (row.batching, row.scheduling, row.exits) == (batching, scheduling, exits))
    }
}

fn trained(
    index: usize,
    task: TuningTask,
    trainings: &mut Trainings,
    systems: &[System],
) -> Result<AblationTask, StudyError> {
    let (alone_by, alone) = fastest(&task, trainings, systems)?;
    Ok(AblationTask {
        alone_by,
        alone,
        alone_with_exits: trainings.of(&task, alone_by, Some(index))?,
        batched: trainings.of(&task, System::AdapterParallel, None)?,
        batched_with_exits: trainings.of(&task, System::AdapterParallel, Some(index))?,
        task,
    })
}

fn fastest(
    task: &TuningTask,
    trainings: &mut Trainings,
    systems: &[System],
) -> Result<(System, Arc<Trained>), StudyError> {
    let on_one = [System::OneAfterAnother];
    let systems = if task.devices == 1 { &on_one } else { systems };
    let mut fastest: Option<(System, Arc<Trained>)> = None;
    for &system in systems {
        let trained = trainings.of(task, system, None)?;
        if fastest.as_ref().is_none_or(|(_, least)| trained.seconds() < least.seconds()) {
            fastest = Some((system, trained));
        }
    }
    fastest.ok_or(WorkloadError::Empty { setting: "systems without batching" }.into())
}

/// The makespan of a fleet that runs the tasks in this way, and how often it planned.
fn run(
    tasks: &[AblationTask],
    cluster: &Cluster,
    batching: bool,
    scheduling: bool,
    exits: bool,
) -> Result<(f64, u64), StudyError> {
    let mut site = Virtual::default();
    for AblationTask { task, alone, alone_with_exits, batched, batched_with_exits, .. } in tasks {
        let (planned, becomes) = match (batching, exits) {
            (false, false) => (alone, alone),
            (false, true) => (alone, alone_with_exits),
            (true, false) => (batched, batched),
            (true, true) => (batched, batched_with_exits),
        };
        site.submit(task.release, task.to_task(None, planned.seconds()), |_| becomes.timeline.clone());
    }
    let scheduler: &dyn Scheduler = if scheduling { &Makespan::default() } else { &FirstComeFirstServed };
    let report = Fleet::new(cluster.clone()).run(scheduler, &mut site, &mut |_| {})?;
    Ok((report.totals.makespan, report.totals.replans))
}
