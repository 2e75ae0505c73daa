//! The schedulers that look at each task once.

use super::assign;
use super::bounds;
use super::error::PlanError;
use super::front::Front;
use super::greedy::Greedy;
use super::order::{self, Order};
use super::plan::Plan;
use super::problem::{Problem, Time};
use super::schedule::{Schedule, Slot};
use super::scheduler::Scheduler;
use super::snapshot::Snapshot;

/// First come, first served: no task begins before one that came earlier.
///
/// By release, those released together in the order of `waiting`. Each takes the option with which it ends earliest. One
/// that would end past the latest time there is, 71 years from 0, goes wherever it still ends by then.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FirstComeFirstServed;

/// First come, first served, but a task that doesn't fit lets later ones that do fit go ahead.
///
/// Backfilling without reservations: devices are never idle while a task that fits waits, but a wide task may wait long.
/// With nodes of several sizes each task is given one size beforehand, and doesn't take another's idle devices.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Backfill;

/// Whenever devices become free, the shortest task that fits begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ShortestFirst;

/// Whenever devices become free, the longest task that fits begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LongestFirst;

impl Scheduler for FirstComeFirstServed {
    fn plan(&self, snapshot: &Snapshot) -> Result<Plan, PlanError> {
        let problem = Problem::new(snapshot)?;
        finish(in_order(&problem, &order::arrival(&problem)), &problem, snapshot)
    }
}

impl Scheduler for Backfill {
    fn plan(&self, snapshot: &Snapshot) -> Result<Plan, PlanError> {
        let problem = Problem::new(snapshot)?;
        finish(listed(&problem, &order::arrival(&problem)), &problem, snapshot)
    }
}

impl Scheduler for ShortestFirst {
    fn plan(&self, snapshot: &Snapshot) -> Result<Plan, PlanError> {
        let problem = Problem::new(snapshot)?;
        finish(listed(&problem, &order::shortest(&problem)), &problem, snapshot)
    }
}

impl Scheduler for LongestFirst {
    fn plan(&self, snapshot: &Snapshot) -> Result<Plan, PlanError> {
        let problem = Problem::new(snapshot)?;
        finish(listed(&problem, &order::longest(&problem)), &problem, snapshot)
    }
}

fn finish(schedule: Schedule, problem: &Problem, snapshot: &Snapshot) -> Result<Plan, PlanError> {
    let bound = bounds::lower_bound(problem, schedule.makespan(problem));
    schedule.into_plan(problem, snapshot, bound)
}

/// The list schedule for this order.
pub(crate) fn listed(problem: &Problem, order: &Order) -> Schedule {
    let mut slots = vec![Slot::default(); problem.items.len()];
    assign::balanced(problem, order, &mut slots);
    let done = Greedy::default().run(problem, order, &mut slots, Time::MAX);
    debug_assert!(done, "every task fits at some time");
    Schedule { slots }
}

/// The schedule in which no task begins before one that is earlier in this order.
pub(crate) fn in_order(problem: &Problem, order: &Order) -> Schedule {
    let mut fronts: Vec<Front> = (0..problem.nodes.len()).map(|node| Front::new(problem, node)).collect();
    let mut slots = vec![Slot::default(); problem.items.len()];
    let mut now = 0;
    for &item in order {
        let from = now.max(problem.items[item].release);
        let mut best: Option<(Time, u128, Slot)> = None;
        for mode in problem.items[item].modes.clone() {
            let way = problem.modes[mode];
            for node in problem.nodes_of(way.class) {
                let start = fronts[node].earliest(from, way.width);
                let key = (start + way.duration, way.area());
                if best.as_ref().is_none_or(|(end, area, _)| key < (*end, *area)) {
                    best = Some((key.0, key.1, Slot { mode, node, start }));
                }
                // No node has it sooner.
                if start == from {
                    break;
                }
            }
        }
        if let Some((end, _, slot)) = best {
            fronts[slot.node].take(slot.start, problem.modes[slot.mode].width, end);
            slots[item] = slot;
            now = slot.start;
        }
    }
    Schedule { slots }
}
