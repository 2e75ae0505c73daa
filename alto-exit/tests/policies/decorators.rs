use std::sync::Mutex;

use alto_exit::{
    AtLeastPeers, Curve, Diverging, End, ExitPolicy, MedianStopping, NotBefore, Overfitting, Patient, Reason,
    Underperforming, Verdict,
};

use crate::curves::{alone, evaluation, exits, stepwise};

/// Without smoothing, at the first evaluation whose gap is wide.
fn gap() -> Overfitting {
    Overfitting { threshold: 0.5, patience: 1, require_rise: false, ema: 1.0 }
}

#[test]
fn a_patient_policy_must_insist() {
    let curve = stepwise(&[1.0; 7], &[1.0, 2.0, 2.0, 1.0, 2.0, 2.0, 2.0]);
    assert_eq!(exits(&gap(), &curve), [false, true, true, false, true, true, true]);
    let patient = |evaluations| exits(&Patient { evaluations, policy: gap() }, &curve);
    assert_eq!(patient(1), exits(&gap(), &curve));
    assert_eq!(patient(2), [false, false, true, false, false, true, true]);
    assert_eq!(patient(3), [false, false, false, false, false, false, true]);
    assert_eq!(patient(4), [false; 7]);
    assert_eq!(
        alone(&Patient { evaluations: 3, policy: gap() }, &curve),
        alone(&gap(), &curve),
        "the reason is the latest"
    );
}

#[test]
fn patience_around_a_policy_is_the_patience_within_it() {
    let curve = stepwise(&[1.0; 9], &[2.0, 2.0, 1.0, 2.0, 2.0, 2.0, 1.0, 2.0, 2.0]);
    for patience in 1..4 {
        let within = Overfitting { patience, ..gap() };
        assert_eq!(exits(&Patient { evaluations: patience, policy: gap() }, &curve), exits(&within, &curve));
    }
}

#[test]
fn evaluations_before_the_first_step_are_no_patience() {
    /// Ends every job that has any evaluation.
    #[derive(Debug)]
    struct Stern;
    impl ExitPolicy for Stern {
        fn judge(&self, job: usize, cohort: &[Curve]) -> Verdict {
            if cohort[job].evaluations.is_empty() {
                return Verdict::Keep;
            }
            Verdict::Exit(Reason::Custom { policy: "stern".into(), numbers: Default::default() })
        }
    }
    let mut curve = stepwise(&[1.0; 2], &[1.0; 2]);
    curve.evaluations.insert(0, evaluation(0, 1.0));
    assert_eq!(exits(&Patient { evaluations: 2, policy: Stern }, &curve), [false, false, true]);
}

/// Notes the curves that it is shown, and ends every job.
#[derive(Debug, Default)]
struct Witness(Mutex<Vec<Vec<Curve>>>);

impl ExitPolicy for Witness {
    fn judge(&self, _job: usize, cohort: &[Curve]) -> Verdict {
        self.0.lock().expect("no judge panicked").push(cohort.to_vec());
        Verdict::Exit(Reason::Custom { policy: "witness".into(), numbers: Default::default() })
    }
}

#[test]
fn the_past_is_the_jobs_own_curve_as_it_was_and_the_others_as_they_are() {
    let mut ended = stepwise(&[5.0, 4.0, 3.0], &[5.0, 4.0, 3.0]);
    ended.end = Some(End::Finished);
    let other = stepwise(&[9.0, 8.0], &[9.0, 8.0]);
    let policy = Patient { evaluations: 2, policy: Witness::default() };
    let cohort = [ended.clone(), other.clone()];
    assert!(policy.judge_all(&[0, 1], &cohort).iter().all(|verdict| *verdict != Verdict::Keep));
    let seen = policy.policy.0.into_inner().unwrap();
    // Both as they are, then each as it was.
    assert_eq!(seen[..2], [cohort.to_vec(), cohort.to_vec()]);
    assert_eq!(seen[2], [stepwise(&[5.0, 4.0], &[5.0, 4.0]), other]);
    assert_eq!(seen[3], [ended, stepwise(&[9.0], &[9.0])]);
}

#[test]
fn not_before_a_progress_nobody_is_ended_and_nobody_waits() {
    let curve = stepwise(&[1.0; 4], &[9.0; 4]);
    let policy = NotBefore { progress: 0.03, policy: gap() };
    assert_eq!(exits(&policy, &curve), [false, false, true, true]);
    let rungs = |progress| NotBefore { progress, policy: Underperforming { mark: 0.25, keep: 0.5 } }.rungs(0);
    assert_eq!(rungs(0.25), [0.25]);
    assert_eq!(rungs(0.26), [0.0; 0]);
    let untrained = Curve { evaluations: vec![evaluation(0, f64::NAN)], ..Curve::default() };
    assert_eq!(alone(&NotBefore { progress: 0.0, policy: Diverging::default() }, &untrained), Verdict::Keep);
}

#[test]
fn at_least_so_many_others_must_have_come_as_far() {
    let ahead = stepwise(&[], &[1.0; 5]);
    let bad = stepwise(&[1.0; 3], &[9.0; 3]);
    let behind = stepwise(&[], &[1.0; 2]);
    let judged = |peers, cohort: &[Curve]| AtLeastPeers { peers, policy: gap() }.judge(0, cohort) != Verdict::Keep;
    let mut cohort = vec![bad.clone(), behind, bad, ahead];
    assert!(judged(0, &cohort[..1]));
    assert!(!judged(1, &cohort[..2]));
    assert!(judged(1, &cohort[..3]), "one that is equally far");
    assert!(judged(2, &cohort));
    assert!(!judged(3, &cohort));
    cohort[3].end = Some(End::Finished);
    assert!(judged(2, &cohort), "whatever became of it");
}

#[test]
fn decorators_nest_and_pass_on_rungs_and_checks() {
    let policy = AtLeastPeers {
        peers: 1,
        policy: Patient { evaluations: 2, policy: NotBefore { progress: 0.02, policy: gap() } },
    };
    let bad = stepwise(&[1.0; 3], &[9.0; 3]);
    assert_eq!(exits(&policy, &bad), [false; 3], "alone");
    assert_ne!(policy.judge(0, &[bad.clone(), bad]), Verdict::Keep);
    let rung = Underperforming { mark: 0.5, keep: 0.5 };
    assert_eq!(Patient { evaluations: 2, policy: &rung }.rungs(0), [0.5]);
    assert_eq!(AtLeastPeers { peers: 2, policy: &rung }.rungs(0), [0.5]);
    let wrong = MedianStopping { peers: 0, grace: 0.1 };
    for refused in [
        Patient { evaluations: 2, policy: &wrong }.check(),
        NotBefore { progress: 0.5, policy: &wrong }.check(),
        AtLeastPeers { peers: 2, policy: &wrong }.check(),
    ] {
        let error = refused.unwrap_err().to_string();
        assert_eq!(error, "median_stopping: peers is 0, but must be at least 1");
    }
}
