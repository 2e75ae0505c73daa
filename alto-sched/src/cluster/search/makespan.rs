//! The scheduler that makes the last task end as early as it can.

use std::time::{Duration, Instant};

use super::branch::{Branch, Outcome};
#[cfg(feature = "exact")]
use super::exact;
use super::local::{Decoder, Local};
use super::score::{Score, Second};
use crate::cluster::bounds::Bounds;
use crate::cluster::error::PlanError;
use crate::cluster::plan::Plan;
use crate::cluster::problem::{Problem, Time};
use crate::cluster::schedule::{Schedule, Slot};
use crate::cluster::scheduler::Scheduler;
use crate::cluster::snapshot::Snapshot;
use crate::cluster::{list, order, reduce, replan};

/// Makes the last task end as early as it can: list schedules, then local search and branch and bound in turn.
///
/// The search ends when the makespan is proven to be the least, or when its budget is used up; the plan is the best
/// found until then, never worse than a list scheduler's (past 3000 tasks: than [`LongestFirst`](crate::LongestFirst)'s and
/// [`Backfill`](crate::Backfill)'s). With a budget of steps alone, the same snapshot, seed and budget give the same plan.
/// The order of tasks, nodes and running tasks doesn't change the makespan, except where the search finds nothing as good
/// as a list schedule in the order of arrival.
///
/// With an earlier plan in [`Snapshot::previous`], that plan stays as it is unless the search finds a smaller makespan
/// (or the same and a better second objective); and then tasks stay where they were as far as nothing is lost by it.
///
/// ```
/// use alto_sched::{Cluster, Makespan, Scheduler, Snapshot, Task};
///
/// let hours = |name, width, hours: f64| Task::rigid(name, width, 3600.0 * hours);
/// let waiting = vec![hours("a", 4, 5.0), hours("b", 2, 3.0), hours("c", 1, 2.0), hours("d", 1, 2.0), hours("e", 1, 1.0)];
/// let snapshot = Snapshot { cluster: Cluster::single("H100", 8), waiting, ..Snapshot::default() };
/// let plan = Makespan::default().plan(&snapshot)?;
/// assert_eq!((plan.makespan, plan.proven), (5.0 * 3600.0, true));
/// plan.check(&snapshot)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Makespan {
    /// Of the random choices.
    pub seed: u64,
    /// How many steps the search makes at most; with 0 the plan is the best of the list schedules. A step is a schedule
    /// made and compared, a few microseconds for 20 tasks, or eight decisions of branch and bound.
    pub steps: u64,
    /// How long the search may take; `None` is no limit. With a limit, the plan depends on how fast the machine is.
    pub time: Option<Duration>,
    /// What is made small after the makespan.
    pub second: Second,
}

impl Default for Makespan {
    /// 5000 steps, without a limit in time.
    fn default() -> Makespan {
        Makespan { seed: 0, steps: 5000, time: None, second: Second::Nothing }
    }
}

impl Scheduler for Makespan {
    fn plan(&self, snapshot: &Snapshot) -> Result<Plan, PlanError> {
        let begin = Instant::now();
        self.plan_while(snapshot, &|| self.time.is_none_or(|time| begin.elapsed() < time))
    }
}

/// Past so many tasks, only list schedules are made that take no longer than sorting does.
const HUGE: usize = 3000;
/// Up to so many tasks, branch and bound looks at the whole problem.
const BRANCHING: usize = 64;
/// Up to so many tasks, branch and bound gets most of the steps.
const FEW: usize = 16;
/// Decisions of branch and bound that count as a step.
const DECISIONS: u64 = 8;

/// Steps that a decision of the engine counts as.
#[cfg(feature = "exact")]
const ENGINE: u64 = 12;

impl Makespan {
    /// As [`plan`](Scheduler::plan), but asks this function instead of a clock whether to go on: for a limit in CPU time,
    /// or a search that ends when something happens.
    ///
    /// # Errors
    /// As [`plan`](Scheduler::plan).
    pub fn plan_while(&self, snapshot: &Snapshot, go_on: &dyn Fn() -> bool) -> Result<Plan, PlanError> {
        let problem = Problem::new(snapshot)?;
        let earlier = replan::earlier(&problem, snapshot);
        let known = earlier.iter().any(Option::is_some);
        let first = known.then(|| replan::repaired(&problem, &earlier));
        let (mut schedule, bound) = self.search(&problem, first.as_ref(), go_on);
        // Arrival order is the caller's, so these two are looked at last: only if nothing better was found do they
        // make the makespan depend on it.
        if schedule.makespan(&problem) > bound {
            let arrival = order::arrival(&problem);
            let in_order = (problem.items.len() <= HUGE).then(|| list::in_order(&problem, &arrival));
            for other in in_order.into_iter().chain([list::listed(&problem, &arrival)]) {
                if other.makespan(&problem) < schedule.makespan(&problem) {
                    schedule = other;
                }
            }
        }
        if let Some(first) = first {
            let score = |schedule: &Schedule| Score::of(&problem, &schedule.slots, self.second, Time::MAX);
            if score(&first) <= score(&schedule) {
                schedule = first;
            } else {
                replan::settle(&problem, &earlier, &mut schedule, self.second != Second::Nothing);
            }
        }
        schedule.into_plan(&problem, snapshot, bound)
    }

    /// The best schedule found, and a makespan that none is under.
    fn search(&self, problem: &Problem, first: Option<&Schedule>, go_on: &dyn Fn() -> bool) -> (Schedule, Time) {
        let Some(reduced) = reduce::reduce(problem) else {
            return self.search_with(problem, Bounds::new(problem), first, go_on);
        };
        let bounds = Bounds::new(&reduced.rest);
        if self.second == Second::Nothing {
            let (rest, bound) = self.search_with(&reduced.rest, bounds, None, go_on);
            return (reduced.expand(&rest.slots), bound + reduced.length);
        }
        // Those that run alone need not come first.
        let bound = { bounds }.raised(&reduced.rest, Time::MAX) + reduced.length;
        let mut bounds = Bounds::new(problem);
        bounds.makespan = bounds.makespan.max(bound);
        self.search_with(problem, bounds, first, go_on)
    }

    fn search_with(
        &self,
        problem: &Problem,
        mut bounds: Bounds,
        first: Option<&Schedule>,
        go_on: &dyn Fn() -> bool,
    ) -> (Schedule, Time) {
        let mut listed = listed(problem, &mut bounds, self.second);
        if let Some(first) = first.filter(|first| first.makespan(problem) < listed.makespan(problem)) {
            listed = first.clone();
        }
        let done = self.second == Second::Nothing && listed.makespan(problem) <= bounds.makespan;
        if done || problem.items.len() > HUGE && (self.steps == 0 || !go_on()) {
            return (listed, bounds.makespan);
        }
        Run::new(self, problem, bounds, listed.slots, go_on).search(go_on)
    }
}

/// A search as it goes on.
struct Run<'a> {
    settings: &'a Makespan,
    problem: &'a Problem,
    bounds: Bounds,
    local: Local<'a>,
    branch: Option<Branch<'a>>,
    /// Steps that are left.
    left: u64,
}

/// The best of two list schedules: the longest first alone, if that is proven to be the best or there are very many tasks.
fn listed(problem: &Problem, bounds: &mut Bounds, second: Second) -> Schedule {
    let longest = list::listed(problem, &order::longest(problem));
    let bound = bounds.raised(problem, longest.makespan(problem));
    let is_least = longest.makespan(problem) <= bound;
    if second == Second::Nothing && (is_least || problem.items.len() > HUGE) {
        return longest;
    }
    let others = [list::listed(problem, &order::shortest(problem)), longest];
    let score = |schedule: &Schedule| Score::of(problem, &schedule.slots, second, bound);
    let [shortest, longest] = others;
    if score(&shortest) < score(&longest) { shortest } else { longest }
}

impl<'a> Run<'a> {
    fn new(
        settings: &'a Makespan,
        problem: &'a Problem,
        bounds: Bounds,
        slots: Vec<Slot>,
        go_on: &dyn Fn() -> bool,
    ) -> Run<'a> {
        let mut local = Local::new(problem, slots, settings.second, &bounds, settings.seed);
        if problem.items.len() <= HUGE {
            let orders = [order::longest, order::shortest, order::widest, order::largest, order::heaviest];
            for order in orders.map(|order| order(problem)) {
                for decoder in [Decoder::Greedy, Decoder::Pinned, Decoder::Free] {
                    local.try_order(&order, decoder, go_on);
                }
            }
        }
        Run { settings, problem, bounds, local, branch: None, left: settings.steps }
    }

    /// Local search, exact search over the ends, and branch and bound take turns, each turn twice as long as the last.
    fn search(mut self, go_on: &dyn Fn() -> bool) -> (Schedule, Time) {
        let mut turn = 100;
        if self.problem.items.len() <= FEW {
            self.search_all(5 * turn, 0, go_on);
        }
        for round in 0_u64.. {
            self.search_locally(turn, go_on);
            self.search_tails(turn, go_on);
            self.search_all(turn, round, go_on);
            #[cfg(feature = "exact")]
            self.search_exactly(turn, go_on);
            if self.left == 0 || !go_on() || self.is_done() {
                break;
            }
            turn *= 2;
        }
        (Schedule { slots: self.local.best.slots }, self.bounds.makespan)
    }

    /// Whether no schedule has a smaller makespan.
    fn is_least(&self) -> bool {
        self.local.best.score.makespan <= self.bounds.makespan
    }

    fn is_done(&self) -> bool {
        self.is_least() && self.settings.second == Second::Nothing
    }

    fn search_locally(&mut self, turn: u64, go_on: &dyn Fn() -> bool) {
        let mut steps = 0;
        while steps < turn.min(self.left) && !self.is_done() && go_on() {
            self.local.step(go_on);
            steps += 1;
        }
        self.left -= steps;
    }

    fn search_tails(&mut self, turn: u64, go_on: &dyn Fn() -> bool) {
        let limit = (turn / self.choices()).min(self.left) * DECISIONS;
        let mut decisions = 0;
        while decisions < limit && !self.is_least() && go_on() {
            self.local.search_tail(&self.bounds.measures, &mut decisions);
        }
        self.left = self.left.saturating_sub(decisions / DECISIONS);
    }

    /// By how much the turns of branch and bound are shorter: where tasks have a choice, local search gains more.
    fn choices(&self) -> u64 {
        if self.local.is_ruining() { 4 } else { 1 }
    }

    /// Targets just under the best makespan, to prove it, and in the next round from the bound up: between what is known
    /// to be impossible and what was too hard, by bisection.
    fn search_all(&mut self, turn: u64, round: u64, go_on: &dyn Fn() -> bool) {
        if self.problem.items.len() > BRANCHING {
            return;
        }
        // Few tasks are often settled here alone, unless they have many ways to run.
        let is_small = self.problem.items.len() <= FEW && self.problem.modes.len() <= 2 * FEW;
        let turn = if is_small { 8 * turn } else { turn / self.choices() };
        let limit = turn.min(self.left) * DECISIONS;
        let mut decisions = 0;
        let mut hard = self.local.best.score.makespan.saturating_sub(1);
        let mut target = if round.is_multiple_of(2) { hard } else { self.bounds.makespan };
        while decisions < limit && !self.is_least() && go_on() {
            let branch = self.branch.get_or_insert_with(|| Branch::new(self.problem, &self.bounds.measures));
            match branch.decide(target, limit - decisions, &mut decisions, go_on) {
                Outcome::Found(schedule) => self.local.offer(&schedule.slots),
                Outcome::Impossible => self.raise(target + 1),
                Outcome::Stopped => hard = target,
            }
            hard = hard.min(self.local.best.score.makespan.saturating_sub(1));
            target = self.bounds.makespan + hard.saturating_sub(self.bounds.makespan) / 2;
        }
        self.left = self.left.saturating_sub(decisions / DECISIONS);
    }

    /// Asks the constraint-programming engine for something better than the best.
    #[cfg(feature = "exact")]
    fn search_exactly(&mut self, turn: u64, go_on: &dyn Fn() -> bool) {
        let limit = turn.min(self.left) / ENGINE;
        let mut decisions = 0;
        while decisions < limit && !self.is_least() && go_on() && self.problem.items.len() <= BRANCHING {
            let target = self.local.best.score.makespan - 1;
            if !exact::applies(self.problem, target) {
                break;
            }
            match exact::decide(self.problem, target, limit - decisions, &mut decisions, go_on) {
                Outcome::Found(schedule) => self.local.offer(&schedule.slots),
                Outcome::Impossible => self.raise(target + 1),
                Outcome::Stopped => break,
            }
        }
        self.left = self.left.saturating_sub(ENGINE * decisions);
    }

    fn raise(&mut self, bound: Time) {
        self.bounds.makespan = bound;
        self.local.bound = bound;
    }
}
