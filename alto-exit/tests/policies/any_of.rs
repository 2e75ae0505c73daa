use std::sync::Arc;

use alto_exit::{AnyOf, Curve, Diverging, ExitPolicy, LossAware, Never, Overfitting, Reason, Underperforming, Verdict};

use crate::curves::{alone, stepwise};

fn kind(verdict: &Verdict) -> &'static str {
    match verdict {
        Verdict::Keep => "keep",
        Verdict::Exit(Reason::Diverging { .. }) => "diverging",
        Verdict::Exit(Reason::NotFinite { .. }) => "not finite",
        Verdict::Exit(Reason::Overfitting { .. }) => "overfitting",
        Verdict::Exit(Reason::Underperforming { .. }) => "underperforming",
        Verdict::Exit(_) => "other",
    }
}

/// Rises, and has a gap, at once.
fn hopeless() -> Curve {
    stepwise(&[1.0, 2.0, 3.0], &[2.0, 4.0, 6.0])
}

#[test]
fn the_first_policy_that_speaks_gives_the_reason() {
    let diverging = || Box::new(Diverging::default()) as Box<dyn ExitPolicy>;
    let overfitting = || Box::new(Overfitting::default()) as Box<dyn ExitPolicy>;
    assert_eq!(kind(&alone(&AnyOf(vec![diverging(), overfitting()]), &hopeless())), "diverging");
    assert_eq!(kind(&alone(&AnyOf(vec![overfitting(), diverging()]), &hopeless())), "overfitting");
    assert_eq!(kind(&alone(&AnyOf(vec![Box::new(Never), overfitting()]), &hopeless())), "overfitting");
    assert_eq!(kind(&alone(&AnyOf(vec![Box::new(Never)]), &hopeless())), "keep");
    assert_eq!(kind(&alone(&AnyOf::default(), &hopeless())), "keep");
}

#[test]
fn the_rungs_of_several_policies_are_sorted_and_each_there_once() {
    let rung = |mark| Box::new(Underperforming { mark, keep: 0.5 }) as Box<dyn ExitPolicy>;
    let policy = AnyOf(vec![rung(0.5), Box::new(Never), rung(0.05), rung(0.5), Box::new(LossAware::default())]);
    assert_eq!(policy.rungs(0), [0.05, 0.5]);
    assert_eq!(AnyOf::default().rungs(0), [0.0; 0]);
    assert_eq!(LossAware::default().rungs(0), [0.05]);
}

#[test]
fn the_papers_policies_speak_together() {
    let policy = LossAware::default();
    assert_eq!(kind(&alone(&policy, &hopeless())), "diverging");
    assert_eq!(kind(&alone(&policy, &stepwise(&[1.0, 1.0], &[2.0, 2.0]))), "overfitting");
    assert_eq!(kind(&alone(&policy, &stepwise(&[1.0, f64::NAN], &[2.0, 2.0]))), "not finite");
    let at_rung = |loss| stepwise(&[3.0; 5], &[3.0, 3.0, 3.0, 3.0, loss]);
    assert_eq!(kind(&policy.judge(1, &[at_rung(1.0), at_rung(2.0)])), "underperforming");
    assert_eq!(kind(&policy.judge(0, &[at_rung(1.0), at_rung(2.0)])), "keep");
}

#[test]
fn a_policy_behind_any_pointer_is_a_policy() {
    fn judged(policy: impl ExitPolicy) -> (Vec<f64>, &'static str, bool) {
        (policy.rungs(0), kind(&policy.judge(0, &[hopeless()])), policy.check().is_ok())
    }
    let policy = LossAware::default();
    let expected = (vec![0.05], "diverging", true);
    assert_eq!(judged(&policy), expected);
    assert_eq!(judged(&policy as &dyn ExitPolicy), expected);
    assert_eq!(judged(Box::new(policy.clone()) as Box<dyn ExitPolicy>), expected);
    assert_eq!(judged(Arc::new(policy) as Arc<dyn ExitPolicy>), expected);
}

#[test]
fn never_keeps_what_every_other_policy_ends() {
    assert_eq!(alone(&Never, &hopeless()), Verdict::Keep);
    assert_eq!(alone(&Never, &stepwise(&[f64::NAN], &[f64::NAN])), Verdict::Keep);
    assert_eq!(Never.rungs(0), [0.0; 0]);
}

#[test]
#[should_panic(expected = "index out of bounds: the len is 1 but the index is 1")]
fn a_job_outside_the_cohort_is_the_callers_bug() {
    let _ = LossAware::default().judge(1, &[hopeless()]);
}
