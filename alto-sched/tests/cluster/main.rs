//! Schedulers of tasks on a cluster: every scheduler, every instance, through the independent check.

mod broken_plans;
mod brute_force;
mod gantt;
mod instances;
mod lists;
mod makespan;
mod random;
mod refusals;
mod replanning;
