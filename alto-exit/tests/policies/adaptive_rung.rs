use alto_exit::{AdaptiveRung, Curve, End, ExitPolicy, Reason, Verdict};
use proptest::collection::vec;
use proptest::prelude::*;
use statrs::distribution::{ContinuousCDF, Normal};

use crate::curves::{evaluation, prefix};

/// Marks at 0.1, 0.2, 0.4 and 0.8.
fn doubling() -> AdaptiveRung {
    AdaptiveRung { first: 0.1, ratio: 2.0, ..AdaptiveRung::default() }
}

/// An untrained loss of 3, and one loss at each mark that the job has come to.
fn at_marks(losses: &[f64]) -> Curve {
    let steps = [10, 20, 40, 80];
    let trained = steps.iter().zip(losses).map(|(&step, &loss)| evaluation(step, loss));
    Curve { evaluations: [evaluation(0, 3.0)].into_iter().chain(trained).collect(), ..Curve::default() }
}

/// Four that haven't moved between 0.1 and 0.2, the first in the lead.
fn settled() -> Vec<Curve> {
    [2.0, 2.5, 3.0, 2.25].map(|loss| at_marks(&[loss, loss])).to_vec()
}

fn stays(policy: &AdaptiveRung, cohort: &[Curve]) -> Vec<usize> {
    (0..cohort.len()).filter(|&job| policy.judge(job, cohort) == Verdict::Keep).collect()
}

#[test]
fn the_marks_are_a_ratio_apart_and_end_where_nothing_is_left_to_save() {
    assert_eq!(doubling().rungs(3), [0.1, 0.2, 0.4, 0.8]);
    let default = AdaptiveRung::default().rungs(0);
    assert_eq!(default.len(), 18);
    assert!(default[0] == 0.02 && (0.888..0.889).contains(&default[17]), "{default:?}");
    assert_eq!(AdaptiveRung { first: 0.95, ..doubling() }.rungs(0), [0.0; 0]);
    assert_eq!(AdaptiveRung { first: 0.001, ratio: 1.05, ..doubling() }.rungs(0).len(), 64);
}

#[test]
fn the_first_mark_only_takes_the_measure() {
    let cohort = [1.0, 2.0, 3.0, 99.0].map(|loss| at_marks(&[loss]));
    assert_eq!(stays(&doubling(), &cohort), [0, 1, 2, 3]);
    // Even if it is the only one.
    let once = AdaptiveRung { first: 0.1, ratio: 10.0, ..doubling() };
    assert_eq!(once.rungs(0), [0.1]);
    assert_eq!(stays(&once, &cohort), [0, 1, 2, 3]);
}

#[test]
fn where_nothing_moves_all_but_the_leader_are_cut() {
    let cohort = settled();
    assert_eq!(stays(&doubling(), &cohort), [0]);
    assert_eq!(
        doubling().judge(1, &cohort),
        Verdict::Exit(Reason::Outpaced {
            step: 20,
            mark: 0.2,
            place: 3,
            of: 4,
            gap: 0.5,
            chance: 0.0,
            spent: 0.0,
            risk: 0.01,
            stability: Some(1.0),
        })
    );
}

#[test]
fn where_gaps_still_shrink_nobody_is_cut() {
    let shrinking = [&[2.0, 2.0][..], &[3.0, 2.5], &[2.75, 2.25], &[2.5, 2.5]].map(at_marks);
    // Not even the last, which stands still: the others show how far a gap may walk.
    assert_eq!(stays(&doubling(), &shrinking), [0, 1, 2, 3]);
    let growing = [&[2.5, 2.0][..], &[2.5, 2.5], &[2.75, 2.75], &[2.5, 2.5]].map(at_marks);
    assert_eq!(stays(&doubling(), &growing), [0], "a gap that grows is none that moves up");
}

#[test]
fn a_chance_is_that_of_the_formula() {
    // Of one unit that was learned, job 1 lacked all and lacks a half; the others stand still.
    let cohort = [&[2.0, 2.0][..], &[3.0, 2.5], &[3.0, 3.0]].map(at_marks);
    let (gains, left) = (0.5_f64.powi(2) / 3.0, 5.0_f64.ln() / 2.0_f64.ln());
    let away = |gap: f64, gain: f64| (gap - left * gain) / (left * (gain * gain + gains + 1e-6)).sqrt();
    let chance = |gap, gain| Normal::standard().sf(away(gap, gain));
    assert_eq!(stays(&AdaptiveRung { risk: 0.01, ..doubling() }, &cohort), [0, 1, 2]);
    let policy = AdaptiveRung { risk: 0.4, ..doubling() };
    assert_eq!(stays(&policy, &cohort), [0, 1]);
    let Verdict::Exit(Reason::Outpaced { chance: found, spent, .. }) = policy.judge(2, &cohort) else { unreachable!() };
    assert!((found - chance(1.0, 0.0)).abs() < 1e-12 && found == spent, "{found} is not {}", chance(1.0, 0.0));
    assert!(found > 0.01 / 3.0 && found < 0.4 / 3.0, "this check has a third of the risk");
    assert!(chance(0.5, 0.5) > 0.5, "so that job 1 stays");
}

#[test]
fn a_check_has_an_equal_share_of_the_risk_and_what_was_left_before() {
    // After the first, there are three checks.
    let share_needed = |cohort: &[Curve]| {
        let policy = |risk| AdaptiveRung { risk, ..doubling() };
        let Verdict::Exit(Reason::Outpaced { mark, chance, .. }) = policy(0.499).judge(2, cohort) else {
            panic!("the last is cut")
        };
        let is_cut = |shares: f64| policy(chance / shares).judge(2, cohort) != Verdict::Keep;
        (mark, [0.32, 0.34, 0.66, 0.68].map(is_cut))
    };
    let cohort = [&[2.0, 2.0][..], &[3.0, 2.5], &[3.0, 3.0]].map(at_marks);
    assert_eq!(share_needed(&cohort), (0.2, [true, false, false, false]));
    // An evaluation at 0.2 that is also the first past 0.1 leaves nothing to compare before 0.4.
    let later = [[2.0, 2.0], [3.0, 2.5], [3.0, 3.0]].map(|[at_20, at_40]| Curve {
        evaluations: vec![evaluation(0, 3.0), evaluation(20, at_20), evaluation(40, at_40)],
        ..Curve::default()
    });
    assert_eq!(share_needed(&later), (0.4, [true, true, true, false]));
}

#[test]
fn the_last_job_is_never_cut_and_the_worse_goes_first() {
    // The lead is that of a job which ended before the mark; both that are left have no chance.
    let mut ended = at_marks(&[1.0]);
    ended.end = Some(End::Finished);
    let left = [at_marks(&[2.5, 2.5]), at_marks(&[2.75, 2.75])];
    let cohort = [ended.clone(), left[0].clone(), left[1].clone()];
    assert_eq!(stays(&doubling(), &cohort), [0, 1]);
    assert_eq!(stays(&doubling(), &[ended, left[1].clone(), left[0].clone()]), [0, 2]);
}

#[test]
fn a_job_that_went_past_a_mark_is_not_cut_there_any_more() {
    let mut cohort = settled();
    cohort[1].evaluations.push(evaluation(25, 2.5));
    assert_eq!(stays(&doubling(), &cohort), [0, 1]);
    // It is at the next one.
    cohort[0].evaluations.push(evaluation(40, 2.0));
    cohort[1].evaluations.push(evaluation(40, 2.5));
    assert_eq!(stays(&doubling(), &cohort), [0]);
    assert!(matches!(doubling().judge(1, &cohort), Verdict::Exit(Reason::Outpaced { mark: 0.4, of: 2, .. })));
}

#[test]
fn one_that_arrives_late_runs_against_the_records() {
    let mut cohort = settled();
    for at in [40, 80] {
        cohort[0].evaluations.push(evaluation(at, 1.5));
    }
    cohort.extend([at_marks(&[2.75]), at_marks(&[2.75, 2.75]), at_marks(&[2.0, 2.0])]);
    assert_eq!(stays(&doubling(), &cohort), [0, 4, 6]);
}

#[test]
fn nobody_is_cut_without_an_untrained_loss_to_compare_with_or_while_none_is_better() {
    let mut unknown = settled();
    for curve in &mut unknown {
        curve.evaluations.remove(0);
    }
    assert_eq!(stays(&doubling(), &unknown), [0, 1, 2, 3]);
    // One job's is enough.
    unknown[2].evaluations.insert(0, evaluation(0, 3.0));
    assert_eq!(stays(&doubling(), &unknown), [0]);
    let worse = [3.0, 3.5, 9.0].map(|loss| at_marks(&[loss, loss]));
    assert_eq!(stays(&doubling(), &worse), [0, 1, 2]);
}

#[test]
fn losses_that_are_not_finite_are_passed_over() {
    let (nan, inf) = (f64::NAN, f64::INFINITY);
    let mut cohort = settled();
    cohort.extend([at_marks(&[nan, inf]), at_marks(&[2.0, nan])]);
    assert_eq!(stays(&doubling(), &cohort), [0, 5], "the last has the lead, too");
    let Verdict::Exit(Reason::Outpaced { gap, place, .. }) = doubling().judge(4, &cohort) else {
        panic!("it has learned nothing")
    };
    assert_eq!((gap, place), (4.0, 6));
    let none = [nan, inf, -inf].map(|loss| at_marks(&[loss, loss]));
    assert_eq!(stays(&doubling(), &none), [0, 1, 2]);
}

#[test]
fn one_job_and_equal_losses_and_no_evaluations_stay() {
    assert_eq!(stays(&doubling(), &settled()[..1]), [0]);
    assert_eq!(stays(&doubling(), &vec![at_marks(&[2.0, 2.0]); 5]), [0, 1, 2, 3, 4]);
    assert_eq!(stays(&doubling(), &vec![Curve::default(); 2]), [0, 1]);
}

#[test]
fn a_mark_that_few_were_evaluated_for_is_passed_over() {
    // Of four, only two and then only one have an evaluation between 0.1 and 0.2: the others' one at 0.2 is that at 0.1.
    let sparse = |loss: f64| Curve { evaluations: vec![evaluation(0, 3.0), evaluation(20, loss)], ..Curve::default() };
    let dense = |loss: f64| at_marks(&[loss, loss]);
    assert_eq!(stays(&doubling(), &[dense(2.0), dense(2.5), sparse(2.5), sparse(3.0)]), [0, 2, 3]);
    let mut cohort = vec![dense(2.0), dense(2.5), sparse(2.5), sparse(3.0), sparse(2.75)];
    assert_eq!(stays(&doubling(), &cohort), [0, 1, 2, 3, 4]);
    // At 0.4 they are compared with what they were at 0.1.
    for curve in &mut cohort {
        let loss = curve.evaluations[1].loss;
        curve.evaluations.push(evaluation(40, loss));
    }
    assert_eq!(stays(&doubling(), &cohort), [0]);
}

/// Runs that are evaluated each twentieth of the budget to its end: some fall, some stand, noisy or not.
fn runs() -> impl Strategy<Value = Vec<Curve>> {
    let run = (0.1..3.0, 0.0..3.0, prop_oneof![Just(0.0), Just(0.01), Just(0.3)], vec(-1.0..1.0, 20), 0..12);
    let curve = |(end, fall, noise, noises, broken): (f64, f64, f64, Vec<f64>, i32)| {
        let loss = |(at, wobble): (i32, f64)| match at == broken {
            true => f64::NAN,
            false => end + fall * f64::exp(-0.3 * f64::from(at)) + noise * wobble,
        };
        let losses = (1..).zip(noises).map(loss);
        let evaluations = (1..).map(|twentieth| 5 * twentieth).zip(losses).map(|(step, loss)| evaluation(step, loss));
        Curve { evaluations: [evaluation(0, 3.0)].into_iter().chain(evaluations).collect(), ..Curve::default() }
    };
    vec(run.prop_map(curve), 1..12)
}

fn settings() -> impl Strategy<Value = AdaptiveRung> {
    let (first, ratio) =
        (prop_oneof![Just(0.05), Just(0.1), Just(0.02)], prop_oneof![Just(1.25), Just(1.6), Just(2.0)]);
    (first, ratio, prop_oneof![Just(0.01), Just(0.1), Just(0.45)], prop_oneof![Just(0.3), Just(1.0)])
        .prop_map(|(first, ratio, risk, caution)| AdaptiveRung { first, ratio, risk, caution })
}

/// The curve as it was at the mark.
fn until(mark: f64, run: &Curve) -> Curve {
    let reached = run.evaluations.iter().position(|at| at.step > 0 && at.progress >= mark).expect("a run to the end");
    prefix(run, reached + 1)
}

/// What the policy says as the runs go from mark to mark; whom it cuts stays where it is.
fn played(policy: &AdaptiveRung, runs: &[Curve]) -> Vec<Option<Reason>> {
    let mut cohort = vec![Curve::default(); runs.len()];
    let mut cuts: Vec<Option<Reason>> = vec![None; runs.len()];
    for mark in policy.rungs(0) {
        let running: Vec<usize> = (0..runs.len()).filter(|&job| cuts[job].is_none()).collect();
        for &job in &running {
            cohort[job] = until(mark, &runs[job]);
        }
        for (&job, verdict) in running.iter().zip(policy.judge_all(&running, &cohort)) {
            if let Verdict::Exit(reason) = verdict {
                cuts[job] = Some(reason);
            }
        }
    }
    cuts
}

/// The rules as a trainer with a memory would keep them: what was spent, and who was where at the last check.
fn remembered(policy: &AdaptiveRung, runs: &[Curve]) -> Vec<Option<Reason>> {
    let marks = policy.rungs(0);
    let mut known = vec![Curve::default(); runs.len()];
    let mut cuts: Vec<Option<Reason>> = vec![None; runs.len()];
    let (mut spent, mut last) = (0.0, None);
    for (check, &mark) in marks.iter().enumerate() {
        let mut running: Vec<usize> = (0..runs.len()).filter(|&job| cuts[job].is_none()).collect();
        for &job in &running {
            known[job] = until(mark, &runs[job]);
        }
        let best: Vec<f64> = known.iter().map(|curve| curve.best().map_or(f64::INFINITY, |best| best.loss)).collect();
        let lead = best.iter().copied().fold(f64::INFINITY, f64::min);
        if lead >= 3.0 {
            continue;
        }
        let gaps: Vec<f64> = best.iter().map(|best| ((best - lead) / (3.0 - lead)).min(4.0)).collect();
        let steps: Vec<u64> = known.iter().map(|curve| curve.evaluations.last().expect("some").step).collect();
        let Some((last_mark, last_steps, last_gaps)) = last.clone() else {
            last = Some((mark, steps, gaps));
            continue;
        };
        let present = running.len();
        running.retain(|&job| steps[job] != last_steps[job]);
        if running.len() < 2 || 2 * running.len() < present {
            continue;
        }
        let noises = running.iter().filter_map(|&job| {
            let losses: Vec<f64> = known[job].trained().map(|at| at.loss).collect();
            let bends = losses[losses.len().saturating_sub(5)..].windows(3).map(|w| (w[1] - (w[0] + w[2]) / 2.0).abs());
            middle(bends.filter(|bend| bend.is_finite()).collect()).map(|bend| 1.4826 * bend / 1.5_f64.sqrt())
        });
        let noise = middle(noises.collect()).unwrap_or(0.0) / (3.0 - lead);
        let gain = |job: usize| (last_gaps[job] - gaps[job]).max(0.0);
        let mean = running.iter().map(|&job| gain(job).powi(2)).sum::<f64>() / running.len() as f64;
        let r = (1.0 / mark).ln() / (mark / last_mark).ln();
        let chance = |job: usize| {
            let s = (gain(job).powi(2) + mean + noise.powi(2) + 0.001_f64.powi(2)).sqrt();
            Normal::standard().sf((gaps[job] - r * gain(job)) / (policy.caution * r.sqrt() * s))
        };
        let mut order: Vec<(f64, usize)> = running.iter().map(|&job| (chance(job), job)).collect();
        order.sort_by(|a, b| a.0.total_cmp(&b.0).then(best[b.1].total_cmp(&best[a.1])));
        let share = policy.risk * check as f64 / (marks.len() - 1) as f64;
        let mut out = vec![];
        while out.len() + 1 < present && out.len() < order.len() && spent + order[out.len()].0 <= share {
            spent += order[out.len()].0;
            out.push(order[out.len()]);
        }
        for (chance, job) in out {
            let place = 1 + running.iter().filter(|&&other| gaps[other] < gaps[job]).count();
            let (step, of, gap, risk) = (steps[job], running.len(), gaps[job], policy.risk);
            cuts[job] = Some(Reason::Outpaced { step, mark, place, of, gap, chance, spent, risk, stability: None });
        }
        last = Some((mark, steps, gaps));
    }
    cuts
}

fn middle(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let n = values.len();
    (n > 0).then(|| (values[(n - 1) / 2] + values[n / 2]) / 2.0)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn it_cuts_whom_a_trainer_with_a_memory_would(policy in settings(), runs in runs()) {
        for (job, cuts) in played(&policy, &runs).into_iter().zip(remembered(&policy, &runs)).enumerate() {
            match cuts {
                (None, None) => {}
                (
                    Some(Reason::Outpaced { step, mark, place, of, gap, chance, spent, risk, .. }),
                    Some(Reason::Outpaced { step: s, mark: m, place: p, of: o, gap: g, chance: c, spent: sp, risk: r, .. }),
                ) => {
                    prop_assert_eq!((step, mark, place, of, gap, risk), (s, m, p, o, g, r), "job {}", job);
                    prop_assert!((chance - c).abs() <= 1e-9 && (spent - sp).abs() <= 1e-9, "job {}: {} {}", job, chance, c);
                }
                (found, expected) => prop_assert!(false, "job {job}: {found:?}, but expected {expected:?}"),
            }
        }
    }

    #[test]
    fn what_is_spent_is_the_sum_of_the_chances_and_within_the_risk(policy in settings(), runs in runs()) {
        let marks = policy.rungs(0);
        let cuts: Vec<Reason> = played(&policy, &runs).into_iter().flatten().collect();
        let mut sum = 0.0;
        for (check, &at) in marks.iter().enumerate() {
            let here = |reason: &&Reason| matches!(reason, Reason::Outpaced { mark, .. } if *mark == at);
            let cuts: Vec<&Reason> = cuts.iter().filter(here).collect();
            sum += cuts.iter().map(|cut| if let Reason::Outpaced { chance, .. } = cut { *chance } else { 0.0 }).sum::<f64>();
            for cut in cuts {
                let Reason::Outpaced { spent, risk, .. } = cut else { continue };
                prop_assert!((spent - sum).abs() < 1e-12, "{spent} is not {sum}");
                prop_assert!(*spent <= *risk && *spent <= risk * check as f64 / (marks.len() - 1) as f64 + 1e-15);
            }
        }
    }

    #[test]
    fn the_order_of_the_jobs_changes_no_bit_of_a_reason(
        policy in settings(),
        (runs, order) in runs().prop_flat_map(|runs| {
            let order: Vec<usize> = (0..runs.len()).collect();
            (Just(runs), Just(order).prop_shuffle())
        }),
    ) {
        let permuted: Vec<Curve> = order.iter().map(|&job| runs[job].clone()).collect();
        let cuts = played(&policy, &runs);
        let expected: Vec<Option<Reason>> = order.iter().map(|&job| cuts[job].clone()).collect();
        prop_assert_eq!(played(&policy, &permuted), expected);
    }

    #[test]
    fn the_leader_and_the_last_are_never_cut(policy in settings(), runs in runs()) {
        let cuts = played(&policy, &runs);
        prop_assert!(cuts.iter().any(Option::is_none));
        for reason in cuts.into_iter().flatten() {
            let Reason::Outpaced { gap, place, chance, .. } = reason else { continue };
            prop_assert!(gap > 0.0 && place > 1 && chance < 0.5);
        }
    }
}
