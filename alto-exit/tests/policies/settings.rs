use alto_exit::{
    AdaptiveRung, AnyOf, Asha, AtLeastPeers, Diverging, ExitPolicy, Extrapolation, Hyperband, LossAware,
    MedianStopping, Never, NotBefore, Overfitting, Patience, Patient, SuccessiveHalving, Underperforming, Verdict,
    WorseThanUntrained,
};

use crate::curves::{alone, stepwise};

const NAN: f64 = f64::NAN;

fn refused() -> Vec<(Box<dyn ExitPolicy>, &'static str)> {
    let diverging = Diverging::default;
    let overfitting = Overfitting::default;
    let underperforming = Underperforming::default;
    vec![
        (Box::new(Diverging { window: 1, ..diverging() }), "diverging: window is 1, but must be at least 2"),
        (Box::new(Diverging { window: 0, ..diverging() }), "diverging: window is 0, but must be at least 2"),
        (Box::new(Diverging { patience: 0, ..diverging() }), "diverging: patience is 0, but must be at least 1"),
        (
            Box::new(Diverging { threshold: NAN, ..diverging() }),
            "diverging: threshold is NaN, but must be a finite number",
        ),
        (Box::new(Diverging { ema: 0.0, ..diverging() }), "diverging: ema is 0, but must be over 0 and at most 1"),
        (Box::new(Diverging { ema: 1.5, ..diverging() }), "diverging: ema is 1.5, but must be over 0 and at most 1"),
        (
            Box::new(Overfitting { threshold: f64::INFINITY, ..overfitting() }),
            "overfitting: threshold is inf, but must be a finite number",
        ),
        (Box::new(Overfitting { patience: 0, ..overfitting() }), "overfitting: patience is 0, but must be at least 1"),
        (
            Box::new(Overfitting { ema: NAN, ..overfitting() }),
            "overfitting: ema is NaN, but must be over 0 and at most 1",
        ),
        (
            Box::new(Underperforming { mark: 0.0, ..underperforming() }),
            "underperforming: mark is 0, but must be over 0 and under 1",
        ),
        (
            Box::new(Underperforming { mark: 1.0, ..underperforming() }),
            "underperforming: mark is 1, but must be over 0 and under 1",
        ),
        (
            Box::new(Underperforming { keep: 0.0, ..underperforming() }),
            "underperforming: keep is 0, but must be over 0 and at most 1",
        ),
        (
            Box::new(Underperforming { keep: 1.25, ..underperforming() }),
            "underperforming: keep is 1.25, but must be over 0 and at most 1",
        ),
        (
            Box::new(AdaptiveRung { first: 0.0005, ..AdaptiveRung::default() }),
            "adaptive_rung: first is 0.0005, but must be at least 0.001 and under 1",
        ),
        (
            Box::new(AdaptiveRung { ratio: 1.0, ..AdaptiveRung::default() }),
            "adaptive_rung: ratio is 1, but must be a finite number, at least 1.05",
        ),
        (
            Box::new(AdaptiveRung { risk: 0.0, ..AdaptiveRung::default() }),
            "adaptive_rung: risk is 0, but must be over 0 and under 0.5",
        ),
        (
            Box::new(AdaptiveRung { risk: 0.5, ..AdaptiveRung::default() }),
            "adaptive_rung: risk is 0.5, but must be over 0 and under 0.5",
        ),
        (
            Box::new(AdaptiveRung { caution: NAN, ..AdaptiveRung::default() }),
            "adaptive_rung: caution is NaN, but must be a finite number over 0",
        ),
        (
            Box::new(WorseThanUntrained { margin: -0.5, ..WorseThanUntrained::default() }),
            "worse_than_untrained: margin is -0.5, but must be a finite number, at least 0",
        ),
        (
            Box::new(WorseThanUntrained { patience: 0, ..WorseThanUntrained::default() }),
            "worse_than_untrained: patience is 0, but must be at least 1",
        ),
        (
            Box::new(WorseThanUntrained { after: 1.5, ..WorseThanUntrained::default() }),
            "worse_than_untrained: after is 1.5, but must be from 0 to 1",
        ),
        (
            Box::new(Patience::Stalled { evaluations: 0, gain: 0.0 }),
            "patience: evaluations is 0, but must be at least 1",
        ),
        (Box::new(Patience::Stalled { evaluations: 1, gain: NAN }), "patience: gain is NaN, but must be from 0 to 1"),
        (
            Box::new(Patience::GeneralizationLoss { alpha: f64::INFINITY }),
            "patience: alpha is inf, but must be a finite number, at least 0",
        ),
        (Box::new(Patience::Quotient { alpha: 3.0, strip: 1 }), "patience: strip is 1, but must be at least 2"),
        (Box::new(Patience::Rising { strips: 0, strip: 5 }), "patience: strips is 0, but must be at least 1"),
        (Box::new(Patience::Rising { strips: 2, strip: 0 }), "patience: strip is 0, but must be at least 1"),
        (
            Box::new(MedianStopping { peers: 0, ..MedianStopping::default() }),
            "median_stopping: peers is 0, but must be at least 1",
        ),
        (
            Box::new(MedianStopping { grace: -0.5, ..MedianStopping::default() }),
            "median_stopping: grace is -0.5, but must be from 0 to 1",
        ),
        (
            Box::new(SuccessiveHalving { first: 1.0, eta: 2 }),
            "successive_halving: first is 1, but must be from 0.000001 to under 1",
        ),
        (Box::new(SuccessiveHalving { first: 0.5, eta: 1 }), "successive_halving: eta is 1, but must be at least 2"),
        (Box::new(Hyperband { first: 0.0, eta: 2 }), "hyperband: first is 0, but must be from 0.000001 to under 1"),
        (Box::new(Hyperband { first: 0.5, eta: 0 }), "hyperband: eta is 0, but must be at least 2"),
        (Box::new(Asha { first: NAN, eta: 2 }), "asha: first is NaN, but must be from 0.000001 to under 1"),
        (Box::new(Asha { first: 0.5, eta: 1 }), "asha: eta is 1, but must be at least 2"),
        (
            Box::new(Extrapolation { bound: 0.0, ..Extrapolation::default() }),
            "extrapolation: bound is 0, but must be over 0 and under 1",
        ),
        (
            Box::new(Extrapolation { evaluations: 3, ..Extrapolation::default() }),
            "extrapolation: evaluations is 3, but must be at least 4",
        ),
        (
            Box::new(Patient { evaluations: 0, policy: Diverging::default() }),
            "patient: evaluations is 0, but must be at least 1",
        ),
        (
            Box::new(NotBefore { progress: 1.5, policy: Diverging::default() }),
            "not_before: progress is 1.5, but must be from 0 to 1",
        ),
        (
            Box::new(AtLeastPeers { peers: 0, policy: Diverging { window: 1, ..diverging() } }),
            "diverging: window is 1, but must be at least 2",
        ),
    ]
}

#[test]
fn a_setting_out_of_range_is_named_with_what_would_be_right() {
    for (policy, expected) in refused() {
        assert_eq!(policy.check().map_err(|error| error.to_string()), Err(expected.to_owned()));
        let wrapped = AnyOf(vec![Box::new(Never), policy]);
        assert_eq!(wrapped.check().map_err(|error| error.to_string()), Err(expected.to_owned()));
    }
    let nested =
        LossAware { overfitting: Overfitting { patience: 0, ..Overfitting::default() }, ..LossAware::default() };
    assert!(nested.check().is_err());
}

#[test]
fn the_defaults_and_the_edges_of_the_ranges_are_right() {
    assert_eq!(LossAware::default().check(), Ok(()));
    assert_eq!(Never.check(), Ok(()));
    assert_eq!(Diverging { window: 2, threshold: -1.0, patience: 1, ema: 1.0 }.check(), Ok(()));
    assert_eq!(Diverging { window: usize::MAX, patience: usize::MAX, ..Diverging::default() }.check(), Ok(()));
    assert_eq!(Underperforming { mark: f64::MIN_POSITIVE, keep: 1.0 }.check(), Ok(()));
    assert_eq!(AdaptiveRung { first: 0.001, ratio: 1.05, risk: 0.499, caution: f64::MAX }.check(), Ok(()));
    assert_eq!(AdaptiveRung::default().check(), Ok(()));
    assert_eq!(WorseThanUntrained { margin: 0.0, patience: usize::MAX, after: 1.0 }.check(), Ok(()));
    assert_eq!(WorseThanUntrained::default().check(), Ok(()));
    assert_eq!(Patience::default().check(), Ok(()));
    assert_eq!(Patience::Quotient { alpha: 0.0, strip: usize::MAX }.check(), Ok(()));
    assert_eq!(MedianStopping { peers: usize::MAX, grace: 1.0 }.check(), Ok(()));
    assert_eq!(MedianStopping::default().check(), Ok(()));
    assert_eq!(SuccessiveHalving::default().check(), Ok(()));
    assert_eq!(Hyperband { first: 1e-6, eta: usize::MAX }.check(), Ok(()));
    assert_eq!(Asha::default().check(), Ok(()));
    assert_eq!(Extrapolation::default().check(), Ok(()));
    assert_eq!(NotBefore { progress: 1.0, policy: Never }.check(), Ok(()));
}

#[test]
fn the_defaults_are_the_papers_numbers() {
    assert_eq!(Diverging::default(), Diverging { window: 2, threshold: 0.001, patience: 2, ema: 0.3 });
    assert_eq!(Overfitting::default(), Overfitting { threshold: 0.1, patience: 2, require_rise: false, ema: 0.3 });
    assert_eq!(Underperforming::default(), Underperforming { mark: 0.05, keep: 0.25 });
}

#[test]
fn a_policy_with_refused_settings_keeps_every_job() {
    for (policy, expected) in refused() {
        let curve = stepwise(&[1.0, 2.0, 3.0, 4.0, 5.0], &[2.0, 4.0, 6.0, 8.0, 10.0]);
        assert_eq!(alone(&*policy, &curve), Verdict::Keep, "{expected}");
        let cohort = [curve.clone(), curve];
        assert_eq!(policy.judge_all(&[0, 1], &cohort), [Verdict::Keep, Verdict::Keep], "{expected}");
    }
}
