use std::collections::BTreeMap;

use alto_exit::{
    Curve, Diverging, End, EvaluationPoint, LossAware, Never, Overfitting, Patience, Policy, Reason, Series, Standing,
    TrainPoint, Underperforming, Verdict,
};

use crate::curves::{evaluation, train_point};

#[test]
fn a_curve_is_written_as_a_person_would_read_it() {
    let curve = Curve {
        train: vec![TrainPoint { grad_norm: Some(f64::INFINITY), ..train_point(1, 2.5) }, train_point(2, f64::NAN)],
        evaluations: vec![evaluation(2, f64::NEG_INFINITY)],
        end: Some(End::Exited(Reason::NotFinite { step: 2, series: Series::Training, loss: f64::NAN })),
    };
    let expected = concat!(
        r#"{"train":[{"step":1,"progress":0.01,"loss":2.5,"grad_norm":"inf"},"#,
        r#"{"step":2,"progress":0.02,"loss":"NaN"}],"#,
        r#""evaluations":[{"step":2,"progress":0.02,"loss":"-inf"}],"#,
        r#""end":{"exited":{"not_finite":{"step":2,"series":"training","loss":"NaN"}}}}"#,
    );
    let written = serde_json::to_string(&curve).unwrap();
    assert_eq!(written, expected);
    let read: Curve = serde_json::from_str(&written).unwrap();
    assert_eq!(format!("{read:?}"), format!("{curve:?}"));
}

#[test]
fn a_loss_may_be_written_as_a_whole_number() {
    let read = |loss: &str| {
        serde_json::from_str::<EvaluationPoint>(&format!(r#"{{"step":1,"progress":0,"loss":{loss}}}"#))
            .map(|point| point.loss)
            .map_err(|error| error.to_string())
    };
    assert_eq!(read("2"), Ok(2.0));
    assert_eq!(read("-3"), Ok(-3.0));
    assert_eq!(read("1e300"), Ok(1e300));
    let refused = read(r#""infinity""#).unwrap_err();
    assert!(refused.contains(r#"expected a number, "NaN", "inf" or "-inf""#), "{refused}");
    assert!(read("null").is_err());
}

#[test]
fn unknown_fields_are_refused() {
    fn refuses<T: serde::de::DeserializeOwned>(json: &str) {
        let error = serde_json::from_str::<T>(json).err().expect("an unknown field").to_string();
        assert!(error.contains("unknown field `x`"), "{error}");
    }
    refuses::<Curve>(r#"{"train":[],"evaluations":[],"x":1}"#);
    refuses::<TrainPoint>(r#"{"step":1,"progress":0.5,"loss":1.0,"x":1}"#);
    refuses::<EvaluationPoint>(r#"{"step":1,"progress":0.5,"loss":1.0,"x":1}"#);
    refuses::<Reason>(r#"{"not_finite":{"step":1,"series":"training","loss":1.0,"x":1}}"#);
    refuses::<Diverging>(r#"{"x":1}"#);
    refuses::<Overfitting>(r#"{"x":1}"#);
    refuses::<Underperforming>(r#"{"x":1}"#);
    refuses::<LossAware>(r#"{"diverging":{"x":1}}"#);
    refuses::<LossAware>(r#"{"x":1}"#);
}

#[test]
fn settings_that_are_left_out_have_their_defaults() {
    let read: LossAware =
        serde_json::from_str(r#"{"underperforming":{"keep":0.5},"overfitting":{"require_rise":true}}"#)
            .expect("both are in range");
    let expected = LossAware {
        underperforming: Underperforming { keep: 0.5, mark: 0.05 },
        overfitting: Overfitting { require_rise: true, ..Overfitting::default() },
        diverging: Diverging::default(),
    };
    assert_eq!(read, expected);
    assert_eq!(serde_json::from_str::<LossAware>(&serde_json::to_string(&expected).unwrap()).unwrap(), expected);
    assert_eq!(serde_json::from_str::<Never>(&serde_json::to_string(&Never).unwrap()).unwrap(), Never);
}

#[test]
fn settings_out_of_range_are_refused_when_read() {
    let read = |json: &str| serde_json::from_str::<LossAware>(json).map_err(|error| error.to_string());
    let error = read(r#"{"diverging":{"window":1}}"#).unwrap_err();
    assert!(error.starts_with("loss_aware: diverging: window is 1, but must be at least 2"), "{error}");
    let error = read(r#"{"overfitting":{"patience":0}}"#).unwrap_err();
    assert!(error.starts_with("loss_aware: overfitting: patience is 0, but must be at least 1"), "{error}");
    let error = read(r#"{"underperforming":{"keep":25}}"#).unwrap_err();
    assert!(error.starts_with("loss_aware: underperforming: keep is 25, but must be over 0 and at most 1"), "{error}");
}

#[test]
fn every_policy_is_read_by_its_name_and_survives_a_file() {
    let settings = [
        (r#""never""#, r#""never""#),
        (r#"{"diverging":{}}"#, r#"{"diverging":{"window":2,"threshold":0.001,"patience":2,"ema":0.3}}"#),
        (r#"{"overfitting":{}}"#, r#"{"overfitting":{"threshold":0.1,"patience":2,"require_rise":false,"ema":0.3}}"#),
        (r#"{"underperforming":{}}"#, r#"{"underperforming":{"mark":0.05,"keep":0.25}}"#),
        (
            r#"{"adaptive_rung":{"risk":0.125}}"#,
            r#"{"adaptive_rung":{"first":0.02,"ratio":1.25,"risk":0.125,"caution":1.0}}"#,
        ),
        (r#"{"worse_than_untrained":{}}"#, r#"{"worse_than_untrained":{"margin":0.1,"patience":3,"after":0.1}}"#),
        (r#"{"patience":{"stalled":{}}}"#, r#"{"patience":{"stalled":{"evaluations":10,"gain":0.0}}}"#),
        (r#"{"patience":{"generalization_loss":{}}}"#, r#"{"patience":{"generalization_loss":{"alpha":5.0}}}"#),
        (r#"{"patience":{"quotient":{}}}"#, r#"{"patience":{"quotient":{"alpha":3.0,"strip":5}}}"#),
        (r#"{"patience":{"rising":{}}}"#, r#"{"patience":{"rising":{"strips":2,"strip":5}}}"#),
        (r#"{"median_stopping":{}}"#, r#"{"median_stopping":{"peers":5,"grace":0.1}}"#),
        (r#"{"successive_halving":{"first":0.125}}"#, r#"{"successive_halving":{"first":0.125,"eta":3}}"#),
        (r#"{"hyperband":{"first":0.125}}"#, r#"{"hyperband":{"first":0.125,"eta":3}}"#),
        (r#"{"asha":{"first":0.125}}"#, r#"{"asha":{"first":0.125,"eta":3}}"#),
        (r#"{"extrapolation":{}}"#, r#"{"extrapolation":{"bound":0.05,"evaluations":10}}"#),
        (r#"{"patient":{"evaluations":2,"policy":"never"}}"#, r#"{"patient":{"evaluations":2,"policy":"never"}}"#),
        (
            r#"{"not_before":{"progress":0.5,"policy":{"patient":{"evaluations":2,"policy":"never"}}}}"#,
            r#"{"not_before":{"progress":0.5,"policy":{"patient":{"evaluations":2,"policy":"never"}}}}"#,
        ),
        (
            r#"{"at_least_peers":{"peers":3,"policy":{"any_of":["never"]}}}"#,
            r#"{"at_least_peers":{"peers":3,"policy":{"any_of":["never"]}}}"#,
        ),
    ];
    for (brief, full) in settings {
        let read: Policy = serde_json::from_str(brief).unwrap_or_else(|error| panic!("{brief}: {error}"));
        assert_eq!(serde_json::to_string(&read).unwrap(), full);
        assert_eq!(serde_json::from_str::<Policy>(full).unwrap(), read);
    }
    let default = serde_json::to_string(&Policy::Patience(Patience::default())).unwrap();
    assert_eq!(default, r#"{"patience":{"stalled":{"evaluations":10,"gain":0.0}}}"#);
}

#[test]
fn a_bad_policy_file_names_policy_and_field() {
    let cases = [
        (r#"{"median_stopping":{"peer":3}}"#, "median_stopping: unknown field `peer`, expected `peers` or `grace`"),
        (r#"{"diverging":{"x":3}}"#, "diverging: unknown field `x`, expected one of `window`"),
        (r#"{"patience":{"rising":{"x":3}}}"#, "patience: unknown field `x`, expected `strips` or `strip`"),
        (r#"{"patience":{"falling":{}}}"#, "patience: unknown variant `falling`, expected one of `stalled`"),
        (
            r#"{"adaptive_rung":{"x":1}}"#,
            "adaptive_rung: unknown field `x`, expected one of `first`, `ratio`, `risk`, `caution`",
        ),
        (r#"{"adaptive_rung":{"risk":1}}"#, "adaptive_rung: risk is 1, but must be over 0 and under 0.5"),
        (r#"{"asha":{"eta":-1}}"#, "asha: invalid value: integer `-1`, expected usize"),
        (r#"{"asha":{"eta":1}}"#, "asha: eta is 1, but must be at least 2"),
        (r#"{"patient":{"evaluations":0,"policy":"never"}}"#, "patient: evaluations is 0, but must be at least 1"),
        (r#"{"patient":{"policy":"never"}}"#, "patient: missing field `evaluations`"),
        (
            r#"{"not_before":{"progress":0.5,"policy":{"hyperband":{"first":2}}}}"#,
            "not_before: hyperband: first is 2, but must be from 0.000001 to under 1",
        ),
        (
            r#"{"any_of":["never",{"at_least_peers":{"peers":1,"policy":{"extrapolation":{"x":1}}}}]}"#,
            "at_least_peers: extrapolation: unknown field `x`, expected `bound` or `evaluations`",
        ),
        (r#"{"halving":{}}"#, "unknown variant `halving`, expected one of `never`"),
    ];
    for (json, expected) in cases {
        let error = serde_json::from_str::<Policy>(json).unwrap_err().to_string();
        assert!(error.starts_with(expected), "{error}");
        assert!(error.contains(" at line 1 column ") || error.contains(", but must be "), "{error}");
    }
}

fn standing() -> Standing {
    Standing { step: 5, mark: 0.15000000000000002, place: 7, of: 12, kept: 3, loss: f64::NAN, cut: 1.5 }
}

fn outpaced(stability: Option<f64>) -> Reason {
    let (mark, gap, chance, spent, risk) = (0.31250000000000006, 0.25, 0.0005, 0.0025, 0.01);
    Reason::Outpaced { step: 40, mark, place: 5, of: 12, gap, chance, spent, risk, stability }
}

fn reasons() -> Vec<(Reason, &'static str)> {
    vec![
        (
            Reason::Diverging {
                step: 30,
                train_slope: 0.25,
                validation_slope: 1.5e9,
                threshold: 0.001,
                window: 2,
                patience: 3,
            },
            "diverging at step 30: over 2 evaluations the training loss rises by 0.2500 and the validation loss by \
             1.500e9 per evaluation, both at least 0.001, 3 times in a row",
        ),
        (
            Reason::NotFinite { step: 7, series: Series::Validation, loss: f64::NEG_INFINITY },
            "not finite at step 7: the validation loss is -inf",
        ),
        (
            Reason::Overfitting { step: 9, gap: 1.0, threshold: 0.1, patience: 2, train: 0.0005, validation: 0.001 },
            "overfitting at step 9: validation loss 0.0010 against training loss 5.000e-4 is a gap of 1.0000, over 0.1, 2 \
             evaluations in a row",
        ),
        (
            Reason::Underperforming { step: 5, mark: 0.05, place: 7, of: 12, kept: 3, loss: 1.5, cut: f64::INFINITY },
            "underperforming at step 5: place 7 of 12 at progress 0.05 with loss 1.5000, but only the best 3 stay, up \
             to inf",
        ),
        (
            outpaced(Some(0.987)),
            "outpaced at step 40: place 5 of 12 at progress 0.3125, behind the lowest loss by 0.2500 of what was learned \
             there, with a chance of 5.000e-4 to come in first; all that were cut so far have 0.0025 of 0.01 allowed, and \
             the ranking correlates with the last one by 0.99",
        ),
        (
            outpaced(None),
            "outpaced at step 40: place 5 of 12 at progress 0.3125, behind the lowest loss by 0.2500 of what was learned \
             there, with a chance of 5.000e-4 to come in first; all that were cut so far have 0.0025 of 0.01 allowed",
        ),
        (
            Reason::WorseThanUntrained { step: 8, loss: 19.5, untrained: 1.375, margin: 0.1, patience: 3 },
            "worse than untrained at step 8: loss 19.5000 against 1.3750 before training, above it by more than a share of \
             0.1, 3 times in a row",
        ),
        (
            Reason::Stalled { step: 8, best: 1.5, since: f64::INFINITY, gain: 0.0, evaluations: 10 },
            "stalled at step 8: the best of 10 evaluations, inf, is not under the best before them, 1.5000, by more than a \
             share of 0",
        ),
        (
            Reason::GeneralizationLoss { step: 8, loss: 3.0, best: 2.0, percent: 50.0, alpha: 5.0 },
            "generalization loss at step 8: loss 3.0000 is 50.0000 percent above its lowest, 2.0000, and over 5 is too much",
        ),
        (
            Reason::Quotient { step: 8, percent: 50.0, per_mille: 12.5, quotient: 4.0, alpha: 3.0, strip: 5 },
            "quotient at step 8: a generalization loss of 50.0000 percent against training progress of 12.5000 per mille \
             over 5 evaluations is 4.0000, over 3",
        ),
        (
            Reason::Rising { step: 8, from: 1.0, to: 2.0, strips: 2, strip: 5 },
            "rising at step 8: from 1.0000 to 2.0000 in 2 strips of 5 evaluations, each ending higher than the one before",
        ),
        (
            Reason::MedianStopping { step: 8, progress: 0.25, best: 2.0, median: 1.5, peers: 11 },
            "median stopping at step 8: its best loss is 2.0000, but the median of what 11 others averaged up to progress \
             0.2500 is 1.5000",
        ),
        (
            Reason::SuccessiveHalving(standing()),
            "successive halving at step 5: place 7 of 12 at progress 0.15 with loss NaN, but only the best 3 stay, up to \
             1.5000",
        ),
        (
            Reason::Hyperband { bracket: 1, standing: standing() },
            "hyperband, bracket 1, at step 5: place 7 of 12 at progress 0.15 with loss NaN, but only the best 3 stay, up \
             to 1.5000",
        ),
        (
            Reason::Asha(standing()),
            "asha at step 5: place 7 of 12 at progress 0.15 with loss NaN, but only the best 3 stay, up to 1.5000",
        ),
        (
            Reason::Extrapolation {
                step: 12,
                expected: 1.5,
                target: 1.25,
                chance: 0.0001,
                bound: 0.05,
                evaluations: 10,
            },
            "extrapolation at step 12: 10 evaluations lead to a loss of 1.5000 at the end, and the chance to get under the \
             best so far, 1.2500, is 1.000e-4, under 0.05",
        ),
        (
            Reason::Custom {
                policy: "plateau".into(),
                numbers: BTreeMap::from([("since".into(), f64::NAN), ("best".into(), 0.0)]),
            },
            "plateau: best = 0.0000, since = NaN",
        ),
        (Reason::Custom { policy: "mood".into(), numbers: BTreeMap::new() }, "mood"),
    ]
}

#[test]
fn every_reason_reads_as_a_sentence_with_its_numbers() {
    for (reason, expected) in reasons() {
        assert_eq!(reason.to_string(), expected);
    }
}

#[test]
fn a_reasons_sentence_starts_with_the_word_that_it_is_counted_by() {
    for (reason, _) in reasons() {
        let word = if matches!(reason, Reason::NotFinite { .. }) { "not finite" } else { reason.word() };
        assert!(reason.to_string().starts_with(word), "{reason}, not {word}");
    }
}

#[test]
fn every_verdict_survives_a_file() {
    let verdicts = reasons().into_iter().map(|(reason, _)| Verdict::Exit(reason)).chain([Verdict::Keep]);
    for verdict in verdicts {
        let read: Verdict = serde_json::from_str(&serde_json::to_string(&verdict).unwrap()).unwrap();
        assert_eq!(format!("{read:?}"), format!("{verdict:?}"));
    }
    for end in [End::Finished, End::Failed { step: 3, error: "no memory".into() }] {
        let read: End = serde_json::from_str(&serde_json::to_string(&end).unwrap()).unwrap();
        assert_eq!(read, end);
    }
}
