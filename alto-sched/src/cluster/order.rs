//! Orders in which tasks are looked at.

use std::cmp::Reverse;

use super::problem::Problem;

/// Item numbers, the first to be looked at first.
pub(crate) type Order = Vec<usize>;

/// By release; those released together as the caller gave them.
pub(crate) fn arrival(problem: &Problem) -> Order {
    sorted(problem, |item| (problem.items[item].release, problem.items[item].source))
}

/// The shortest first, by each task's shortest option.
pub(crate) fn shortest(problem: &Problem) -> Order {
    sorted(problem, |item| (problem.modes_of(item)[0].duration, item))
}

/// The longest first: the order that the items are in.
pub(crate) fn longest(problem: &Problem) -> Order {
    (0..problem.items.len()).collect()
}

/// The one with the most devices first, of these the longest.
pub(crate) fn widest(problem: &Problem) -> Order {
    sorted(problem, |item| (Reverse(problem.modes_of(item)[0].width), item))
}

/// The one with the most devices times time first.
pub(crate) fn largest(problem: &Problem) -> Order {
    let area = |item| problem.modes_of(item).iter().map(|mode| mode.area()).min();
    sorted(problem, |item| (Reverse(area(item)), item))
}

/// Smith's rule with devices: the most weight per device and second first.
pub(crate) fn heaviest(problem: &Problem) -> Order {
    let ratio = |item: usize| {
        let area = problem.modes_of(item).iter().map(|mode| mode.area()).min().unwrap_or(1);
        // Positive numbers order as their bits do.
        Reverse((problem.items[item].weight.abs() / area as f64).to_bits())
    };
    sorted(problem, |item| (ratio(item), item))
}

fn sorted<K: Ord>(problem: &Problem, key: impl Fn(usize) -> K) -> Order {
    let mut order = longest(problem);
    order.sort_by_cached_key(|&item| key(item));
    order
}
