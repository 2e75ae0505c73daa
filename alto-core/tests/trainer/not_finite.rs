//! Losses that are no numbers.

use alto_core::trainer::{Ended, EventKind, Trainer};
use alto_exit::{Diverging, End, Never, Reason};

use super::follow::follow;
use super::setup::{job, line, recorded, run, trained_steps};

/// Ten steps, of which these are not finite; the validation loss goes from 2 to 1.
fn broken(steps: &[u64]) -> alto_core::simulated::RecordedRun {
    let train = (1..=10).map(|step| if steps.contains(&step) { f64::NAN } else { 1.5 }).collect();
    recorded(train, &[(0, 2.0), (10, 1.0)])
}

#[test]
fn three_skipped_steps_in_a_row_end_a_job_and_touch_no_other() {
    let well = [(job("a", 10), line(10, 1.0)), (job("c", 10), line(10, 1.2))];
    let mut jobs = well.to_vec();
    jobs.insert(1, (job("b", 10), broken(&[4, 5, 6, 7, 8])));
    for interval in [0.1, 0.5] {
        let trainer = Trainer { interval, ..Trainer::default() };
        let (outcome, events) = run(&trainer, &jobs, &Never);
        follow(&events, 3, None);
        let report = &outcome.report.jobs;
        let quarantined = Ended::Quarantined { tensor: "loss".into(), step: 6, in_a_row: 3 };
        assert_eq!(report[1].ended, quarantined);
        assert_eq!(report[1].ended.to_string(), "quarantined at step 6: loss was not finite, step 3 in a row");
        assert!(matches!(report[1].curve.end, Some(End::Failed { step: 6, .. })));
        // Whenever it was noticed, what counts ends at the third step.
        assert_eq!((report[1].steps, report[1].skipped, report[1].curve.train.len()), (6, 3, 3));
        let (alone, _) = run(&trainer, &well, &Never);
        assert_eq!([&report[0].curve, &report[2].curve], [&alone.report.jobs[0].curve, &alone.report.jobs[1].curve]);
    }
}

#[test]
fn fewer_skipped_steps_leave_a_gap_in_the_curve_and_nothing_else() {
    let jobs = [(job("a", 10), broken(&[2, 3, 5, 6]))];
    let (outcome, events) = run(&Trainer::default(), &jobs, &Never);
    let report = &outcome.report.jobs[0];
    assert_eq!(report.ended, Ended::Finished);
    assert_eq!((report.steps, report.skipped), (10, 4));
    assert_eq!(report.curve.train.iter().map(|point| point.step).collect::<Vec<_>>(), [1, 4, 7, 8, 9, 10]);
    let skipped = events.iter().filter_map(|event| match event {
        EventKind::Skipped { step, tensor, .. } => Some((*step, tensor.as_str())),
        _ => None,
    });
    assert_eq!(skipped.collect::<Vec<_>>(), [(2, "loss"), (3, "loss"), (5, "loss"), (6, "loss")]);
    assert_eq!(trained_steps(outcome.adapters[0].as_ref().unwrap()), 6.0, "the adapter skips them too");
}

#[test]
fn how_many_steps_may_be_skipped_is_a_setting() {
    let jobs = [(job("a", 10), broken(&[2, 3, 5, 6]))];
    let (outcome, _) = run(&Trainer { skips: 1, ..Trainer::default() }, &jobs, &Never);
    assert_eq!(outcome.report.jobs[0].ended, Ended::Quarantined { tensor: "loss".into(), step: 2, in_a_row: 1 });
}

#[test]
fn a_validation_loss_that_is_not_finite_is_for_the_policy_to_judge() {
    let explodes = recorded(vec![1.0; 10], &[(0, 2.0), (4, 1.0), (5, f64::INFINITY), (10, f64::NAN)]);
    let jobs = [(job("a", 10), explodes)];
    let trainer = Trainer { interval: 0.1, ..Trainer::default() };

    let (outcome, _) = run(&trainer, &jobs, &Diverging::default());
    let report = &outcome.report.jobs[0];
    assert!(matches!(report.ended, Ended::Exited(Reason::NotFinite { step: 5, .. })), "{}", report.ended);

    let (outcome, _) = run(&trainer, &jobs, &Never);
    let report = &outcome.report.jobs[0];
    assert_eq!((&report.ended, report.steps), (&Ended::Finished, 10));
    assert_eq!(report.curve.evaluations.len(), 11);
    assert_eq!(trained_steps(outcome.adapters[0].as_ref().unwrap()), 4.0);
}

#[test]
fn a_job_without_any_finite_evaluation_leaves_no_adapter_and_wins_nothing() {
    let jobs = [(job("a", 4), recorded(vec![1.0; 4], &[(0, f64::NAN)]))];
    let (outcome, _) = run(&Trainer::default(), &jobs, &Never);
    assert_eq!((outcome.report.winner, outcome.report.jobs[0].best, &outcome.adapters[0]), (None, None, &None));
}
