use alto_exit::{Curve, Reason, Verdict, WorseThanUntrained};

use crate::curves::{alone, evaluation, exits};

/// Evaluated at step 0, with a loss of 2, and then every tenth of the budget.
fn course(losses: &[f64]) -> Curve {
    let later = (1..).zip(losses).map(|(tenth, &loss)| evaluation(10 * tenth, loss));
    Curve { evaluations: [evaluation(0, 2.0)].into_iter().chain(later).collect(), ..Curve::default() }
}

/// The verdicts after step 0.
fn ends(policy: &WorseThanUntrained, losses: &[f64]) -> Vec<bool> {
    exits(policy, &course(losses))[1..].to_vec()
}

#[test]
fn a_loss_that_explodes_and_creeps_down_is_ended_with_its_numbers() {
    let policy = WorseThanUntrained::default();
    assert_eq!(ends(&policy, &[50.0, 40.0, 30.0, 20.0]), [false, false, true, true]);
    assert_eq!(
        alone(&policy, &course(&[50.0, 40.0, 30.0])),
        Verdict::Exit(Reason::WorseThanUntrained { step: 30, loss: 30.0, untrained: 2.0, margin: 0.1, patience: 3 })
    );
}

#[test]
fn a_spike_that_recovers_in_time_is_forgiven() {
    assert_eq!(ends(&WorseThanUntrained::default(), &[9.0, 3.0, 1.5, 9.0, 9.0, 1.4]), [false; 6]);
    let patient = WorseThanUntrained { after: 0.35, ..WorseThanUntrained::default() };
    assert_eq!(ends(&patient, &[9.0, 9.0, 9.0, 9.0, 9.0, 9.0]), [false, false, false, false, false, true]);
}

#[test]
fn a_loss_at_the_margin_is_not_over_it() {
    let half = WorseThanUntrained { margin: 0.5, patience: 1, after: 0.0 };
    assert_eq!(ends(&half, &[3.0, 3.0625]), [false, true]);
    let none = WorseThanUntrained { margin: 0.0, ..half };
    assert_eq!(ends(&none, &[2.0, 2.0625]), [false, true]);
}

#[test]
fn a_loss_that_is_not_finite_counts_as_worse() {
    let (nan, inf) = (f64::NAN, f64::INFINITY);
    assert_eq!(ends(&WorseThanUntrained::default(), &[nan, inf, -inf, 1.0]), [false, false, true, false]);
}

#[test]
fn it_is_silent_without_a_finite_untrained_loss() {
    let policy = WorseThanUntrained { patience: 1, after: 0.0, ..WorseThanUntrained::default() };
    let mut curve = course(&[9.0]);
    assert_ne!(alone(&policy, &curve), Verdict::Keep);
    for loss in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        curve.evaluations[0].loss = loss;
        assert_eq!(alone(&policy, &curve), Verdict::Keep);
    }
    curve.evaluations.remove(0);
    assert_eq!(alone(&policy, &curve), Verdict::Keep);
    assert_eq!(alone(&policy, &course(&[])), Verdict::Keep, "the untrained evaluation itself");
}

#[test]
fn a_margin_is_upward_for_a_negative_loss_too() {
    let mut curve = course(&[-1.75, -1.5]);
    curve.evaluations[0].loss = -2.0;
    let policy = WorseThanUntrained { margin: 0.125, patience: 1, after: 0.0 };
    assert_eq!(exits(&policy, &curve), [false, false, true]);
}
