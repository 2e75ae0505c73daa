//! How much the devices may still be idle if all is to end by the target.

use crate::cluster::bounds::measure::{self, Measure};
use crate::cluster::problem::{Problem, Time};

/// A budget for each measure: what the devices can do until the target, less what there is to do.
#[derive(Debug, Clone, Default)]
pub(super) struct Waste {
    accounts: Vec<Account>,
}

#[derive(Debug, Clone)]
struct Account {
    /// What is left of the budget.
    left: i64,
    /// What all devices do at a time, less what they do now.
    idle: i64,
    /// For each mode, what it counts at a time.
    loads: Vec<i64>,
    /// For each mode, what it counts in all, over the least that its task can.
    excess: Vec<i64>,
    /// For each node, by width.
    busy: Vec<Vec<i64>>,
}

impl Waste {
    /// Measures with numbers too large for it are left out.
    pub(super) fn new(problem: &Problem, measures: &[Measure], target: Time) -> Waste {
        Waste { accounts: measures.iter().filter_map(|measure| Account::new(problem, measure, target)).collect() }
    }

    /// Whether there is less to do it with than there is to do.
    pub(super) fn exhausted(&self) -> bool {
        self.accounts.iter().any(|account| account.left < 0)
    }

    /// A task starts; `false` if that is too wasteful.
    pub(super) fn start(&mut self, mode: usize) -> bool {
        let mut enough = true;
        for account in &mut self.accounts {
            account.idle -= account.loads[mode];
            account.left -= account.excess[mode];
            enough &= account.left >= 0;
        }
        enough
    }

    pub(super) fn undo_start(&mut self, mode: usize) {
        for account in &mut self.accounts {
            account.idle += account.loads[mode];
            account.left += account.excess[mode];
        }
    }

    /// Time goes by; `false` if too many devices are idle.
    pub(super) fn pass(&mut self, span: Time) -> bool {
        let mut enough = true;
        for account in &mut self.accounts {
            account.left -= account.idle * span as i64;
            enough &= account.left >= 0;
        }
        enough
    }

    pub(super) fn undo_pass(&mut self, span: Time) {
        self.accounts.iter_mut().for_each(|account| account.left += account.idle * span as i64);
    }

    /// A task ends: one of this mode, or else one that ran from the beginning.
    pub(super) fn end(&mut self, node: usize, width: u32, mode: Option<usize>) {
        self.accounts.iter_mut().for_each(|account| account.idle += account.load(node, width, mode));
    }

    pub(super) fn undo_end(&mut self, node: usize, width: u32, mode: Option<usize>) {
        self.accounts.iter_mut().for_each(|account| account.idle -= account.load(node, width, mode));
    }
}

impl Account {
    fn new(problem: &Problem, measure: &Measure, target: Time) -> Option<Account> {
        let rate = measure.rate(problem);
        let all = rate.checked_mul(u128::from(target))?;
        // Far from where the sums below could overflow.
        if all > i64::MAX as u128 / 8 {
            return None;
        }
        let held = |busy: &(Time, u128)| busy.1 * u128::from(busy.0.min(target));
        let running = measure.busy(&measure::running(problem));
        let energy: u128 = (0..problem.items.len()).map(|item| measure.energy(problem, item)).sum();
        if energy > i64::MAX as u128 / 8 {
            return None;
        }
        let left = all as i64 - running.iter().map(held).sum::<u128>() as i64 - energy as i64;
        let idle = rate as i64 - running.iter().map(|busy| busy.1).sum::<u128>() as i64;
        let mut excess = vec![0; problem.modes.len()];
        for (item, task) in problem.items.iter().enumerate() {
            let least = measure.energy(problem, item);
            for mode in task.modes.clone() {
                let way = problem.modes[mode];
                let energy = u128::from(measure.load(way.class as usize, way.width)) * u128::from(way.duration);
                excess[mode] = i64::try_from(energy - least).ok().filter(|&excess| excess < i64::MAX / 8)?;
            }
        }
        let loads = problem.modes.iter().map(|way| measure.load(way.class as usize, way.width) as i64).collect();
        let load = |node: usize, width: u32| measure.load(problem.nodes[node].class, width) as i64;
        let busy = (0..problem.nodes.len())
            .map(|node| match problem.nodes[node].busy.is_empty() {
                true => Vec::new(),
                false => (0..=problem.capacity_of(node)).map(|width| load(node, width)).collect(),
            })
            .collect();
        Some(Account { left, idle, loads, excess, busy })
    }

    fn load(&self, node: usize, width: u32, mode: Option<usize>) -> i64 {
        mode.map_or_else(|| self.busy[node][width as usize], |mode| self.loads[mode])
    }
}
