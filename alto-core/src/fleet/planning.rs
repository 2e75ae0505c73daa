//! A plan in which nobody is overtaken too often, from schedulers that know nothing of that.

use std::collections::BTreeMap;

use alto_sched::{CheckError, Placement, Plan, PlanError, Running, Scheduler, Snapshot};

use super::clock::{micros, seconds};

/// Where every waiting task is to run.
pub(super) struct Planned {
    pub(super) placements: Vec<Placement>,
    /// Seconds from now to the last end.
    pub(super) makespan: f64,
    pub(super) lower_bound: f64,
}

/// Why there is no plan.
pub(super) enum Fault {
    /// What stands at `first` and behind was being planned; a task in the error is counted from there.
    Plan {
        first: usize,
        error: PlanError,
    },
    Broken(CheckError),
}

/// Plans the first `free` tasks, which may start in any order, and then those behind them, none of which starts before
/// the last of the first.
///
/// The second plan takes devices of the first as held to their last end there: it is made anew when that task starts.
pub(super) fn plan(scheduler: &dyn Scheduler, snapshot: &Snapshot, free: usize) -> Result<Planned, Fault> {
    if free == snapshot.waiting.len() {
        let Plan { placements, makespan, lower_bound, .. } = checked(scheduler, snapshot, 0)?;
        return Ok(Planned { placements: placements.into_iter().flatten().collect(), makespan, lower_bound });
    }
    let part = |waiting: std::ops::Range<usize>, now, running| Snapshot {
        cluster: snapshot.cluster.clone(),
        now,
        running,
        waiting: snapshot.waiting[waiting.clone()].to_vec(),
        previous: snapshot.previous[waiting].to_vec(),
        skip_bad: snapshot.skip_bad,
    };
    let first = checked(scheduler, &part(0..free, snapshot.now, snapshot.running.clone()), 0)?;
    let mut placements: Vec<Placement> = first.placements.into_iter().flatten().collect();
    let turn = placements.last().map_or(snapshot.now, |last| last.start);
    let held = held_from(turn, &snapshot.running, &placements);
    let second = checked(scheduler, &part(free..snapshot.waiting.len(), turn, held), free)?;
    placements.extend(second.placements.into_iter().flatten());
    let makespan = first.makespan.max(turn - snapshot.now + second.makespan);
    Ok(Planned { placements, makespan, lower_bound: first.lower_bound })
}

fn checked(scheduler: &dyn Scheduler, snapshot: &Snapshot, first: usize) -> Result<Plan, Fault> {
    let mut plan = scheduler.plan(snapshot).map_err(|error| Fault::Plan { first, error })?;
    // A scheduler may be anybody's, and two tasks on one device would be nobody's fault but the fleet's.
    plan.check(snapshot).map_err(Fault::Broken)?;
    // The check rounds to microseconds; a start between two of them would never come on a clock that tells no others.
    for Placement { start, end, .. } in plan.placements.iter_mut().flatten() {
        (*start, *end) = (seconds(micros(*start)), seconds(micros(*end)));
    }
    Ok(plan)
}

/// The devices that are held after this time, each until its last end.
fn held_from(turn: f64, running: &[Running], placements: &[Placement]) -> Vec<Running> {
    let running = running.iter().map(|task| (&task.devices, task.until));
    let planned = placements.iter().map(|placement| (&placement.devices, placement.end));
    let mut until: BTreeMap<u32, f64> = BTreeMap::new();
    for (devices, end) in running.chain(planned).filter(|(_, end)| *end > turn) {
        for &device in devices {
            let last = until.entry(device).or_insert(end);
            *last = last.max(end);
        }
    }
    until.into_iter().map(|(device, until)| Running { name: String::new(), devices: vec![device], until }).collect()
}

/// The place of the task that there is no plan for, if it is that of one task.
pub(super) fn culprit(error: &PlanError) -> Option<usize> {
    match error {
        PlanError::Task { task, .. } => Some(*task),
        _ => None,
    }
}

/// The same error about the task of this number.
pub(super) fn renumbered(mut error: PlanError, number: usize) -> PlanError {
    if let PlanError::Task { task, .. } = &mut error {
        *task = number;
    }
    error
}
