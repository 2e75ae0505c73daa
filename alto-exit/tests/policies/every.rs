//! What holds for every policy, and the slow and obvious versions of those that count or rank.

use alto_exit::{
    AdaptiveRung, Asha, AtLeastPeers, Curve, Diverging, End, EvaluationPoint, ExitPolicy, Extrapolation, Hyperband,
    LossAware, MedianStopping, NotBefore, Overfitting, Patience, Patient, Policy, SuccessiveHalving, TrainPoint,
    Underperforming, Verdict, WorseThanUntrained,
};
use proptest::collection::vec;
use proptest::num::f64::ANY;
use proptest::prelude::*;

use crate::curves::{evaluation, prefix, train_point};

/// Whatever fits the types: NaN, infinities, extremes, steps in any order.
fn any_curve() -> impl Strategy<Value = Curve> {
    let loss = || prop_oneof![ANY, 0.0..4.0];
    let progress = || prop_oneof![ANY, 0.0..1.0];
    let train = (0_u64..40, progress(), loss()).prop_map(|(step, progress, loss)| TrainPoint {
        step,
        progress,
        loss,
        grad_norm: None,
    });
    let evaluation =
        (0_u64..40, progress(), loss()).prop_map(|(step, progress, loss)| EvaluationPoint { step, progress, loss });
    let end = prop_oneof![Just(None), Just(Some(End::Finished))];
    (vec(train, 0..20), vec(evaluation, 0..20), any::<bool>(), end).prop_map(|(train, evaluations, is_sorted, end)| {
        let mut curve = Curve { train, evaluations, end };
        if is_sorted {
            curve.train.sort_by_key(|point| point.step);
            curve.evaluations.sort_by(|a, b| a.progress.total_cmp(&b.progress));
        }
        curve
    })
}

/// Any policy with these settings in it, and decorated or not.
fn policy(number: BoxedStrategy<f64>, count: BoxedStrategy<usize>) -> BoxedStrategy<Policy> {
    let settings = (number.clone(), number.clone(), number.clone(), count.clone(), count.clone(), any::<bool>());
    let plain = (0..16, settings).prop_map(|(kind, (x, y, z, m, n, flag))| match kind {
        0 => Policy::Never,
        1 => Policy::Diverging(Diverging { window: m, threshold: x, patience: n, ema: y }),
        2 => Policy::Overfitting(Overfitting { threshold: x, patience: n, require_rise: flag, ema: y }),
        3 => Policy::Underperforming(Underperforming { mark: x, keep: y }),
        4 => Policy::LossAware(LossAware {
            underperforming: Underperforming { mark: x, keep: y },
            ..LossAware::default()
        }),
        5 => Policy::WorseThanUntrained(WorseThanUntrained { margin: x, patience: n, after: y }),
        6 => Policy::Patience(Patience::Stalled { evaluations: n, gain: x }),
        7 => Policy::Patience(Patience::GeneralizationLoss { alpha: 100.0 * x }),
        8 => Policy::Patience(Patience::Quotient { alpha: x, strip: n }),
        9 => Policy::Patience(Patience::Rising { strips: m, strip: n }),
        10 => Policy::MedianStopping(MedianStopping { peers: n, grace: x }),
        11 => Policy::SuccessiveHalving(SuccessiveHalving { first: x, eta: n }),
        12 => Policy::Hyperband(Hyperband { first: x, eta: n }),
        13 => Policy::Asha(Asha { first: x, eta: n }),
        14 => Policy::AdaptiveRung(AdaptiveRung { first: x, ratio: 1.0 + y, risk: z, caution: y }),
        _ => Policy::Extrapolation(Extrapolation { bound: z, evaluations: n }),
    });
    plain
        .prop_recursive(3, 6, 3, move |inner| {
            let (number, count) = (number.clone(), count.clone());
            prop_oneof![
                (count.clone(), inner.clone())
                    .prop_map(|(evaluations, policy)| Policy::Patient(Box::new(Patient { evaluations, policy }))),
                (number, inner.clone())
                    .prop_map(|(progress, policy)| Policy::NotBefore(Box::new(NotBefore { progress, policy }))),
                (count, inner.clone())
                    .prop_map(|(peers, policy)| Policy::AtLeastPeers(Box::new(AtLeastPeers { peers, policy }))),
                vec(inner, 0..3).prop_map(Policy::AnyOf),
            ]
        })
        .boxed()
}

fn any_policy() -> BoxedStrategy<Policy> {
    policy(prop_oneof![0.0..=1.0, ANY].boxed(), prop_oneof![0_usize..6, any::<usize>()].boxed())
}

/// Settings in range, on a grid that courses hit.
fn sensible_policy() -> BoxedStrategy<Policy> {
    let number = prop_oneof![Just(0.05), Just(0.1), Just(0.25), Just(0.5)];
    policy(number.boxed(), (1_usize..5).boxed()).prop_filter("in range", |policy| policy.check().is_ok()).boxed()
}

/// Jobs evaluated each twentieth of the budget, as far as each has come, and trained as often in between.
///
/// No two jobs have a finite loss in common.
fn cohort() -> impl Strategy<Value = Vec<Curve>> {
    let loss = || prop_oneof![20 => (4_i32..40).prop_map(|eighths| f64::from(eighths) / 8.0), 1 => Just(f64::NAN)];
    let course = move || (loss(), vec((loss(), loss()), 0..20));
    let curve = |(job, (untrained, losses)): (u32, (f64, Vec<(f64, f64)>))| {
        let mut curve = Curve { evaluations: vec![evaluation(0, untrained)], ..Curve::default() };
        for (step, (train, validation)) in (1..).map(|twentieth| 5 * twentieth).zip(losses) {
            curve.train.push(train_point(step, train));
            curve.evaluations.push(evaluation(step, validation + f64::from(job) / 1024.0));
        }
        curve
    };
    vec(course(), 1..10).prop_map(move |courses| (0..).zip(courses).map(curve).collect())
}

/// The same, every loss a number: those that are not rank alike, and then the index decides.
fn finite_cohort() -> impl Strategy<Value = Vec<Curve>> {
    cohort().prop_map(|mut cohort| {
        for (job, curve) in cohort.iter_mut().enumerate() {
            for at in curve.evaluations.iter_mut().filter(|at| !at.loss.is_finite()) {
                at.loss = 2.0 + job as f64 / 1024.0;
            }
        }
        cohort
    })
}

fn all(policy: &dyn ExitPolicy, cohort: &[Curve]) -> Vec<Verdict> {
    policy.judge_all(&(0..cohort.len()).collect::<Vec<_>>(), cohort)
}

/// Verdicts as text: the numbers of a reason may be NaN.
fn text(verdicts: &[Verdict]) -> Vec<String> {
    verdicts.iter().map(|verdict| format!("{verdict:?}")).collect()
}

/// Why each job ends, without the numbers.
fn words(verdicts: &[Verdict]) -> Vec<&str> {
    verdicts.iter().map(|verdict| if let Verdict::Exit(reason) = verdict { reason.word() } else { "keep" }).collect()
}

fn goes_by_index(policy: &Policy) -> bool {
    match policy {
        Policy::Hyperband(_) => true,
        Policy::Patient(outer) => goes_by_index(&outer.policy),
        Policy::NotBefore(outer) => goes_by_index(&outer.policy),
        Policy::AtLeastPeers(outer) => goes_by_index(&outer.policy),
        Policy::AnyOf(policies) => policies.iter().any(goes_by_index),
        _ => false,
    }
}

/// Whether a setting of it is in nats per token.
fn has_a_unit(policy: &Policy) -> bool {
    match policy {
        Policy::Diverging(_) | Policy::LossAware(_) => true,
        Policy::Patient(outer) => has_a_unit(&outer.policy),
        Policy::NotBefore(outer) => has_a_unit(&outer.policy),
        Policy::AtLeastPeers(outer) => has_a_unit(&outer.policy),
        Policy::AnyOf(policies) => policies.iter().any(has_a_unit),
        _ => false,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn no_input_panics_and_judging_all_at_once_changes_nothing(
        policy in any_policy(),
        cohort in vec(any_curve(), 1..7),
        mark in ANY,
    ) {
        let one_by_one: Vec<Verdict> = (0..cohort.len()).map(|job| policy.judge(job, &cohort)).collect();
        prop_assert_eq!(text(&one_by_one), text(&all(&policy, &cohort)));
        let backwards: Vec<usize> = (0..cohort.len()).rev().collect();
        let mut reversed = policy.judge_all(&backwards, &cohort);
        reversed.reverse();
        prop_assert_eq!(text(&one_by_one), text(&reversed));
        prop_assert!(policy.judge_all(&[], &cohort).is_empty());
        let _ = (policy.rungs(0), policy.rungs(7), policy.check());
        for verdict in &one_by_one {
            if let Verdict::Exit(reason) = verdict {
                let _ = reason.to_string();
            }
        }
        let _ = cohort[0].at_mark(mark);
    }

    #[test]
    fn sensible_verdicts_are_the_same_one_by_one(policy in sensible_policy(), cohort in cohort()) {
        let one_by_one: Vec<Verdict> = (0..cohort.len()).map(|job| policy.judge(job, &cohort)).collect();
        prop_assert_eq!(text(&one_by_one), text(&all(&policy, &cohort)));
    }

    #[test]
    fn a_policy_that_compares_nobody_says_the_same_of_a_job_alone(policy in sensible_policy(), cohort in cohort()) {
        if policy.compares() {
            return Ok(());
        }
        let alone: Vec<Verdict> = cohort.iter().map(|curve| policy.judge(0, std::slice::from_ref(curve))).collect();
        prop_assert_eq!(text(&alone), text(&all(&policy, &cohort)));
    }

    #[test]
    fn how_jobs_ended_changes_no_verdict(policy in sensible_policy(), cohort in cohort()) {
        let mut ended = cohort.clone();
        for curve in &mut ended {
            curve.end = Some(End::Finished);
        }
        prop_assert_eq!(text(&all(&policy, &cohort)), text(&all(&policy, &ended)));
    }

    #[test]
    fn jobs_permuted_have_the_same_verdicts(
        policy in sensible_policy().prop_filter("by curves", |policy| !goes_by_index(policy)),
        (cohort, order) in finite_cohort().prop_flat_map(|cohort| {
            let order: Vec<usize> = (0..cohort.len()).collect();
            (Just(cohort), Just(order).prop_shuffle())
        }),
    ) {
        let permuted: Vec<Curve> = order.iter().map(|&job| cohort[job].clone()).collect();
        let verdicts = text(&all(&policy, &cohort));
        let expected: Vec<&String> = order.iter().map(|&job| &verdicts[job]).collect();
        let found = text(&all(&policy, &permuted));
        prop_assert_eq!(found.iter().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn jobs_that_change_places_within_their_bracket_keep_their_verdicts(cohort in finite_cohort(), eta in 2_usize..4) {
        let policy = Hyperband { first: 0.05, eta };
        let of = |bracket: usize| (0..cohort.len()).filter(|&job| policy.bracket(job) == bracket).collect::<Vec<_>>();
        let mut permuted = cohort.clone();
        for members in (0..8).map(of) {
            for (&from, &to) in members.iter().zip(members.iter().rev()) {
                permuted[to] = cohort[from].clone();
            }
        }
        let (before, after) = (text(&all(&policy, &cohort)), text(&all(&policy, &permuted)));
        for members in (0..8).map(of) {
            for (&from, &to) in members.iter().zip(members.iter().rev()) {
                prop_assert_eq!(&before[from], &after[to]);
            }
        }
    }

    #[test]
    fn scaled_losses_give_the_same_verdicts(
        policy in sensible_policy().prop_filter("promises it", |policy| !has_a_unit(policy)),
        cohort in cohort(),
        twos in -20_i32..20,
    ) {
        // By a power of two, which rounds nothing.
        let scale = 2.0_f64.powi(twos);
        let mut scaled = cohort.clone();
        for curve in &mut scaled {
            curve.train.iter_mut().for_each(|point| point.loss *= scale);
            curve.evaluations.iter_mut().for_each(|at| at.loss *= scale);
        }
        let (before, after) = (all(&policy, &cohort), all(&policy, &scaled));
        prop_assert_eq!(words(&before), words(&after));
    }

    #[test]
    fn a_mark_is_found_as_if_searched_from_the_start(cohort in cohort(), mark in 0.0..1.0) {
        for curve in &cohort {
            let expected = curve.trained().find(|at| at.progress >= mark);
            prop_assert_eq!(format!("{:?}", curve.at_mark(mark)), format!("{expected:?}"));
        }
    }

    #[test]
    fn the_latest_averages_are_those_of_the_whole_curve_in_any_order(curve in any_curve()) {
        let policy = Overfitting { threshold: 0.25, patience: 1, require_rise: false, ema: 0.5 };
        let latest = curve.smoothed(0.5).pop();
        let ends = latest.is_some_and(|at| {
            let gap = at.train.filter(|&train| train > 0.0 && train.is_finite()).map(|train| (at.validation - train) / train);
            at.validation.is_finite() && gap.is_some_and(|gap| gap > 0.25)
        });
        let verdict = policy.judge(0, std::slice::from_ref(&curve));
        prop_assert_eq!(verdict != Verdict::Keep, ends);
    }

    #[test]
    fn counters_kept_live_end_a_job_where_its_prefix_does(cohort in cohort(), patience in 1_usize..4, strip in 1_usize..4) {
        let curve = &cohort[0];
        let worse = WorseThanUntrained { margin: 0.25, patience, after: 0.15 };
        let stalled = Patience::Stalled { evaluations: patience, gain: 0.0 };
        let rising = Patience::Rising { strips: patience, strip };
        let untrained = curve.evaluations[0].loss;
        let high = |loss: f64| if loss.is_finite() { loss } else { f64::INFINITY };
        let (mut above, mut best, mut since, mut strips, mut last_end) = (0, f64::INFINITY, 0, 0, None);
        for (seen, at) in curve.evaluations.iter().enumerate().skip(1) {
            let is_above = untrained.is_finite() && at.progress >= 0.15 && high(at.loss) > 1.25 * untrained;
            above = if is_above { above + 1 } else { 0 };
            if high(at.loss) < best { (best, since) = (at.loss, 0) } else { since += 1 }
            let mut is_strip_end = false;
            if seen.is_multiple_of(strip) {
                let has_risen = last_end.is_some_and(|last| high(at.loss) > last);
                strips = if has_risen { strips + 1 } else { 0 };
                last_end = Some(high(at.loss));
                is_strip_end = true;
            }
            let now = prefix(curve, seen + 1);
            let ends = |policy: &dyn ExitPolicy| policy.judge(0, std::slice::from_ref(&now)) != Verdict::Keep;
            prop_assert_eq!(ends(&worse), above >= patience, "above {}", seen);
            prop_assert_eq!(ends(&stalled), best.is_finite() && since >= patience, "stalled {}", seen);
            prop_assert_eq!(ends(&rising), is_strip_end && strips >= patience, "rising {}", seen);
        }
    }

    #[test]
    fn the_median_is_the_textbooks(cohort in cohort(), peers in 1_usize..4) {
        let policy = MedianStopping { peers, grace: 0.1 };
        for (job, verdict) in all(&policy, &cohort).into_iter().enumerate() {
            let own = cohort[job].evaluations.last().expect("at step 0 at least");
            let mut averages: Vec<f64> = cohort.iter().enumerate().filter(|&(other, _)| other != job).filter_map(|(_, curve)| {
                let losses: Vec<f64> =
                    curve.trained().filter(|at| at.step <= own.step).map(|at| at.loss).collect();
                let mean = losses.iter().sum::<f64>() / losses.len() as f64;
                (curve.evaluations.last()?.step >= own.step && !losses.is_empty())
                    .then_some(if mean.is_finite() { mean } else { f64::INFINITY })
            }).collect();
            averages.sort_by(f64::total_cmp);
            let n = averages.len();
            let ends = own.progress >= 0.1 && n >= peers && {
                let median = (averages[(n - 1) / 2] + averages[n / 2]) / 2.0;
                cohort[job].best().map_or(f64::INFINITY, |best| best.loss) > median
            };
            prop_assert_eq!(verdict != Verdict::Keep, ends, "job {}", job);
        }
    }

    #[test]
    fn halving_ends_whom_a_live_tournament_does(losses in vec(vec(0_i32..50, 4), 1..20), eta in 2_usize..4) {
        let policy = SuccessiveHalving { first: 0.1, eta };
        let marks = policy.rungs(0);
        let mut cohort = vec![Curve::default(); losses.len()];
        let mut left: Vec<usize> = (0..losses.len()).collect();
        for (rung, &mark) in marks.iter().enumerate() {
            for &job in &left {
                let loss = f64::from(losses[job][rung]);
                cohort[job].evaluations.push(EvaluationPoint { step: rung as u64 + 1, progress: mark, loss });
            }
            let stay = left.len().div_ceil(eta);
            let verdicts = policy.judge_all(&left, &cohort);
            let mut ranked = left.clone();
            ranked.sort_by_key(|&job| (losses[job][rung], job));
            let kept: Vec<usize> =
                left.iter().zip(verdicts).filter(|(_, verdict)| *verdict == Verdict::Keep).map(|(&job, _)| job).collect();
            ranked.truncate(stay);
            ranked.sort_unstable();
            prop_assert_eq!(&kept, &ranked);
            left = kept;
        }
    }
}
