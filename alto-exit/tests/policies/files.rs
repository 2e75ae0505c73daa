use std::collections::BTreeMap;

use alto_exit::{
    Curve, Diverging, End, EvaluationPoint, LossAware, Never, Overfitting, Reason, Series, TrainPoint, Underperforming,
    Verdict,
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
