use alto_exit::search::{Domain, Parameter, Point, Random, Search, Space};

use crate::trials::{finished, history, mixed, next, reached};

#[test]
fn a_point_follows_from_the_seed_and_its_number_alone() {
    let search = Random { space: mixed(), seed: 3 };
    let points: Vec<Point> = history(&search, 20, |_| 1.0).into_iter().map(|(point, _)| point).collect();
    for (count, expected) in points.iter().enumerate() {
        let other: Vec<_> = (0..count).map(|_| (Point::default(), reached(0.5, f64::NAN))).collect();
        assert_eq!(next(&search, &other).as_ref(), Some(expected));
    }
    let elsewhere = Random { space: mixed(), seed: 4 };
    assert!(history(&elsewhere, 20, |_| 1.0).iter().zip(&points).all(|((point, _), other)| point != other));
}

#[test]
fn values_are_spread_as_their_domains_say() {
    let parameters = vec![
        Parameter::new("log", Domain::LogUniform { low: 1e-4, high: 1.0 }),
        Parameter::new("line", Domain::Uniform { low: -1.0, high: 3.0 }),
        Parameter::new("whole", Domain::Integer { low: 1, high: 4, log: false }),
        Parameter::new("doubling", Domain::Integer { low: 1, high: 7, log: true }),
        Parameter::new("choice", Domain::Choice(vec!["a".into(), "b".into(), "c".into()])),
    ];
    let search = Random { space: Space::new(parameters).expect("a right space"), seed: 0 };
    let count = 1500;
    let trial = (Point::default(), finished(1.0));
    let histories = vec![trial; count];
    let points: Vec<Point> = (0..count).filter_map(|i| next(&search, &histories[..i])).collect();
    let share =
        |holds: &dyn Fn(&Point) -> bool| points.iter().filter(|point| holds(point)).count() as f64 / count as f64;
    // Five standard deviations of a share of so many.
    let near = |found: f64, expected: f64| (found - expected).abs() < 5.0 * (0.25 / count as f64).sqrt();
    for decade in 0..4 {
        let low = 10_f64.powi(decade - 4);
        let found = share(&|point| point.number("log").is_some_and(|x| x >= low && x < 10.0 * low));
        assert!(near(found, 0.25), "decade {decade}: {found}");
    }
    assert!(near(share(&|point| point.number("line").is_some_and(|x| x < 0.0)), 0.25));
    for whole in 1..=4 {
        assert!(near(share(&|point| point.integer("whole") == Some(whole)), 0.25), "{whole}");
        // Of ln 0.5 to ln 7.5, what is rounded to it.
        let width = (whole as f64 + 0.5).ln() - (whole as f64 - 0.5).ln();
        let found = share(&|point| point.integer("doubling") == Some(whole));
        assert!(near(found, width / 15_f64.ln()), "{whole}: {found}");
    }
    assert!(near(share(&|point| point.text("choice") == Some("b")), 1.0 / 3.0));
}

#[test]
fn the_ends_of_the_widest_ranges_are_no_trouble() {
    let widest = [
        Domain::Uniform { low: f64::MIN, high: f64::MAX },
        Domain::LogUniform { low: f64::from_bits(1), high: f64::MAX },
        Domain::Integer { low: i64::MIN, high: i64::MAX, log: false },
        Domain::Integer { low: 1, high: i64::MAX, log: true },
        Domain::Integer { low: i64::MAX, high: i64::MAX, log: false },
        Domain::Uniform { low: 0.0, high: 0.0 },
    ];
    for domain in widest {
        let space = Space::new(vec![Parameter::new("x", domain)]).expect("a right space");
        let searches: [&dyn Search; 2] =
            [&Random { space: space.clone(), seed: 0 }, &alto_exit::search::Tpe::new(space.clone(), 0)];
        for search in searches {
            let points = history(search, 60, |point| point.number("x").unwrap_or(0.0).abs());
            assert!(points.len() == 60 && points.iter().all(|(point, _)| space.contains(point)), "{space:?}");
        }
    }
}
