use alto_exit::{Curve, Diverging, Reason, Series, Verdict};

use crate::curves::{alone, evaluation, exits, stepwise, train_point};

/// Without smoothing, so that slopes can be read off the losses.
fn sharp() -> Diverging {
    Diverging { threshold: 0.5, ema: 1.0, ..Diverging::default() }
}

#[test]
fn the_earliest_exit_is_at_the_third_evaluation() {
    let rising = stepwise(&[1.0, 2.0, 3.0], &[1.0, 2.0, 4.0]);
    assert_eq!(exits(&Diverging::default(), &rising), [false, false, true]);

    let Verdict::Exit(Reason::Diverging { step, train_slope, validation_slope, threshold, window, patience }) =
        alone(&Diverging::default(), &rising)
    else {
        panic!("both losses rise");
    };
    // The average runs 1, 0.3 * 2 + 0.7 * 1 = 1.3, 0.3 * 3 + 0.7 * 1.3 = 1.81.
    assert!((train_slope - 0.51).abs() < 1e-12, "{train_slope}");
    assert_eq!((step, validation_slope, threshold, window, patience), (3, 2.0, 0.001, 2, 2));
}

#[test]
fn a_slope_at_the_threshold_is_enough() {
    assert_eq!(exits(&sharp(), &stepwise(&[1.0, 1.5, 2.0], &[1.0, 1.5, 2.0])), [false, false, true]);
    assert_eq!(exits(&sharp(), &stepwise(&[1.0, 1.5, 2.0], &[1.0, 1.5, 1.9375])), [false; 3]);
    assert_eq!(exits(&sharp(), &stepwise(&[1.0, 1.5, 1.9375], &[1.0, 1.5, 2.0])), [false; 3]);
}

#[test]
fn one_loss_alone_may_rise() {
    let (up, down) = ([1.0, 2.0, 3.0, 4.0], [4.0, 3.0, 2.0, 1.0]);
    assert_eq!(exits(&sharp(), &stepwise(&up, &down)), [false; 4]);
    assert_eq!(exits(&sharp(), &stepwise(&down, &up)), [false; 4]);
}

#[test]
fn a_pause_starts_the_count_again() {
    let paused = [1.0, 2.0, 1.0, 2.0, 3.0, 2.0];
    assert_eq!(exits(&sharp(), &stepwise(&paused, &paused)), [false, false, false, false, true, false]);
}

#[test]
fn a_longer_window_takes_the_least_squares_slope() {
    let line = |threshold, window, losses: &[f64]| {
        let policy = Diverging { window, threshold, patience: 1, ema: 1.0 };
        alone(&policy, &stepwise(losses, losses)) != Verdict::Keep
    };
    // (5 - 1) / 2 = 2, whatever lies between.
    assert!(line(2.0, 3, &[1.0, 9.0, 5.0]));
    assert!(!line(2.01, 3, &[1.0, 9.0, 5.0]));
    // (-1.5 * 1 - 0.5 * 1 + 0.5 * 1 + 1.5 * 3) / 5 = 0.6
    assert!(line(0.6, 4, &[1.0, 1.0, 1.0, 3.0]));
    assert!(!line(0.61, 4, &[1.0, 1.0, 1.0, 3.0]));
    // Only the last window counts.
    assert!(line(2.0, 3, &[99.0, 1.0, 9.0, 5.0]));
    assert!(!line(0.0, 5, &[1.0, 2.0, 3.0, 4.0]), "four evaluations are no window of five");
}

#[test]
fn patience_counts_windows() {
    let rising = [1.0, 2.0, 3.0, 4.0, 5.0];
    let at = |window, patience| exits(&Diverging { window, patience, ..sharp() }, &stepwise(&rising, &rising));
    assert_eq!(at(2, 1), [false, true, true, true, true]);
    assert_eq!(at(2, 4), [false, false, false, false, true]);
    assert_eq!(at(3, 2), [false, false, false, true, true]);
    assert_eq!(at(3, 4), [false; 5]);
}

#[test]
fn the_untrained_evaluation_is_in_no_window() {
    let mut curve = stepwise(&[2.0, 3.0], &[2.0, 3.0]);
    curve.evaluations.insert(0, evaluation(0, 1.0));
    assert_eq!(alone(&sharp(), &curve), Verdict::Keep);
    curve.train.push(train_point(3, 4.0));
    curve.evaluations.push(evaluation(3, 4.0));
    assert_ne!(alone(&sharp(), &curve), Verdict::Keep);
}

#[test]
fn an_evaluation_before_any_training_loss_is_in_no_window() {
    let mut curve = stepwise(&[1.0, 2.0, 3.0, 4.0], &[1.0, 2.0, 3.0, 4.0]);
    curve.train.remove(0);
    assert_eq!(exits(&sharp(), &curve), [false, false, false, true]);
}

#[test]
fn the_average_and_not_the_last_loss_decides() {
    // Two evaluations apart by ten steps: each second loss is high, the average hardly moves and falls.
    let train: Vec<f64> =
        (0..30).map(|i| if i % 10 == 9 { 3.1 + f64::from(i) / 10.0 } else { 3.0 - f64::from(i) / 10.0 }).collect();
    let mut curve = stepwise(&train, &[]);
    curve.evaluations = vec![evaluation(10, 1.0), evaluation(20, 2.0), evaluation(30, 3.0)];
    assert_ne!(alone(&sharp(), &curve), Verdict::Keep);
    assert_eq!(alone(&Diverging { ema: 0.1, ..sharp() }, &curve), Verdict::Keep);
}

#[test]
fn a_loss_that_is_not_finite_ends_the_job_at_once() {
    for loss in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        let judged = |curve: &Curve| match alone(&Diverging::default(), curve) {
            Verdict::Exit(Reason::NotFinite { step, series, loss: found }) => {
                assert!(found == loss || found.is_nan() && loss.is_nan(), "{found}, not {loss}");
                (step, series)
            }
            other => panic!("{other:?}"),
        };
        assert_eq!(judged(&stepwise(&[1.0, loss], &[])), (2, Series::Training));
        assert_eq!(judged(&stepwise(&[], &[1.0, 1.0, loss, 1.0])), (3, Series::Validation));
        assert_eq!(judged(&stepwise(&[1.0, 1.0, loss, loss], &[1.0, loss])), (2, Series::Validation));
        assert_eq!(judged(&stepwise(&[1.0, loss], &[1.0, loss])), (2, Series::Training));
        let untrained = Curve { evaluations: vec![evaluation(0, loss)], ..Curve::default() };
        assert_eq!(judged(&untrained), (0, Series::Validation));
    }
}

#[test]
fn high_and_flat_is_not_diverging() {
    let exploded = [1.0, 50.0, 50.0, 50.0, 50.0];
    assert_eq!(exits(&Diverging::default(), &stepwise(&[50.0; 5], &exploded)), [false; 5]);
}
