use alto_exit::{Curve, Overfitting, Reason, Verdict};

use crate::curves::{alone, evaluation, exits, stepwise};

/// Without smoothing, so that gaps can be read off the losses.
fn sharp() -> Overfitting {
    Overfitting { threshold: 0.25, ema: 1.0, ..Overfitting::default() }
}

#[test]
fn the_earliest_exit_is_at_the_second_evaluation() {
    let apart = stepwise(&[2.0, 1.0], &[3.0, 2.0]);
    assert_eq!(exits(&Overfitting::default(), &apart), [false, true]);

    let Verdict::Exit(Reason::Overfitting { step, gap, threshold, patience, train, validation }) =
        alone(&Overfitting::default(), &apart)
    else {
        panic!("validation is far above training");
    };
    // The average is 0.3 * 1 + 0.7 * 2 = 1.7, the gap (2 - 1.7) / 1.7.
    assert!((train - 1.7).abs() < 1e-12, "{train}");
    assert!((gap - 0.3 / 1.7).abs() < 1e-12, "{gap}");
    assert_eq!((step, threshold, patience, validation), (2, 0.1, 2, 2.0));
}

#[test]
fn a_gap_at_the_threshold_is_not_enough() {
    assert_eq!(exits(&sharp(), &stepwise(&[4.0; 3], &[5.0; 3])), [false; 3]);
    assert_eq!(exits(&sharp(), &stepwise(&[4.0; 3], &[5.125; 3])), [false, true, true]);
}

#[test]
fn a_closed_gap_starts_the_count_again() {
    let validation = [2.0, 1.0, 2.0, 2.0, 1.0];
    assert_eq!(exits(&sharp(), &stepwise(&[1.0; 5], &validation)), [false, false, false, true, false]);
    let patient = Overfitting { patience: 3, ..sharp() };
    assert_eq!(exits(&patient, &stepwise(&[1.0; 4], &[2.0; 4])), [false, false, true, true]);
}

#[test]
fn it_is_silent_while_the_training_loss_is_not_positive() {
    assert_eq!(exits(&sharp(), &stepwise(&[0.0; 3], &[9.0; 3])), [false; 3]);
    assert_eq!(exits(&sharp(), &stepwise(&[-1.0; 3], &[9.0; 3])), [false; 3]);
    assert_eq!(exits(&sharp(), &stepwise(&[-1.0, 1.0, 1.0], &[9.0; 3])), [false, false, true]);
}

#[test]
fn it_is_silent_where_a_loss_is_not_finite() {
    for loss in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        assert_eq!(exits(&sharp(), &stepwise(&[loss; 3], &[9.0; 3])), [false; 3]);
        assert_eq!(exits(&sharp(), &stepwise(&[1.0; 3], &[loss; 3])), [false; 3]);
    }
}

#[test]
fn a_rise_is_required_only_on_demand() {
    let demanding = Overfitting { require_rise: true, ..sharp() };
    // The gap is wide everywhere, the validation loss falls.
    let falling = stepwise(&[1.0; 4], &[5.0, 4.0, 3.0, 2.0]);
    assert_eq!(exits(&sharp(), &falling), [false, true, true, true]);
    assert_eq!(exits(&demanding, &falling), [false; 4]);
    // Nothing has risen at the first evaluation; staying level is no rise.
    let rising = stepwise(&[1.0; 6], &[2.0, 2.5, 3.0, 3.0, 3.5, 4.0]);
    assert_eq!(exits(&demanding, &rising), [false, false, true, false, false, true]);
}

#[test]
fn the_untrained_evaluation_counts_neither_for_patience_nor_for_a_rise() {
    let mut curve = stepwise(&[1.0, 1.0], &[2.0, 3.0]);
    curve.evaluations.insert(0, evaluation(0, 1.5));
    assert_eq!(exits(&sharp(), &curve), [false, false, true]);
    assert_eq!(exits(&Overfitting { require_rise: true, ..sharp() }, &curve), [false; 3]);
}

#[test]
fn an_evaluation_before_any_training_loss_has_no_gap() {
    let mut curve = stepwise(&[1.0, 1.0, 1.0], &[2.0, 2.0, 2.0]);
    curve.train.remove(0);
    assert_eq!(exits(&sharp(), &curve), [false, false, true]);
    assert_eq!(alone(&sharp(), &Curve { train: vec![], ..curve }), Verdict::Keep);
}
