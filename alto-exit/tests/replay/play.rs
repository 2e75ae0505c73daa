use std::sync::Mutex;

use alto_exit::replay::{RecordedRun, Replay, ReplayError, RunError};
use alto_exit::{
    AnyOf, Curve, Diverging, End, ExitPolicy, LossAware, Never, Overfitting, Reason, Underperforming, Verdict,
};

use crate::runs::{chain, recorded, run};

fn with_slots(slots: usize) -> Replay {
    Replay { slots: Some(slots), ..Replay::default() }
}

/// Keeps everybody, and remembers whom it was asked about, and at which step.
#[derive(Debug, Default)]
struct Asked {
    rungs: Vec<f64>,
    log: Mutex<Vec<(usize, u64)>>,
}

impl ExitPolicy for Asked {
    fn rungs(&self, _: usize) -> Vec<f64> {
        self.rungs.clone()
    }

    fn judge(&self, job: usize, cohort: &[Curve]) -> Verdict {
        let step = cohort[job].evaluations.last().map_or(0, |latest| latest.step);
        self.log.lock().expect("no judge panicked").push((job, step));
        Verdict::Keep
    }
}

fn asked(replay: Replay, rungs: &[f64], runs: &[RecordedRun]) -> Vec<(usize, u64)> {
    let policy = Asked { rungs: rungs.to_vec(), log: Mutex::default() };
    let curves = replay.run(runs, &policy).expect("runs to replay");
    assert!(curves.iter().all(|curve| curve.end == Some(End::Finished)));
    policy.log.into_inner().expect("no judge panicked")
}

#[test]
fn a_job_alone_has_the_course_that_was_recorded() {
    for run in recorded() {
        let curves = Replay::default().run(&[&run], &Never).unwrap();
        assert!(curves[0].train.iter().map(|point| point.loss).eq(run.train_loss.iter().copied()));
        assert!(curves[0].evaluations.iter().copied().eq(run.evaluations()));
        assert_eq!(curves[0].end, Some(End::Finished));
    }
    assert_eq!(Replay::default().run(&[] as &[RecordedRun], &Never).unwrap(), []);
}

#[test]
fn jobs_with_a_slot_step_together_and_are_judged_at_their_evaluations_but_the_last() {
    let runs = [run(4, &[(0, 2.0), (2, 1.5), (4, 1.0)]), run(6, &[(3, 1.0)])];
    assert_eq!(asked(Replay::default(), &[], &runs), [(0, 0), (0, 2), (1, 3)]);
    assert_eq!(asked(with_slots(1), &[], &runs), [(0, 0), (0, 2), (1, 3)]);
}

#[test]
fn the_largest_batch_goes_first_and_gives_its_slot_to_one_of_its_size() {
    let batches = [1, 4, 2, 4].map(|batch| RecordedRun { batch, ..run(2, &[(1, 1.0), (2, 1.0)]) });
    assert_eq!(asked(with_slots(1), &[], &batches), [(1, 1), (3, 1), (2, 1), (0, 1)]);
}

#[test]
fn all_come_to_a_rung_before_anyone_goes_on() {
    let runs = [1.0, 2.0, 3.0].map(|loss| run(10, &[(2, loss), (5, loss), (10, loss)]));
    for slots in 1..=3 {
        let mut seen = asked(with_slots(slots), &[0.2], &runs);
        assert_eq!(seen[..3], [(0, 2), (1, 2), (2, 2)]);
        seen.sort();
        assert_eq!(seen, [(0, 2), (0, 5), (1, 2), (1, 5), (2, 2), (2, 5)], "once each");
    }
}

#[test]
fn the_first_evaluation_at_or_past_a_rung_counts_for_it() {
    let runs = [run(20, &[(0, 9.0), (1, 3.0), (3, 1.0), (20, 1.0)]), run(20, &[(0, 9.0), (2, 2.0), (20, 2.0)])];
    let curves = Replay::default().run(&runs, &Underperforming { mark: 0.1, keep: 0.5 }).unwrap();
    assert_eq!(curves[0].end, Some(End::Finished));
    assert!(matches!(curves[1].end, Some(End::Exited(Reason::Underperforming { step: 2, place: 2, .. }))));
    assert_eq!(curves[1].train.len(), 2);
}

#[test]
fn a_job_without_an_evaluation_past_a_rung_finishes_unjudged_and_holds_nobody() {
    let runs = [run(10, &[(0, 2.0), (1, 1.0)]), run(10, &[(5, 3.0), (10, 3.0)]), run(10, &[(5, 2.0), (10, 2.0)])];
    for slots in 1..=3 {
        let curves = with_slots(slots).run(&runs, &Underperforming { mark: 0.5, keep: 0.5 }).unwrap();
        assert_eq!(curves[0].end, Some(End::Finished));
        assert!(matches!(curves[1].end, Some(End::Exited(Reason::Underperforming { of: 2, .. }))));
        assert_eq!(curves[2].end, Some(End::Finished));
    }
}

#[test]
fn a_training_loss_that_is_not_finite_is_a_skipped_step_and_too_many_in_a_row_end_the_job() {
    let mut skips = run(6, &[(2, 1.0), (4, 1.0), (6, 1.0)]);
    skips.train_loss = vec![1.0, f64::NAN, f64::INFINITY, 1.0, f64::NAN, f64::NAN];
    let mut broken = skips.clone();
    broken.train_loss[3] = f64::NEG_INFINITY;
    let curves = Replay::default().run(&[skips, broken], &Diverging::default()).unwrap();
    assert_eq!(curves[0].end, Some(End::Finished));
    assert!(curves[0].train.iter().map(|point| point.step).eq([1, 4]));
    assert!(matches!(curves[1].end, Some(End::Failed { step: 4, .. })), "{:?}", curves[1].end);
    assert!(curves[1].train.iter().map(|point| point.step).eq([1]));
    assert!(curves[1].evaluations.iter().map(|point| point.step).eq([2]), "it ended before it was evaluated");
}

#[test]
fn a_validation_loss_that_is_not_finite_is_the_policys_to_judge() {
    let runs = [run(4, &[(1, f64::NAN), (2, 1.0), (4, 1.0)]), run(4, &[(2, f64::NAN), (4, 1.0)])];
    let curves = Replay::default().run(&runs, &Diverging::default()).unwrap();
    assert!(matches!(curves[0].end, Some(End::Exited(Reason::NotFinite { step: 1, .. }))));
    assert!(matches!(curves[1].end, Some(End::Exited(Reason::NotFinite { step: 2, .. }))));
}

#[test]
fn the_order_of_the_jobs_and_the_number_of_slots_change_nothing_of_the_papers_policy() {
    let runs = recorded();
    let expected = Replay::default().run(&runs, &LossAware::default()).unwrap();
    let backwards: Vec<&RecordedRun> = runs.iter().rev().collect();
    for slots in 1..=runs.len() {
        assert_eq!(with_slots(slots).run(&runs, &LossAware::default()).unwrap(), expected);
        let mut found = with_slots(slots).run(&backwards, &LossAware::default()).unwrap();
        found.reverse();
        assert_eq!(found, expected);
    }
}

#[test]
fn equal_losses_are_kept_by_index() {
    let runs = vec![run(10, &[(1, 1.0), (10, 1.0)]); 4];
    let curves = with_slots(2).run(&runs, &Underperforming { mark: 0.1, keep: 0.5 }).unwrap();
    let finished = curves.iter().map(|curve| curve.end == Some(End::Finished));
    assert!(finished.eq([true, true, false, false]));
}

#[test]
fn what_cannot_be_replayed_is_an_error_that_names_it() {
    let runs = [run(4, &[(0, 1.0), (4, 1.0)]), run(4, &[(2, 1.0), (1, 1.0)])];
    let error = |replay: Replay, runs: &[RecordedRun], policy: &dyn ExitPolicy| replay.run(runs, policy).unwrap_err();
    let found = error(Replay::default(), &runs, &Never);
    assert!(matches!(found, ReplayError::Run { run: 1, source: RunError::Unordered { evaluation: 1, .. } }));
    assert_eq!(
        chain(&found),
        "run 1 can't be replayed: evaluation 1 of the recorded run is at step 1, expected one behind 2"
    );
    let found = error(with_slots(0), &runs[..1], &Never);
    assert_eq!(found.to_string(), "slots of the replay is 0, expected at least 1");
    let found = error(Replay { skips: 0, ..Replay::default() }, &runs[..1], &Never);
    assert_eq!(found.to_string(), "skips of the replay is 0, expected at least 1");
    let found = error(Replay::default(), &runs[..1], &Asked { rungs: vec![0.5, 1.5], log: Mutex::default() });
    assert_eq!(found.to_string(), "the policy puts a rung of job 0 at progress 1.5, but marks are from 0 to 1");
    let patience = Overfitting { patience: 0, ..Overfitting::default() };
    assert!(matches!(error(Replay::default(), &runs[..1], &AnyOf(vec![Box::new(patience)])), ReplayError::Policy(_)));
}
