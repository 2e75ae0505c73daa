use alto_exit::{Curve, EvaluationPoint};

use crate::curves::{evaluation, stepwise, train_point};

fn evaluated(evaluations: &[(u64, f64)]) -> Curve {
    Curve { evaluations: evaluations.iter().map(|&(step, loss)| evaluation(step, loss)).collect(), ..Curve::default() }
}

#[test]
fn the_best_is_the_first_of_the_lowest_finite_losses_after_the_first_step() {
    let curve = evaluated(&[(0, 0.5), (1, f64::NAN), (2, f64::NEG_INFINITY), (3, 2.0), (4, 1.0), (5, 1.0), (6, 1.5)]);
    assert_eq!(curve.best(), Some(&evaluation(4, 1.0)));
    assert_eq!(evaluated(&[(0, 0.5), (1, f64::NAN)]).best(), None);
    assert_eq!(Curve::default().best(), None);
}

#[test]
fn the_improvement_is_counted_from_the_untrained_loss() {
    assert_eq!(evaluated(&[(0, 2.0), (1, 1.5), (2, 1.75)]).improvement(), Some(0.5));
    assert_eq!(evaluated(&[(0, 2.0), (1, 3.0)]).improvement(), Some(-1.0));
    assert_eq!(evaluated(&[(1, 3.0)]).improvement(), None);
    assert_eq!(evaluated(&[(0, 2.0)]).improvement(), None);
    assert_eq!(evaluated(&[(0, 2.0), (1, 3.0)]).untrained(), Some(&evaluation(0, 2.0)));
    assert_eq!(evaluated(&[(1, 3.0)]).untrained(), None);
}

#[test]
fn a_mark_is_reached_at_the_first_evaluation_at_or_past_it() {
    let curve = evaluated(&[(0, 3.0), (4, 2.5), (5, 2.0), (6, 1.0)]);
    assert_eq!(curve.at_mark(0.05).map(|at| at.step), Some(5));
    assert_eq!(curve.at_mark(0.045).map(|at| at.step), Some(5));
    assert_eq!(curve.at_mark(0.0).map(|at| at.step), Some(4));
    assert_eq!(curve.at_mark(0.07), None);
    assert_eq!(curve.at_mark(f64::NAN), None);
    let nowhere =
        Curve { evaluations: vec![EvaluationPoint { step: 5, progress: f64::NAN, loss: 1.0 }], ..Curve::default() };
    assert_eq!(nowhere.at_mark(0.05), None);
}

#[test]
fn the_average_starts_at_the_first_loss_and_is_sampled_at_evaluations() {
    let mut curve = stepwise(&[4.0, 2.0, 1.0, 3.0], &[]);
    curve.evaluations = vec![evaluation(0, 9.0), evaluation(1, 8.0), evaluation(3, 7.0), evaluation(6, 6.0)];
    // 4; 0.5 * 2 + 0.5 * 4 = 3; 0.5 * 1 + 0.5 * 3 = 2; 0.5 * 3 + 0.5 * 2 = 2.5
    let smoothed = curve.smoothed(0.5);
    let train: Vec<Option<f64>> = smoothed.iter().map(|at| at.train).collect();
    assert_eq!(train, [Some(4.0), Some(2.0), Some(2.5)]);
    assert_eq!((smoothed[1].step, smoothed[1].progress, smoothed[1].validation), (3, 0.03, 7.0));
}

#[test]
fn the_average_is_missing_where_no_training_loss_is_recorded_yet() {
    let curve = Curve {
        train: vec![train_point(3, 5.0)],
        evaluations: vec![evaluation(2, 1.0), evaluation(3, 1.0)],
        end: None,
    };
    let train: Vec<Option<f64>> = curve.smoothed(0.3).iter().map(|at| at.train).collect();
    assert_eq!(train, [None, Some(5.0)]);
}
