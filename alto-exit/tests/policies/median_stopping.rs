use alto_exit::{Curve, End, EvaluationPoint, ExitPolicy, MedianStopping, Reason, Verdict};

use crate::curves::{evaluation, stepwise};

const NAN: f64 = f64::NAN;

fn policy(peers: usize) -> MedianStopping {
    MedianStopping { peers, grace: 0.0 }
}

fn ended(policy: &MedianStopping, cohort: &[Curve]) -> Vec<usize> {
    (0..cohort.len()).filter(|&job| policy.judge(job, cohort) != Verdict::Keep).collect()
}

#[test]
fn the_best_is_compared_with_the_median_of_what_the_others_average() {
    // Averages 3, 2, 5, and 4 of the last; its best is 3.5.
    let cohort = [[4.0, 2.0], [3.0, 1.0], [6.0, 4.0], [4.5, 3.5]].map(|losses| stepwise(&[], &losses));
    assert_eq!(ended(&policy(3), &cohort), [2, 3]);
    assert_eq!(
        policy(3).judge(3, &cohort),
        Verdict::Exit(Reason::MedianStopping { step: 2, progress: 0.02, best: 3.5, median: 3.0, peers: 3 })
    );
    // Job 2's others average 3, 2 and 4.
    assert_eq!(
        policy(3).judge(2, &cohort),
        Verdict::Exit(Reason::MedianStopping { step: 2, progress: 0.02, best: 4.0, median: 3.0, peers: 3 })
    );
}

#[test]
fn of_an_even_number_of_others_the_middle_is_between_two() {
    let cohort = |best: f64| [1.0, 2.0, best].map(|loss| stepwise(&[], &[loss]));
    assert_eq!(ended(&policy(2), &cohort(1.5)), [1], "1.5 is not above 1.5, and 2 is above 1.25");
    assert_eq!(ended(&policy(2), &cohort(1.5625)), [1, 2]);
}

#[test]
fn equal_losses_keep_everybody() {
    assert_eq!(ended(&policy(1), &vec![stepwise(&[], &[2.0, 2.0]); 5]), [0; 0]);
}

#[test]
fn too_few_peers_and_grace_keep_everybody() {
    let cohort = [1.0, 1.0, 9.0].map(|loss| stepwise(&[], &[loss]));
    assert_eq!(ended(&policy(2), &cohort), [2]);
    assert_eq!(ended(&policy(3), &cohort), [0; 0]);
    assert_eq!(ended(&MedianStopping { peers: 2, grace: 0.01 }, &cohort), [2]);
    assert_eq!(ended(&MedianStopping { peers: 2, grace: 0.02 }, &cohort), [0; 0]);
    assert_eq!(ended(&policy(1), &cohort[2..]), [0; 0], "one job");
    assert_eq!(ended(&policy(1), &[Curve::default(), Curve::default()]), [0; 0], "no evaluations");
}

#[test]
fn peers_are_averaged_up_to_the_jobs_own_progress_and_count_whatever_became_of_them() {
    // The others went on and fell; when they were as far, they averaged 2.
    let mut others = stepwise(&[], &[2.0, 2.0, 0.0, 0.0]);
    others.end = Some(End::Failed { step: 4, error: "gone".into() });
    let job = |loss| stepwise(&[], &[9.0, loss]);
    assert_eq!(ended(&policy(2), &[others.clone(), others.clone(), job(2.0)]), [0; 0]);
    assert_eq!(ended(&policy(2), &[others.clone(), others.clone(), job(2.5)]), [2]);
    // One that is short of it is no peer.
    assert_eq!(ended(&policy(2), &[others, stepwise(&[], &[2.0]), job(2.5)]), [0; 0]);
}

#[test]
fn progress_counts_and_not_steps_and_the_untrained_evaluation_does_not() {
    let at = |points: &[(u64, f64, f64)]| Curve {
        evaluations: points.iter().map(|&(step, progress, loss)| EvaluationPoint { step, progress, loss }).collect(),
        ..Curve::default()
    };
    let large = at(&[(0, 0.0, 99.0), (1, 0.5, 2.0)]);
    let small = at(&[(0, 0.0, 99.0), (2, 0.25, 2.5), (4, 0.5, 2.5)]);
    assert_eq!(ended(&policy(1), &[large, small]), [1]);
}

#[test]
fn a_loss_that_is_not_finite_is_worse_than_any() {
    let with = |loss: f64| [1.0, 2.0, loss].map(|loss| stepwise(&[], &[loss]));
    for loss in [NAN, f64::INFINITY, f64::NEG_INFINITY] {
        // Its others have 1 and 2; theirs have one infinite average, so a median of infinity.
        let ended_with = ended(&policy(2), &with(loss));
        assert_eq!(ended_with, [2], "{loss}");
        assert_eq!(ended(&policy(2), &[loss; 3].map(|loss| stepwise(&[], &[loss]))), [0; 0]);
    }
}

#[test]
fn with_one_evaluation_each_the_worse_half_goes() {
    // Of the others of job 3, the median is that of 0, 1, 2, 4, 5 and 6, which is 3.
    let cohort: Vec<Curve> =
        (0..7).map(|job| Curve { evaluations: vec![evaluation(9, f64::from(job))], ..Curve::default() }).collect();
    assert_eq!(ended(&policy(5), &cohort), [4, 5, 6]);
}
