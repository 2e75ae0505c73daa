//! By which of its modes each task runs, before anything is placed.

use super::problem::Problem;
use super::schedule::Slot;

/// Gives each item in turn the mode with which it would end earliest if work on a class were spread evenly over all its
/// devices; of these the one that takes the least devices times time.
pub(crate) fn balanced(problem: &Problem, order: &[usize], slots: &mut [Slot]) {
    if problem.is_rigid() {
        order.iter().for_each(|&item| slots[item].mode = problem.items[item].modes.start);
        return;
    }
    let devices: Vec<u128> =
        problem.classes.iter().map(|class| u128::from(class.capacity) * class.nodes.len() as u128).collect();
    let mut load: Vec<u128> = vec![0; devices.len()];
    for bin in &problem.nodes {
        load[bin.class] += bin.busy.iter().map(|&(until, width)| u128::from(until) * u128::from(width)).sum::<u128>();
    }
    for &item in order {
        let modes = problem.items[item].modes.clone();
        let cost = |mode: usize| {
            let way = problem.modes[mode];
            let class = way.class as usize;
            let spread = (load[class] + way.area()) / devices[class];
            (spread.max(load[class] / devices[class] + u128::from(way.duration)), way.area(), mode)
        };
        if let Some(mode) = modes.min_by_key(|&mode| cost(mode)) {
            let way = problem.modes[mode];
            load[way.class as usize] += way.area();
            slots[item].mode = mode;
        }
    }
}
