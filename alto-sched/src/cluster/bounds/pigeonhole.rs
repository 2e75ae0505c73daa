//! Of tasks that take over a `k + 1`-th of a node, at most `k` are on a node at a time; of `k q + 1` such tasks, `q + 1`
//! follow one another.

use crate::cluster::problem::{Problem, Time};

/// The best such bound over all `k`, for problems with one class of nodes.
pub(crate) fn bound(problem: &Problem) -> Time {
    let [class] = &problem.classes[..] else { return 0 };
    // Each with its least width and its least duration, the longest first.
    let mut tasks: Vec<(Time, u32)> = (0..problem.items.len())
        .map(|item| {
            let modes = problem.modes_of(item);
            (modes[0].duration, modes.iter().map(|mode| mode.width).min().unwrap_or(1))
        })
        .collect();
    tasks.sort_unstable_by(|a, b| b.cmp(a));
    let mut best = 0;
    let mut tried = 0;
    for k in 1..=class.capacity {
        // Past this no narrower task joins.
        if tried == tasks.len() || k > 64 {
            break;
        }
        let places = k as usize * class.nodes.len();
        let sums: Vec<Time> = std::iter::once(0)
            .chain(tasks.iter().filter(|task| u64::from(task.1) * u64::from(k + 1) > u64::from(class.capacity)).scan(
                0,
                |sum: &mut Time, task| {
                    // Where it ends, differences are too small, which is safe.
                    *sum = sum.saturating_add(task.0);
                    Some(*sum)
                },
            ))
            .collect();
        tried = sums.len() - 1;
        for q in 1.. {
            let first = places * q + 1;
            if first > tried {
                break;
            }
            // The shortest `q + 1` of the longest `places q + 1`.
            best = best.max(sums[first] - sums[first - q - 1]);
        }
    }
    best
}
