//! Takes out the tasks that must run alone.
//!
//! On a single node, a task beside which not even the narrowest other one fits has all devices to itself. Without
//! releases and running tasks, such tasks can all run first, one after another, so what is left is a problem by itself:
//! its least makespan and their durations add up to the least makespan of all.

use super::problem::{Problem, Time};
use super::schedule::{Schedule, Slot};

/// A problem in two parts.
#[derive(Debug)]
pub(crate) struct Reduced {
    /// Without the tasks that run alone.
    pub(crate) rest: Problem,
    /// Items of the whole problem, with the modes they run by.
    alone: Vec<(usize, usize)>,
    /// How long they take in all.
    pub(crate) length: Time,
}

/// `None` where no task must run alone, or where taking them out could lose the optimum.
pub(crate) fn reduce(problem: &Problem) -> Option<Reduced> {
    if problem.nodes.len() != 1 || problem.has_releases() || problem.is_busy() || problem.items.len() < 2 {
        return None;
    }
    let capacity = problem.classes[0].capacity;
    let width = |item: usize| problem.modes_of(item).iter().map(|mode| mode.width).min().unwrap_or(1);
    let mut widths: Vec<u32> = (0..problem.items.len()).map(width).collect();
    widths.sort_unstable();
    let narrowest = |item: usize| if width(item) == widths[0] { widths[1] } else { widths[0] };
    let is_alone = |item: usize| u64::from(width(item)) + u64::from(narrowest(item)) > u64::from(capacity);
    // The first mode is the shortest.
    let alone: Vec<(usize, usize)> = (0..problem.items.len())
        .filter(|&item| is_alone(item))
        .map(|item| (item, problem.items[item].modes.start))
        .collect();
    if alone.is_empty() {
        return None;
    }
    let mut rest = problem.clone();
    rest.items =
        (0..problem.items.len()).filter(|&item| !is_alone(item)).map(|item| problem.items[item].clone()).collect();
    let length = alone.iter().map(|&(_, mode)| problem.modes[mode].duration).sum();
    Some(Reduced { rest, alone, length })
}

impl Reduced {
    /// The schedule of the whole problem: those that run alone first, then the rest.
    pub(crate) fn expand(&self, rest: &[Slot]) -> Schedule {
        let mut slots = Vec::with_capacity(rest.len() + self.alone.len());
        let (mut now, mut rest) = (0, rest.iter());
        let mut alone = self.alone.iter().peekable();
        for item in 0..rest.len() + self.alone.len() {
            if let Some(&(_, mode)) = alone.next_if(|alone| alone.0 == item) {
                slots.push(Slot { mode, node: 0, start: now });
                now += self.rest.modes[mode].duration;
            } else if let Some(&slot) = rest.next() {
                slots.push(Slot { start: slot.start + self.length, ..slot });
            }
        }
        Schedule { slots }
    }
}
