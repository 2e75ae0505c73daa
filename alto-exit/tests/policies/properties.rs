use alto_exit::{
    AnyOf, Curve, Diverging, End, EvaluationPoint, ExitPolicy, LossAware, Overfitting, Reason, TrainPoint,
    Underperforming, Verdict,
};
use proptest::collection::vec;
use proptest::num::f64::ANY;
use proptest::prelude::*;

use crate::curves::{alone, evaluation, prefix, train_point};

/// Whatever fits the types: NaN, infinities, extremes, steps in any order.
fn any_curve() -> impl Strategy<Value = Curve> {
    let train = (any::<u64>(), ANY, ANY, any::<Option<f64>>())
        .prop_map(|(step, progress, loss, grad_norm)| TrainPoint { step: step % 40, progress, loss, grad_norm });
    let evaluation = (0_u64..40, ANY, ANY).prop_map(|(step, progress, loss)| EvaluationPoint { step, progress, loss });
    let end = prop_oneof![Just(None), Just(Some(End::Finished))];
    (vec(train, 0..20), vec(evaluation, 0..12), end).prop_map(|(train, evaluations, end)| Curve {
        train,
        evaluations,
        end,
    })
}

/// Whatever fits the types, and now and then something sensible.
fn any_policy() -> impl Strategy<Value = AnyOf> {
    let count = || prop_oneof![0_usize..5, any::<usize>()];
    let number = || prop_oneof![0.0..=1.0, ANY];
    (count(), count(), any::<bool>(), number(), number(), number(), number()).prop_map(
        |(window, patience, require_rise, threshold, ema, mark, keep)| {
            AnyOf(vec![
                Box::new(Underperforming { mark, keep }),
                Box::new(Overfitting { threshold, patience, require_rise, ema }),
                Box::new(Diverging { window, threshold, patience, ema }),
            ])
        },
    )
}

/// A course on a coarse grid, so that thresholds are hit exactly; some steps leave no training loss.
fn course() -> impl Strategy<Value = Curve> {
    let loss = || (4_i32..40).prop_map(|eighths| f64::from(eighths) / 8.0);
    vec((prop::option::weighted(0.9, loss()), prop::option::weighted(0.4, loss())), 1..30).prop_map(|steps| {
        let mut curve = Curve { evaluations: vec![evaluation(0, 1.0)], ..Curve::default() };
        for (step, (train, validation)) in (1..).zip(steps) {
            curve.train.extend(train.map(|loss| train_point(step, loss)));
            curve.evaluations.extend(validation.map(|loss| evaluation(step, loss)));
        }
        curve
    })
}

/// The rules as a trainer with counters would keep them, fed step by step.
struct Counters {
    diverging: Diverging,
    overfitting: Overfitting,
    average: Option<f64>,
    /// Average and validation loss at each evaluation after the first step.
    seen: Vec<(Option<f64>, f64)>,
    rises: usize,
    gaps: usize,
}

impl Counters {
    fn train(&mut self, loss: f64) {
        let alpha = self.diverging.ema;
        self.average = Some(match self.average {
            None => loss,
            Some(average) => alpha * loss + (1.0 - alpha) * average,
        });
    }

    /// Whether the job is diverging, and whether it is overfitting.
    fn evaluate(&mut self, validation: f64) -> (bool, bool) {
        let before = self.seen.last().map(|&(_, validation)| validation);
        self.seen.push((self.average, validation));

        let window = &self.seen[self.seen.len().saturating_sub(self.diverging.window)..];
        let trains: Option<Vec<f64>> = window.iter().map(|&(average, _)| average).collect();
        let validations: Vec<f64> = window.iter().map(|&(_, validation)| validation).collect();
        let rises = window.len() == self.diverging.window
            && trains.is_some_and(|trains| textbook_slope(&trains) >= self.diverging.threshold)
            && textbook_slope(&validations) >= self.diverging.threshold;
        self.rises = if rises { self.rises + 1 } else { 0 };

        let gap = self.average.is_some_and(|average| (validation - average) / average > self.overfitting.threshold);
        let rose = before.is_some_and(|before| validation > before);
        self.gaps = if gap && (rose || !self.overfitting.require_rise) { self.gaps + 1 } else { 0 };

        (self.rises >= self.diverging.patience, self.gaps >= self.overfitting.patience)
    }
}

/// `(n sum(xy) - sum(x) sum(y)) / (n sum(x^2) - sum(x)^2)`
fn textbook_slope(y: &[f64]) -> f64 {
    let n = y.len() as f64;
    let sum = |term: &dyn Fn(f64, f64) -> f64| y.iter().enumerate().map(|(x, &y)| term(x as f64, y)).sum::<f64>();
    let (x, y, xy, xx) = (sum(&|x, _| x), sum(&|_, y| y), sum(&|x, y| x * y), sum(&|x, _| x * x));
    (n * xy - x * y) / (n * xx - x * x)
}

proptest! {
    #[test]
    fn no_input_panics(policy in any_policy(), cohort in vec(any_curve(), 1..6), alpha in ANY, mark in ANY) {
        for (job, curve) in cohort.iter().enumerate() {
            for part in &policy.0 {
                let _ = part.judge(job, &cohort);
            }
            let _ = policy.judge(job, &cohort);
            let _ = LossAware::default().judge(job, &cohort);
            let _ = (curve.best(), curve.untrained(), curve.improvement(), curve.at_mark(mark), curve.smoothed(alpha));
        }
        let _ = (policy.rungs(0), policy.check());
    }

    #[test]
    fn every_curve_survives_json(curve in any_curve()) {
        let read: Curve = serde_json::from_str(&serde_json::to_string(&curve).unwrap()).unwrap();
        prop_assert_eq!(format!("{read:?}"), format!("{curve:?}"));
    }

    #[test]
    fn judging_each_prefix_gives_the_verdict_given_live(
        curve in course(),
        window in 2_usize..5,
        patience in 1_usize..4,
        sixteenths in 0_i32..6,
        smooth: bool,
        require_rise: bool,
    ) {
        let (threshold, ema) = (f64::from(sixteenths) / 16.0, if smooth { 0.5 } else { 1.0 });
        let diverging = Diverging { window, threshold, patience, ema };
        let overfitting = Overfitting { threshold, patience, require_rise, ema };
        let mut live = Counters {
            diverging: diverging.clone(),
            overfitting: overfitting.clone(),
            average: None,
            seen: vec![],
            rises: 0,
            gaps: 0,
        };
        let mut train = curve.train.iter().peekable();
        for (i, evaluation) in curve.evaluations.iter().enumerate().skip(1) {
            while let Some(point) = train.next_if(|point| point.step <= evaluation.step) {
                live.train(point.loss);
            }
            let expected = live.evaluate(evaluation.loss);
            let replayed = prefix(&curve, i + 1);
            let found = (
                alone(&diverging, &replayed) != Verdict::Keep,
                alone(&overfitting, &replayed) != Verdict::Keep,
            );
            prop_assert_eq!(found, expected, "at evaluation {}", i);
        }
    }

    #[test]
    fn permuting_the_jobs_permutes_the_verdicts(
        (courses, order, keep) in (2_usize..9).prop_flat_map(|n| {
            (vec(course(), n), Just((0..n).collect::<Vec<_>>()).prop_shuffle(), 0.01_f64..=1.0)
        }),
    ) {
        // The loss at the mark is the job's own, so that no tie depends on the order.
        let cohort: Vec<Curve> = (0_u32..).zip(courses).map(|(job, mut curve)| {
            curve.evaluations.retain(|evaluation| evaluation.step < 5);
            curve.train.retain(|point| point.step <= 5);
            curve.evaluations.push(evaluation(5, 1.0 + f64::from(job) / 7.0));
            curve
        }).collect();
        let policy = LossAware { underperforming: Underperforming { mark: 0.05, keep }, ..LossAware::default() };
        let permuted: Vec<Curve> = order.iter().map(|&job| cohort[job].clone()).collect();
        for (place, &job) in order.iter().enumerate() {
            prop_assert_eq!(policy.judge(place, &permuted), policy.judge(job, &cohort));
        }
    }

    #[test]
    fn what_becomes_of_the_others_after_the_mark_changes_no_verdict(
        losses in vec(-2_i32..6, 2..9),
        later in vec(prop::option::of(0_i32..9), 8),
        keep in 0.01_f64..=1.0,
    ) {
        let policy = Underperforming { mark: 0.05, keep };
        let cohort: Vec<Curve> = losses.iter().map(|&loss| Curve {
            evaluations: vec![evaluation(5, f64::from(loss))],
            ..Curve::default()
        }).collect();
        let mut after = cohort.clone();
        for (curve, loss) in after.iter_mut().zip(&later) {
            curve.evaluations.extend(loss.map(|loss| evaluation(9, f64::from(loss))));
            curve.end = loss.is_none().then_some(End::Finished);
        }
        for (job, curve) in cohort.iter().enumerate() {
            let expected = policy.judge(job, &cohort);
            let mut now = after.clone();
            now[job] = curve.clone();
            prop_assert_eq!(policy.judge(job, &now), expected);
        }
    }

    #[test]
    fn exactly_the_share_stays(losses in vec(ANY, 1..30), quarters in 1_usize..=4) {
        let policy = Underperforming { mark: 0.05, keep: quarters as f64 / 4.0 };
        let cohort: Vec<Curve> =
            losses.iter().map(|&loss| Curve { evaluations: vec![evaluation(5, loss)], ..Curve::default() }).collect();
        let verdicts: Vec<Verdict> = (0..cohort.len()).map(|job| policy.judge(job, &cohort)).collect();
        let mut places: Vec<usize> = verdicts
            .iter()
            .filter_map(|verdict| match verdict {
                Verdict::Exit(Reason::Underperforming { place, .. }) => Some(*place),
                _ => None,
            })
            .collect();
        places.sort_unstable();
        let stay = (quarters * losses.len()).div_ceil(4);
        prop_assert_eq!(places, (stay + 1..=losses.len()).collect::<Vec<_>>());
    }
}
