//! A constraint-programming engine, asked only whether something ends by a target.
//!
//! Pumpkin learns from each conflict a reason that rules out more than the conflict itself, which settles cases that
//! branch and bound can't; in many others branch and bound is faster by far. What it finds goes through the same check as
//! everything else; that there is nothing is taken from it as a proof.

use pumpkin_conflict_resolvers::resolvers::ResolutionResolver;
use pumpkin_core::Solver;
use pumpkin_core::results::{ProblemSolution, SatisfactionResult};
use pumpkin_core::termination::TerminationCondition;

use super::branch::Outcome;
use crate::cluster::problem::{Problem, Time};
use crate::cluster::schedule::{Schedule, Slot};

/// Whether the engine can be asked about this problem: one node, each task in one way.
pub(super) fn applies(problem: &Problem, target: Time) -> bool {
    // The engine computes in 32 bits.
    problem.nodes.len() == 1 && problem.is_rigid() && target < 1 << 29
}

/// Looks for a schedule that ends by `target`, for so many of the engine's decisions at most; adds those made to `steps`.
pub(super) fn decide(
    problem: &Problem,
    target: Time,
    limit: u64,
    steps: &mut u64,
    go_on: &dyn Fn() -> bool,
) -> Outcome {
    let whole = |time: Time| i32::try_from(time).unwrap_or(i32::MAX);
    let mode = |item: usize| problem.modes_of(item)[0];
    let latest = |item: usize| target.checked_sub(mode(item).duration);
    let mut solver = Solver::default();
    let mut starts = Vec::new();
    for (item, task) in problem.items.iter().enumerate() {
        let Some(latest) = latest(item).filter(|&latest| latest >= task.release) else { return Outcome::Impossible };
        starts.push(solver.new_bounded_integer(whole(task.release), whole(latest)));
    }
    let (mut durations, mut widths): (Vec<i32>, Vec<i32>) =
        (0..starts.len()).map(|item| (whole(mode(item).duration), mode(item).width as i32)).unzip();
    let tag = solver.new_constraint_tag();
    for pair in 1..starts.len() {
        let key = |item: usize| (mode(item).duration, mode(item).width, problem.items[item].release);
        if key(pair - 1) == key(pair) && !solver.is_inconsistent() {
            let earlier = pumpkin_constraints::binary_less_than_or_equals(starts[pair - 1], starts[pair], tag);
            solver.add_constraint(earlier).post();
        }
    }
    let own = starts.clone();
    for &(until, width) in &problem.nodes[0].busy {
        starts.push(solver.new_bounded_integer(0, 0));
        durations.push(whole(until.min(target)));
        widths.push(width as i32);
    }
    let capacity = problem.capacity_of(0) as i32;
    let cumulative = pumpkin_constraints::cumulative(starts, durations, widths, capacity, tag);
    solver.add_constraint(cumulative).post();
    if solver.is_inconsistent() {
        return Outcome::Impossible;
    }
    let mut stop = Stop { left: limit, go_on };
    let (mut brancher, mut resolver) = (solver.default_brancher(), ResolutionResolver::default());
    let outcome = match solver.satisfy(&mut brancher, &mut stop, &mut resolver) {
        SatisfactionResult::Satisfiable(found) => {
            let start = |item: usize| found.solution().get_integer_value(own[item]).unsigned_abs().into();
            let slot = |item: usize| Slot { mode: problem.items[item].modes.start, node: 0, start: start(item) };
            Outcome::Found(Schedule { slots: (0..own.len()).map(slot).collect() })
        }
        SatisfactionResult::Unsatisfiable(..) => Outcome::Impossible,
        SatisfactionResult::Unknown(..) => Outcome::Stopped,
    };
    *steps += limit - stop.left;
    outcome
}

struct Stop<'a> {
    left: u64,
    go_on: &'a dyn Fn() -> bool,
}

impl TerminationCondition for Stop<'_> {
    fn should_stop(&mut self) -> bool {
        self.left = self.left.saturating_sub(1);
        self.left == 0 || self.left.is_multiple_of(16) && !(self.go_on)()
    }
}
