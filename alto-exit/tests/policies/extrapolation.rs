use alto_exit::{Curve, ExitPolicy, Extrapolation, Reason, Verdict};

use crate::curves::{evaluation, exits};

/// `a + b * t^-c` at each hundredth up to `until`, with a ripple of this height.
fn law(a: f64, b: f64, c: f64, ripple: f64, until: u64) -> Curve {
    let loss = |step: u64| {
        let sign = if step.is_multiple_of(2) { 1.0 } else { -1.0 };
        a + b * (step as f64 / 100.0).powf(-c) + sign * ripple
    };
    Curve { evaluations: (1..=until).map(|step| evaluation(step, loss(step))).collect(), ..Curve::default() }
}

/// A job that has reached this loss.
fn leader(loss: f64) -> Curve {
    Curve { evaluations: vec![evaluation(50, loss)], ..Curve::default() }
}

fn outlook(curve: &Curve, target: f64) -> Option<(f64, f64)> {
    // A bound that every chance but a certain one is under.
    let policy = Extrapolation { bound: 1.0 - 1e-12, evaluations: 4 };
    match policy.judge(0, &[curve.clone(), leader(target)]) {
        Verdict::Exit(Reason::Extrapolation { expected, chance, .. }) => Some((expected, chance)),
        _ => None,
    }
}

#[test]
fn a_curve_of_the_family_is_drawn_out_to_its_end() {
    for (a, b, c) in [(1.0, 0.5, 0.5), (2.0, 0.25, 1.0), (-1.0, 0.75, 0.25), (0.5, 0.125, 1.75)] {
        let (expected, chance) = outlook(&law(a, b, c, 0.0, 30), a + b - 1e-5).expect("just out of reach");
        assert!((expected - a - b).abs() < 1e-8, "{expected}, not {}", a + b);
        assert!(chance < 1e-2, "{chance}");
        assert_eq!(outlook(&law(a, b, c, 0.0, 30), a + b + 1e-5), None, "in reach for certain");
    }
}

#[test]
fn an_exponent_between_two_of_the_grid_is_drawn_out_as_well() {
    for c in [0.3, 0.6, 1.1, 2.4] {
        let mut curve = law(1.0, 0.5, c, 1e-4, 40);
        curve.evaluations.drain(..9);
        let (expected, _) = outlook(&curve, 1.45).expect("out of reach");
        let way = 0.5 * 0.4_f64.powf(-c) - 0.5;
        assert!((expected - 1.5).abs() < 0.03 * way, "{expected} for an exponent of {c}, {way} from the end");
    }
}

#[test]
fn the_chance_is_even_at_the_expected_loss_and_falls_with_the_target() {
    let curve = law(1.0, 0.25, 0.5, 0.01, 40);
    let (expected, _) = outlook(&curve, 1.0).expect("out of reach");
    let chances: Vec<f64> =
        [0.1, 0.05, 0.02, 0.0].map(|under| outlook(&curve, expected - under).expect("uncertain").1).to_vec();
    assert!(chances.is_sorted() && chances[0] < 1e-3, "{chances:?}");
    assert!((chances[3] - 0.5).abs() < 0.1, "{chances:?}");
}

#[test]
fn noise_makes_it_less_certain() {
    let chance = |ripple| outlook(&law(1.0, 0.25, 0.5, ripple, 20), 1.2).expect("out of reach").1;
    assert!(chance(0.001) < 0.5 * chance(0.02), "{} and {}", chance(0.001), chance(0.02));
    assert!(chance(0.02) < 0.5 * chance(0.1), "{} and {}", chance(0.02), chance(0.1));
}

#[test]
fn a_level_curve_has_the_students_t_chance_of_its_mean() {
    // Losses 1 and 3 in turn rise with the weights: no power law falls, so the mean is drawn out.
    let curve = Curve {
        evaluations: [(40, 1.0), (60, 1.0), (80, 3.0), (90, 3.0)].map(|(step, loss)| evaluation(step, loss)).to_vec(),
        ..Curve::default()
    };
    let weights = [4.0 / 9.0, 6.0 / 9.0, 8.0 / 9.0, 1.0];
    let sum: f64 = weights.iter().sum();
    let mean = (weights[0] + weights[1] + 3.0 * (weights[2] + weights[3])) / sum;
    let residual: f64 =
        weights.iter().zip([1.0, 1.0, 3.0, 3.0]).map(|(w, loss): (&f64, f64)| w * (loss - mean).powi(2)).sum();
    let scale = (residual / 2.0 * (1.0 + 1.0 / sum)).sqrt();
    let t = (0.5 - mean) / scale;
    // Student's t with two degrees of freedom has a closed form.
    let expected = 0.5 + t / (2.0 * (2.0 + t * t).sqrt());
    let (level, chance) = outlook(&curve, 0.5).expect("uncertain");
    assert!((level - mean).abs() < 1e-12, "{level}, not {mean}");
    assert!((chance - expected).abs() < 1e-9, "{chance}, not {expected}");
}

#[test]
fn a_hopeless_job_is_ended_and_a_falling_one_is_not() {
    let policy = Extrapolation::default();
    let (hopeless, falling) = (law(2.0, 0.1, 0.5, 0.001, 20), law(0.5, 0.5, 0.5, 0.001, 20));
    let cohort = [hopeless.clone(), falling, leader(1.5)];
    assert!(matches!(
        policy.judge(0, &cohort),
        Verdict::Exit(Reason::Extrapolation { step: 20, target: 1.5, bound: 0.05, evaluations: 20, chance, .. })
            if chance < 0.05
    ));
    // It is at 1.62 now, and expected to come to 1.
    assert_eq!(policy.judge(1, &cohort), Verdict::Keep);
    assert_eq!(policy.judge(2, &cohort), Verdict::Keep, "the best");
    let verdicts = |evaluations| {
        let so_far = Curve { evaluations: hopeless.evaluations[..evaluations].to_vec(), ..Curve::default() };
        policy.judge(0, &[so_far, leader(1.5)]) != Verdict::Keep
    };
    assert_eq!([9, 10].map(verdicts), [false, true]);
}

#[test]
fn whoever_holds_or_ties_with_the_lowest_loss_stays() {
    let flat = law(1.0, 0.0, 1.0, 0.0, 20);
    let policy = Extrapolation::default();
    assert_eq!(policy.judge_all(&[0, 1], &[flat.clone(), flat.clone()]), [Verdict::Keep, Verdict::Keep]);
    assert!(exits(&policy, &flat).iter().all(|&ends| !ends), "alone");
    assert_ne!(policy.judge(0, &[flat, leader(0.999)]), Verdict::Keep, "level and a hair above");
}

#[test]
fn losses_that_are_not_finite_are_left_out() {
    let policy = Extrapolation { evaluations: 10, ..Extrapolation::default() };
    let mut curve = law(2.0, 0.1, 0.5, 0.001, 11);
    for loss in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        curve.evaluations[4].loss = loss;
        assert!(matches!(
            policy.judge(0, &[curve.clone(), leader(1.5)]),
            Verdict::Exit(Reason::Extrapolation { evaluations: 10, .. })
        ));
    }
    curve.evaluations[5].loss = f64::NAN;
    assert_eq!(policy.judge(0, &[curve, leader(1.5)]), Verdict::Keep, "nine are left");
    let nowhere = Curve { evaluations: vec![evaluation(1, f64::NAN); 20], ..Curve::default() };
    assert_eq!(policy.judge(0, &[nowhere, leader(1.5)]), Verdict::Keep);
    assert_eq!(policy.judge(0, &[Curve::default(), leader(1.5)]), Verdict::Keep);
}

#[test]
fn many_evaluations_are_thinned_out_to_the_same_outlook() {
    let fine = |each: usize| Curve {
        evaluations: law(1.0, 0.5, 0.5, 0.0, 60).evaluations.into_iter().flat_map(|at| vec![at; each]).collect(),
        ..Curve::default()
    };
    let (sparse, dense) =
        (outlook(&fine(1), 1.4).expect("out of reach"), outlook(&fine(20), 1.4).expect("out of reach"));
    assert!((sparse.0 - dense.0).abs() < 1e-8, "{sparse:?} and {dense:?}");
}
