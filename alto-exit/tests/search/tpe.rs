use alto_exit::search::{Domain, Parameter, Point, Random, Search, Space, Tpe};
use alto_exit::{Curve, End, Reason};

use crate::trials::{finished, history, mixed, next, point, reached};

const SEEDS: u64 = 40;

fn uniform(names: &[&str], low: f64, high: f64) -> Space {
    let parameters = names.iter().map(|name| Parameter::new(name, Domain::Uniform { low, high })).collect();
    Space::new(parameters).expect("a right space")
}

fn number(point: &Point, name: &str) -> f64 {
    point.number(name).expect("it is present")
}

/// Of so many seeds, how often the estimator's best of `count` points is lower than that of as many random ones, and how
/// the middle of its bests compares.
fn duel(space: &Space, count: usize, loss: &dyn Fn(&Point) -> f64) -> (usize, [f64; 2]) {
    let best = |search: &dyn Search| {
        let losses = history(search, count, loss).into_iter().map(|(point, _)| loss(&point));
        losses.fold(f64::INFINITY, f64::min)
    };
    let mut bests: Vec<[f64; 2]> = (0..SEEDS)
        .map(|seed| [best(&Tpe::new(space.clone(), seed)), best(&Random { space: space.clone(), seed: seed + 1000 })])
        .collect();
    let won = bests.iter().filter(|[tpe, random]| tpe < random).count();
    let mut middle = |of: usize| {
        bests.sort_by(|a, b| a[of].total_cmp(&b[of]));
        bests[SEEDS as usize / 2][of]
    };
    (won, [middle(0), middle(1)])
}

#[test]
fn it_finds_lower_minima_than_random_points_do() {
    let log = Parameter::new("x", Domain::LogUniform { low: 1e-6, high: 1.0 });
    let narrow = Space::new(vec![log]).expect("a right space");
    type Function = (&'static str, Space, fn(&Point) -> f64);
    let functions: [Function; 4] = [
        ("a parabola of the logarithm", narrow, |point| (number(point, "x").log10() + 2.5).powi(2)),
        ("a bowl in three dimensions", uniform(&["x", "y", "z"], -5.0, 5.0), |point| {
            ["x", "y", "z"].iter().map(|name| (number(point, name) - 1.0).powi(2)).sum()
        }),
        ("Branin's function", uniform(&["x", "y"], 0.0, 1.0), |point| {
            let (x, y) = (15.0 * number(point, "x") - 5.0, 15.0 * number(point, "y"));
            let pi = std::f64::consts::PI;
            let bent = y - 5.1 / (4.0 * pi * pi) * x * x + 5.0 / pi * x - 6.0;
            bent * bent + 10.0 * (1.0 - 1.0 / (8.0 * pi)) * x.cos() + 10.0
        }),
        ("a sweep of jobs", mixed(), |point| {
            let decay = match point.text("decay") {
                Some("constant") => 0.3,
                _ => 0.1 * (point.integer("warmup").unwrap_or(0) - 1).abs() as f64,
            };
            let rank = (number(point, "rank").log2() - 5.0).powi(2) / 25.0;
            (number(point, "rate").log10() + 3.0).powi(2) + decay + rank
        }),
    ];
    for (name, space, loss) in functions {
        let (won, [tpe, random]) = duel(&space, 60, &loss);
        println!("{name}: better with {won} of {SEEDS} seeds, median {tpe:.4} against {random:.4}");
        // A search that is no better wins so often with a chance under 1% (binomial).
        assert!(won >= 28 && tpe < random, "{name}: won {won} of {SEEDS}, median {tpe} against {random}");
    }
}

#[test]
fn the_first_points_are_those_of_random_search() {
    let (tpe, random) = (Tpe::new(mixed(), 5), Random { space: mixed(), seed: 5 });
    let (found, expected) = (history(&tpe, 12, |_| 1.0), history(&random, 12, |_| 1.0));
    assert_eq!(found[..10], expected[..10]);
    assert_ne!(found[10..], expected[10..]);
}

#[test]
fn the_order_of_a_history_without_equal_losses_doesnt_matter() {
    let search = Tpe::new(mixed(), 1);
    let mut tried = history(&Random { space: mixed(), seed: 9 }, 40, |point| number(point, "rate"));
    let expected = next(&search, &tried);
    for turn in [1, 7, 20] {
        tried.rotate_left(turn);
        assert_eq!(next(&search, &tried), expected);
    }
    tried.reverse();
    assert_eq!(next(&search, &tried), expected);
}

/// Points on a line from 0 to 1, of which those near 0.2 are good.
fn around_a_fifth() -> (Tpe, Vec<(Point, Curve)>) {
    let space = uniform(&["x"], 0.0, 1.0);
    let at = |i: i32| {
        let x = f64::from(i) / 40.0;
        (point([("x", x.into())]), finished((x - 0.2).abs()))
    };
    (Tpe::new(space, 0), (0..=40).map(at).collect())
}

#[test]
fn jobs_that_run_keep_the_next_from_asking_for_the_same() {
    let (search, mut tried) = around_a_fifth();
    let distance = |from: f64, point: &Point| (number(point, "x") - from).abs();
    let seeds = |tried: &[(Point, Curve)], from: f64| -> f64 {
        let each = (0..20).map(|seed| {
            let point = next(&Tpe { seed, ..search.clone() }, tried).expect("it never runs out");
            distance(from, &point)
        });
        each.sum::<f64>() / 20.0
    };
    let alone = seeds(&tried, 0.2);
    assert!(alone < 0.05, "{alone}");
    // Twenty jobs run where the good ones are, and nothing is known of them.
    tried.extend((0..20).map(|i| (point([("x", (0.19 + 0.001 * f64::from(i)).into())]), Curve::default())));
    let crowded = seeds(&tried, 0.2);
    assert!(crowded > 2.0 * alone, "{crowded} against {alone}");
}

#[test]
fn an_exit_counts_with_the_best_that_it_had() {
    let (search, mut tried) = around_a_fifth();
    let reason = Reason::Custom { policy: "overfitting".into(), numbers: Default::default() };
    // Around 0.9, jobs were soon better than all others, then got worse and were ended.
    for i in 0..12 {
        let mut curve = reached(0.1, -1.0);
        curve.evaluations.extend(reached(0.2, 9.0).evaluations);
        curve.end = Some(End::Exited(reason.clone()));
        tried.push((point([("x", (0.89 + 0.002 * f64::from(i)).into())]), curve));
    }
    for seed in 0..10 {
        let found = next(&Tpe { seed, ..search.clone() }, &tried).expect("it never runs out");
        assert!((number(&found, "x") - 0.9).abs() < 0.1, "{found}");
    }
}

#[test]
fn losses_that_are_not_finite_are_never_good() {
    let (search, mut tried) = around_a_fifth();
    for (i, loss) in [f64::NAN, f64::NEG_INFINITY, f64::INFINITY].into_iter().cycle().take(30).enumerate() {
        tried.push((point([("x", (0.7 + 0.005 * i as f64).into())]), finished(loss)));
    }
    for seed in 0..10 {
        let found = next(&Tpe { seed, ..search.clone() }, &tried).expect("it never runs out");
        assert!((number(&found, "x") - 0.2).abs() < 0.2, "{found}");
    }
    // Nothing but such: as if at random.
    let lost: Vec<_> = tried.into_iter().map(|(point, _)| (point, finished(f64::NAN))).collect();
    let random = Random { space: search.space.clone(), seed: search.seed };
    assert_eq!(next(&search, &lost), next(&random, &lost));
}

#[test]
fn equal_losses_and_single_values_are_no_trouble() {
    let single = Space::new(vec![
        Parameter::new("choice", Domain::Choice(vec![8.into()])),
        Parameter::new("whole", Domain::Integer { low: 3, high: 3, log: true }),
        Parameter::new("real", Domain::LogUniform { low: 0.5, high: 0.5 }),
    ]);
    let single = single.expect("a right space");
    let only = point([("choice", 8.into()), ("whole", 3.into()), ("real", 0.5.into())]);
    assert!(history(&Tpe::new(single, 0), 40, |_| 1.0).iter().all(|(point, _)| *point == only));
    let nothing = history(&Tpe::new(Space::default(), 0), 40, |_| 1.0);
    assert!(nothing.len() == 40 && nothing.iter().all(|(point, _)| point.0.is_empty()));
    let space = mixed();
    assert!(history(&Tpe::new(space.clone(), 0), 60, |_| 1.0).iter().all(|(point, _)| space.contains(point)));
}

#[test]
fn what_was_tried_is_not_tried_again_while_there_is_anything_else() {
    let parameters = vec![
        Parameter::new("a", Domain::Integer { low: 1, high: 5, log: false }),
        Parameter::new("b", Domain::Choice(vec![1.into(), 2.into(), 3.into(), 4.into()])),
    ];
    let space = Space::new(parameters).expect("a right space");
    let loss = |point: &Point| number(point, "a") + number(point, "b");
    let mut tried = history(&Random { space: space.clone(), seed: 0 }, 12, loss);
    tried.sort_by(|a, b| a.0.cmp(&b.0));
    tried.dedup_by(|a, b| a.0 == b.0);
    let search = Tpe { startup: 1, ..Tpe::new(space, 0) };
    while tried.len() < 18 {
        let found = next(&search, &tried).expect("it never runs out");
        assert!(tried.iter().all(|(point, _)| *point != found), "{found} again, of {} tried", tried.len());
        let curve = finished(loss(&found));
        tried.push((found, curve));
    }
}
