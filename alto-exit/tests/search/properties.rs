use alto_exit::search::{Condition, Domain, Grid, Parameter, Point, Random, Search, Space, Tpe, Trial, Value};
use alto_exit::{Curve, End, EvaluationPoint};
use proptest::collection::vec;
use proptest::num::f64::ANY;
use proptest::prelude::*;

use crate::trials::{history, next};

fn any_value() -> impl Strategy<Value = Value> {
    prop_oneof![
        any::<bool>().prop_map(Value::from),
        (0_i64..6).prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        ANY.prop_map(Value::from),
        "[ab]".prop_map(Value::Text),
    ]
}

fn any_domain() -> impl Strategy<Value = Domain> {
    let real = || prop_oneof![-2.0..2.0, ANY];
    let whole = || prop_oneof![0_i64..6, any::<i64>()];
    prop_oneof![
        (real(), real()).prop_map(|(low, high)| Domain::Uniform { low, high }),
        (real(), real()).prop_map(|(low, high)| Domain::LogUniform { low, high }),
        (whole(), whole(), any::<bool>()).prop_map(|(low, high, log)| Domain::Integer { low, high, log }),
        vec(any_value(), 0..4).prop_map(Domain::Choice),
        any_value().prop_map(Domain::Fixed),
    ]
}

/// Whatever of random parameters makes a space; about half of them depend on an earlier one where one can.
fn any_space() -> impl Strategy<Value = Space> {
    let parameter = ("[a-f]", any_domain(), prop::option::of((any::<prop::sample::Index>(), 0_usize..4)));
    vec(parameter, 0..8).prop_map(|drawn| {
        let mut right: Vec<Parameter> = vec![];
        for (name, domain, when) in drawn {
            let mut parameter = Parameter::new(&name, domain);
            if let Some((on, skipped)) = when.filter(|_| !right.is_empty()) {
                let on = on.get(&right);
                let is = values(&on.domain).into_iter().skip(skipped).take(2).collect();
                parameter = parameter.when(&on.name, is);
            }
            right.push(parameter);
            if Space::new(right.clone()).is_err() {
                right.pop();
            }
        }
        Space::new(right).expect("right parameters")
    })
}

/// Some that a condition can name.
fn values(domain: &Domain) -> Vec<Value> {
    match domain {
        Domain::Integer { low, high, .. } => {
            (0..4).map(|more| low.saturating_add(more)).filter(|whole| whole <= high).map(Value::from).collect()
        }
        Domain::Choice(values) => values.clone(),
        Domain::Fixed(value) => vec![value.clone()],
        _ => vec![],
    }
}

/// Whatever fits the types, in any order, of any parameters.
fn any_trial() -> impl Strategy<Value = (Point, Curve)> {
    let values = prop::collection::btree_map("[a-g]", any_value(), 0..6);
    let evaluation = (0_u64..40, ANY, prop_oneof![0.0..2.0, ANY]).prop_map(|(step, progress, loss)| EvaluationPoint {
        step,
        progress,
        loss,
    });
    let end = prop_oneof![Just(None), Just(Some(End::Finished))];
    (values, vec(evaluation, 0..4), end)
        .prop_map(|(values, evaluations, end)| (Point(values), Curve { evaluations, end, ..Curve::default() }))
}

/// Whether exactly those parameters are there whose conditions hold, worked out apart from the library.
fn has_what_is_present(space: &Space, point: &Point) -> bool {
    space.parameters().iter().all(|parameter| {
        let holds = parameter.when.as_ref().is_none_or(|Condition { parameter, is }| {
            point.0.get(parameter).is_some_and(|value| is.iter().any(|wanted| wanted == value))
        });
        holds == point.0.contains_key(&parameter.name)
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn points_lie_in_the_space_and_have_what_is_present(space in any_space(), seed: u64, losses in vec(ANY, 20)) {
        let tpe = Tpe { startup: 4, ..Tpe::new(space.clone(), seed) };
        let random = Random { space: space.clone(), seed };
        let mut searches: Vec<&dyn Search> = vec![&tpe, &random];
        let grid = Grid::new(space.clone());
        searches.extend(grid.as_ref().ok().map(|grid| grid as &dyn Search));
        for search in searches {
            let loss = |point: &Point| losses[point.to_string().len() % losses.len()];
            // Losses that are not finite are never equal, so the points alone are compared.
            let points = || -> Vec<Point> { history(search, 20, loss).into_iter().map(|(point, _)| point).collect() };
            for point in points() {
                prop_assert!(space.contains(&point), "{point} of {space:?}");
                prop_assert!(has_what_is_present(&space, &point), "{point} of {space:?}");
            }
            prop_assert_eq!(points(), points(), "the same seed, other points");
        }
    }

    #[test]
    fn no_history_makes_a_search_panic_or_leave_its_space(
        space in any_space(),
        seed: u64,
        tried in vec(any_trial(), 0..40),
        (startup, gamma, candidates) in (0_usize..8, ANY, 0_usize..4),
    ) {
        let searches: [&dyn Search; 3] = [
            &Tpe { space: space.clone(), seed, startup, gamma, candidates },
            &Tpe { startup: 0, ..Tpe::new(space.clone(), seed) },
            &Random { space: space.clone(), seed },
        ];
        for search in searches {
            let found = next(search, &tried).expect("it never runs out");
            prop_assert!(space.contains(&found), "{found} of {space:?}");
        }
        if let Ok(grid) = Grid::new(space) {
            let trials: Vec<Trial> = tried.iter().map(|(point, curve)| Trial { point, curve }).collect();
            let found = grid.next(&trials);
            prop_assert!(found.is_none_or(|point| grid.space().contains(&point)));
        }
    }
}
