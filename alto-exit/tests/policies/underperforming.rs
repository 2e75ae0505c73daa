use alto_exit::{Curve, End, EvaluationPoint, ExitPolicy, Reason, Underperforming, Verdict};

use crate::curves::evaluation;

/// A curve whose latest evaluation is at the mark of 0.05.
fn at_mark(loss: f64) -> Curve {
    Curve { evaluations: vec![evaluation(0, 3.0), evaluation(4, 2.5), evaluation(5, loss)], ..Curve::default() }
}

fn stays(policy: &Underperforming, cohort: &[Curve]) -> Vec<usize> {
    (0..cohort.len()).filter(|&job| policy.judge(job, cohort) == Verdict::Keep).collect()
}

fn kept(keep: f64, losses: &[f64]) -> Vec<usize> {
    let cohort: Vec<Curve> = losses.iter().map(|&loss| at_mark(loss)).collect();
    stays(&Underperforming { keep, ..Underperforming::default() }, &cohort)
}

#[test]
fn the_best_quarter_stays_and_the_others_learn_their_place() {
    let cohort = [1.5, 1.25, 2.0, 1.75, 1.0, 2.25, 2.5, 3.0].map(at_mark);
    let policy = Underperforming::default();
    assert_eq!(stays(&policy, &cohort), [1, 4]);
    assert_eq!(
        policy.judge(2, &cohort),
        Verdict::Exit(Reason::Underperforming { step: 5, mark: 0.05, place: 5, of: 8, kept: 2, loss: 2.0, cut: 1.25 })
    );
}

#[test]
fn the_share_is_rounded_up() {
    assert_eq!(kept(0.25, &[5.0, 4.0, 3.0, 2.0, 1.0]), [3, 4]);
    assert_eq!(kept(0.25, &[3.0, 2.0, 1.0]), [2]);
    assert_eq!(kept(0.25, &[9.0]), [0]);
    assert_eq!(kept(1.0, &[3.0, 2.0, 1.0]), [0, 1, 2]);
    assert_eq!(kept(1e-300, &[3.0, 2.0, 1.0]), [2]);
}

#[test]
fn a_share_that_is_whole_is_not_rounded_up() {
    let losses: Vec<f64> = (0..100).map(f64::from).collect();
    // In floating point, 0.07 * 100 is a hair over 7.
    assert_eq!(kept(0.07, &losses).len(), 7);
    assert_eq!(kept(0.071, &losses).len(), 8);
    assert_eq!(kept(1.0 / 3.0, &losses[..3]).len(), 1);
}

#[test]
fn ties_go_by_index() {
    assert_eq!(kept(0.5, &[1.0, 1.0, 1.0, 1.0]), [0, 1]);
    assert_eq!(kept(0.5, &[2.0, 1.0, 1.0, 1.0]), [1, 2]);
    assert_eq!(kept(0.5, &[0.0, -0.0]), [0]);
}

#[test]
fn losses_that_are_not_finite_rank_last_and_alike() {
    let (nan, inf) = (f64::NAN, f64::INFINITY);
    assert_eq!(kept(0.5, &[nan, 9.0, -inf, 8.0]), [1, 3]);
    assert_eq!(kept(0.75, &[inf, 9.0, nan, 8.0]), [0, 1, 3]);
    assert_eq!(kept(0.5, &[nan, -inf, inf, nan]), [0, 1]);
}

#[test]
fn it_speaks_only_while_the_evaluation_at_the_mark_is_the_latest() {
    let policy = Underperforming { keep: 0.5, ..Underperforming::default() };
    let verdicts = |evaluations: &[(u64, f64)]| {
        let judged = evaluations.iter().map(|&(step, loss)| evaluation(step, loss)).collect();
        policy.judge(0, &[Curve { evaluations: judged, ..Curve::default() }, at_mark(1.0)]) != Verdict::Keep
    };
    assert!(!verdicts(&[]));
    assert!(!verdicts(&[(0, 9.0)]));
    assert!(!verdicts(&[(4, 9.0)]));
    assert!(verdicts(&[(4, 9.0), (5, 9.0)]));
    assert!(verdicts(&[(4, 9.0), (8, 9.0)]), "the first evaluation past the mark is the one at it");
    assert!(!verdicts(&[(5, 9.0), (6, 9.0)]));
    assert!(!verdicts(&[(5, 0.5), (6, 9.0)]), "a job that stayed is not asked again");
}

#[test]
fn jobs_are_compared_at_equal_progress_not_at_equal_steps() {
    let policy = Underperforming { keep: 0.5, ..Underperforming::default() };
    let job = |points: &[(u64, f64, f64)]| Curve {
        evaluations: points.iter().map(|&(step, progress, loss)| EvaluationPoint { step, progress, loss }).collect(),
        ..Curve::default()
    };
    let large_batch = job(&[(1, 0.0625, 2.0)]);
    let small_batch = job(&[(1, 0.0125, 3.0), (4, 0.05, 1.5)]);
    assert_eq!(stays(&policy, &[large_batch, small_batch]), [1]);
}

#[test]
fn a_record_counts_whatever_became_of_the_job() {
    let policy = Underperforming { keep: 0.5, ..Underperforming::default() };
    let mut cohort = [1.0, 4.0, 2.0, 3.0].map(at_mark);
    assert_eq!(stays(&policy, &cohort), [0, 2]);

    // The best job goes on and gets worse, the second-best fails, the worst is ended by its own verdict.
    cohort[0].evaluations.push(evaluation(6, 99.0));
    cohort[0].end = Some(End::Failed { step: 6, error: "gone".into() });
    let Verdict::Exit(reason) = policy.judge(1, &cohort) else { panic!("job 1 is last") };
    cohort[1].end = Some(End::Exited(reason));
    assert_eq!(stays(&policy, &cohort), [0, 2]);
}

#[test]
fn a_job_that_ended_short_of_the_mark_is_not_counted() {
    let mut cohort = [1.0, 2.0, 3.0].map(at_mark).to_vec();
    let mut short = at_mark(0.5);
    short.evaluations.truncate(2);
    short.end = Some(End::Finished);
    cohort.push(short);
    // Three reached it: ceil(0.25 * 3) = 1 stays, and the short one is not judged.
    assert_eq!(stays(&Underperforming::default(), &cohort), [0, 3]);
}

#[test]
fn a_late_job_is_ranked_against_the_same_record() {
    let policy = Underperforming { keep: 0.5, ..Underperforming::default() };
    let mut cohort = [1.0, 2.0, 3.0].map(at_mark).to_vec();
    assert_eq!(stays(&policy, &cohort), [0, 1]);
    for early in &mut cohort[..2] {
        early.evaluations.push(evaluation(6, 0.1));
    }
    cohort[2].end = Some(End::Finished);
    for (loss, stays) in [(1.5, true), (2.0, false), (2.5, false)] {
        cohort.push(at_mark(loss));
        assert_eq!(policy.judge(3, &cohort) == Verdict::Keep, stays, "a late job with loss {loss}");
        cohort.truncate(3);
    }
}

#[test]
fn its_mark_is_a_rung_of_every_job() {
    let policy = Underperforming { mark: 0.2, keep: 0.5 };
    assert_eq!(policy.rungs(0), [0.2]);
    assert_eq!(policy.rungs(7), [0.2]);
}
