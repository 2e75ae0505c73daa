//! Which steps of a job stand at a mark of its progress.
//!
//! A mark is reached at the first step at or past it after which the adapter has moved. Before that all jobs have the
//! loss of the untrained model, which tells nothing about any of them.

use crate::job::Job;

/// The step that reaches this mark of progress, for a mark of 0 to 1; that of 0 is before the first step.
pub(super) fn first_step(job: &Job, mark: f64) -> u64 {
    if mark <= 0.0 {
        return 0;
    }
    // Starting one short, as the product may round up past the mark.
    let mut step = ((mark * job.steps as f64) as u64).saturating_sub(1);
    while job.progress(step) < mark {
        step += 1;
    }
    // A job may end before it has moved.
    step.max(job.steps_to_move()).min(job.steps)
}

/// Whether a job is evaluated after this many steps: before the first, after the last, and after each that reaches a
/// multiple of `interval`.
pub(super) fn is_evaluated(job: &Job, step: u64, interval: f64) -> bool {
    // The tolerance mends quotients such as 0.29 / 0.01, which falls just short of 29.
    let passed = |step| (job.progress(step) / interval + 1e-9).floor();
    let moved = job.steps_to_move();
    let reaches = || passed(step) > if step == moved { 0.0 } else { passed(step - 1) };
    step == 0 || step >= job.steps || (step >= moved && reaches())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trainer::fixtures::job;

    #[test]
    fn a_mark_is_reached_at_the_first_step_at_or_past_it() {
        for steps in 1..400 {
            let job = job("a", 1, steps);
            for mark in [0.0, 0.01, 0.05, 0.07, 0.29, 0.5, 0.99, 1.0] {
                let step = first_step(&job, mark);
                assert!(job.progress(step) >= mark, "step {step} of {steps} is short of {mark}");
                assert!(
                    step == 0 || job.progress(step - 1) < mark,
                    "step {step} of {steps} is not the first at {mark}"
                );
            }
        }
    }

    #[test]
    fn every_interval_has_one_evaluation_however_few_or_many_the_steps() {
        for (steps, expected) in [(1, 2), (7, 8), (100, 101), (150, 101), (1000, 101), (12_345, 101)] {
            let job = job("a", 1, steps);
            let evaluated: Vec<u64> = (0..=steps).filter(|&step| is_evaluated(&job, step, 0.01)).collect();
            assert_eq!(evaluated.len(), expected, "{steps} steps");
            assert_eq!((evaluated[0], evaluated[expected - 1]), (0, steps));
        }
        let job = job("a", 1, 1000);
        assert!((1..=100).all(|mark| is_evaluated(&job, mark * 10, 0.01)), "every tenth of a thousand steps");
    }
}
