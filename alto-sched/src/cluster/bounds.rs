//! Makespans that no schedule is under.

mod area;
pub(crate) mod measure;
mod pigeonhole;
mod windows;

use area::Known;
use measure::Measure;

use super::problem::{Problem, Time};
use super::reduce;

/// A makespan that no schedule is under: the best of all bounds here, as far as they are needed to prove that this one,
/// which some schedule has, is the least.
pub(crate) fn lower_bound(problem: &Problem, makespan: Time) -> Time {
    match reduce::reduce(problem) {
        Some(reduced) => {
            reduced.length + Bounds::new(&reduced.rest).raised(&reduced.rest, makespan.saturating_sub(reduced.length))
        }
        None => Bounds::new(problem).raised(problem, makespan),
    }
}

/// The bounds of a problem, and what gave them.
#[derive(Debug, Clone)]
pub(crate) struct Bounds {
    /// The best that is known.
    pub(crate) makespan: Time,
    /// With their bounds, the best first.
    pub(crate) measures: Vec<(Time, Measure)>,
}

impl Bounds {
    pub(crate) fn new(problem: &Problem) -> Bounds {
        if problem.items.is_empty() {
            return Bounds { makespan: 0, measures: Vec::new() };
        }
        let known = Known::new(problem);
        let factors = area::factors(problem, &Measure::plain(problem), &known);
        let mut measures: Vec<(Time, Measure)> = measure::all(problem)
            .into_iter()
            .map(|measure| weigh(problem, measure, &factors))
            .map(|measure| (area::bound(problem, &measure, &known), measure))
            .collect();
        measures.sort_by_key(|(bound, _)| std::cmp::Reverse(*bound));
        let makespan = longest(problem).max(pigeonhole::bound(problem)).max(measures[0].0);
        Bounds { makespan, measures }
    }

    /// The bound, raised by what takes longer to find out if this makespan, which some schedule has, is over it.
    pub(crate) fn raised(&mut self, problem: &Problem, makespan: Time) -> Time {
        if self.makespan < makespan && problem.items.len() <= 120 {
            self.makespan = by_windows(problem, &self.measures, self.makespan);
        }
        self.makespan
    }
}

/// Counts each class by its factor, which is for plain widths: a measure's own scale is taken out.
fn weigh(problem: &Problem, measure: Measure, factors: &[u64]) -> Measure {
    if factors.len() < 2 {
        return measure;
    }
    let scale = |class: usize| 64 * factors[class] * u64::from(problem.classes[class].capacity) / measure.full(class);
    measure.scaled(&(0..factors.len()).map(scale).collect::<Vec<u64>>())
}

/// The longest that a task takes, from its release on or from when enough devices are free.
fn longest(problem: &Problem) -> Time {
    // For each class, when so many devices of a node are first free.
    let free_at: Vec<Vec<Time>> = problem.classes.iter().map(|class| free_at(problem, class.nodes.clone())).collect();
    let end = |item: usize| {
        let release = problem.items[item].release;
        let end = |mode: &super::problem::Mode| {
            release.max(free_at[mode.class as usize][mode.width as usize]).saturating_add(mode.duration)
        };
        problem.modes_of(item).iter().map(end).min().unwrap_or(0)
    };
    (0..problem.items.len()).map(end).max().unwrap_or(0)
}

fn free_at(problem: &Problem, nodes: std::ops::Range<usize>) -> Vec<Time> {
    let capacity = problem.capacity_of(nodes.start) as usize;
    let mut times = vec![Time::MAX; capacity + 1];
    for node in nodes {
        let busy = &problem.nodes[node].busy;
        let mut free = capacity - busy.iter().map(|busy| busy.1 as usize).sum::<usize>();
        times[..=free].fill(0);
        for &(until, width) in busy {
            let more = free + width as usize;
            times[free + 1..=more].iter_mut().for_each(|time| *time = (*time).min(until));
            free = more;
        }
    }
    times
}

/// Raises a bound as long as windows refute it: doubles the step, then halves it.
fn by_windows(problem: &Problem, measures: &[(Time, Measure)], bound: Time) -> Time {
    let few: Vec<Measure> =
        measures.iter().take(if problem.items.len() > 40 { 2 } else { 8 }).map(|m| m.1.clone()).collect();
    let running = measure::running(problem);
    let small = problem.items.iter().map(|item| item.modes.len()).sum::<usize>() <= 40;
    let refuted = |target: Time| {
        windows::refute(problem, &few, &running, target)
            || small && windows::refute_all(problem, &few[..few.len().min(3)], &running, target)
    };
    let (mut bound, mut step) = (bound, 1);
    while refuted(bound + step - 1) {
        bound += step;
        step *= 2;
    }
    while step > 1 {
        step /= 2;
        if refuted(bound + step - 1) {
            bound += step;
        }
    }
    bound
}
