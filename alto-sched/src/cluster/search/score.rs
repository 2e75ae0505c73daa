//! What makes one schedule better than another.

use crate::cluster::problem::{Problem, Time};
use crate::cluster::schedule::Slot;

/// What is made small after the makespan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
#[non_exhaustive]
pub enum Second {
    /// Nothing: a search ends as soon as the makespan is proven to be the least.
    #[default]
    Nothing,
    /// [`Plan::weighted_completion`](crate::Plan::weighted_completion): of the plans with the least makespan found, one
    /// that lets tasks of much weight and little work end early. A search goes on to the end of its budget.
    WeightedCompletion,
}

/// The less the better.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub(super) struct Score {
    pub(super) makespan: Time,
    /// The second objective; without one, the work done after the lower bound: the less of it, the closer the schedule
    /// is to one that ends there.
    pub(super) second: f64,
}

impl Score {
    pub(super) const WORST: Score = Score { makespan: Time::MAX, second: f64::INFINITY };

    pub(super) fn of(problem: &Problem, slots: &[Slot], second: Second, bound: Time) -> Score {
        let mut score = Score { makespan: 0, second: 0.0 };
        for (item, slot) in problem.items.iter().zip(slots) {
            let mode = &problem.modes[slot.mode];
            let end = slot.start + mode.duration;
            score.makespan = score.makespan.max(end);
            score.second += match second {
                Second::WeightedCompletion => item.weight * end as f64,
                Second::Nothing => f64::from(mode.width) * end.saturating_sub(bound).min(mode.duration) as f64,
            };
        }
        score
    }
}
