use alto_exit::{Patience, Reason, Verdict};

use crate::curves::{alone, exits, stepwise};

const NAN: f64 = f64::NAN;

#[test]
fn stalled_counts_evaluations_without_a_new_best() {
    let policy = Patience::Stalled { evaluations: 2, gain: 0.0 };
    let curve = stepwise(&[], &[3.0, 2.0, 2.5, 2.25, 1.0, 1.0, 1.0]);
    assert_eq!(exits(&policy, &curve), [false, false, false, true, false, false, true]);
    assert_eq!(
        alone(&policy, &stepwise(&[], &[3.0, 2.0, 2.5, 2.25])),
        Verdict::Exit(Reason::Stalled { step: 4, best: 2.0, since: 2.25, gain: 0.0, evaluations: 2 })
    );
}

#[test]
fn stalled_asks_for_a_gain_of_more_than_the_share() {
    let policy = Patience::Stalled { evaluations: 1, gain: 0.25 };
    assert_eq!(exits(&policy, &stepwise(&[], &[4.0, 3.0])), [false, true]);
    assert_eq!(exits(&policy, &stepwise(&[], &[4.0, 2.9375])), [false, false]);
    let negative = stepwise(&[], &[-4.0, -5.0]);
    assert_eq!(exits(&policy, &negative), [false, true], "a quarter of 4 is gained, not more");
}

#[test]
fn generalization_loss_is_measured_in_percent_from_the_lowest() {
    let policy = Patience::GeneralizationLoss { alpha: 25.0 };
    assert_eq!(exits(&policy, &stepwise(&[], &[4.0, 2.0, 2.5, 2.625, 2.0])), [false, false, false, true, false]);
    assert_eq!(
        alone(&policy, &stepwise(&[], &[2.0, 3.0])),
        Verdict::Exit(Reason::GeneralizationLoss { step: 2, loss: 3.0, best: 2.0, percent: 50.0, alpha: 25.0 })
    );
    assert_eq!(exits(&policy, &stepwise(&[], &[0.0, 9.0])), [false; 2], "no percent of nothing");
    assert_eq!(exits(&policy, &stepwise(&[], &[-1.0, 9.0])), [false; 2]);
}

#[test]
fn the_quotient_forgives_a_rise_while_training_falls_fast() {
    let policy = Patience::Quotient { alpha: 0.5, strip: 2 };
    let validation = [1.0, 1.0, 1.0, 1.25];
    // Percent 25. Per mille: (4 + 2) / 2 / 2 - 1 = 0.5, times 1000; and (2.25 + 2) / 2 / 2 - 1 = 0.0625.
    let (fast, slow) = (stepwise(&[8.0, 6.0, 4.0, 2.0], &validation), stepwise(&[8.0, 6.0, 2.25, 2.0], &validation));
    assert_eq!(exits(&policy, &fast), [false; 4]);
    assert_eq!(exits(&Patience::Quotient { alpha: 0.375, strip: 2 }, &slow), [false, false, false, true]);
    assert_eq!(
        alone(&Patience::Quotient { alpha: 0.375, strip: 2 }, &slow),
        Verdict::Exit(Reason::Quotient {
            step: 4,
            percent: 25.0,
            per_mille: 62.5,
            quotient: 0.4,
            alpha: 0.375,
            strip: 2
        })
    );
    // Training that is level gains nothing.
    assert_eq!(exits(&policy, &stepwise(&[2.0; 4], &validation)), [false, false, false, true]);
    // Validation at its best: nothing is lost.
    assert_eq!(exits(&policy, &stepwise(&[2.0; 4], &[1.0; 4])), [false; 4]);
    // Between the ends of strips it is silent.
    assert_eq!(exits(&policy, &stepwise(&[2.0; 5], &[1.0, 1.0, 9.0, 1.0, 9.0])), [false; 5]);
}

#[test]
fn the_quotient_is_silent_without_training_losses_to_measure() {
    let policy = Patience::Quotient { alpha: 0.0, strip: 2 };
    let rising = [1.0, 2.0];
    assert_eq!(exits(&policy, &stepwise(&[2.0, 2.0], &rising)), [false, true]);
    for train in [&[2.0][..], &[2.0, NAN], &[0.0, 2.0], &[-1.0, 2.0], &[]] {
        assert_eq!(exits(&policy, &stepwise(train, &rising)), [false; 2], "{train:?}");
    }
}

#[test]
fn rising_compares_the_ends_of_strips() {
    let policy = Patience::Rising { strips: 2, strip: 2 };
    let curve = stepwise(&[], &[9.0, 1.0, 0.0, 2.0, 0.0, 3.0, 9.0]);
    assert_eq!(exits(&policy, &curve), [false, false, false, false, false, true, false]);
    assert_eq!(
        alone(&policy, &stepwise(&[], &[9.0, 1.0, 0.0, 2.0, 0.0, 3.0])),
        Verdict::Exit(Reason::Rising { step: 6, from: 1.0, to: 3.0, strips: 2, strip: 2 })
    );
    let level = stepwise(&[], &[0.0, 1.0, 0.0, 2.0, 0.0, 2.0]);
    assert_eq!(exits(&policy, &level), [false; 6]);
    let each = Patience::Rising { strips: 1, strip: 1 };
    assert_eq!(exits(&each, &stepwise(&[], &[1.0, 2.0, 2.0, 3.0])), [false, true, false, true]);
}

#[test]
fn a_loss_that_is_not_finite_is_high() {
    let rising = Patience::Rising { strips: 1, strip: 1 };
    let stalled = Patience::Stalled { evaluations: 1, gain: 0.0 };
    for loss in [NAN, f64::INFINITY, f64::NEG_INFINITY] {
        let curve = stepwise(&[1.0; 3], &[1.0, loss, loss]);
        assert_eq!(exits(&rising, &curve), [false, true, false]);
        assert_eq!(exits(&stalled, &curve), [false, true, true]);
        assert_eq!(exits(&Patience::GeneralizationLoss { alpha: 5.0 }, &curve), [false, true, true]);
        let never_finite = stepwise(&[1.0; 3], &[loss; 3]);
        for policy in [&rising, &stalled, &Patience::GeneralizationLoss { alpha: 5.0 }, &Patience::default()] {
            assert_eq!(exits(policy, &never_finite), [false; 3], "{policy:?}");
        }
    }
}
