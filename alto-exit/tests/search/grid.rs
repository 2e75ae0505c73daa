use alto_exit::search::{Domain, Grid, Parameter, Space};

use crate::trials::{finished, history, next, point};

fn grid() -> Grid {
    let parameters = vec![
        Parameter::new("decay", Domain::Choice(vec!["constant".into(), "linear".into()])),
        Parameter::new("warmup", Domain::Integer { low: 1, high: 2, log: true }).when("decay", vec!["linear".into()]),
        Parameter::new("stabilized", Domain::Fixed(false.into())),
        Parameter::new("rank", Domain::Choice(vec![16.into(), 8.into()])),
    ];
    Grid::new(Space::new(parameters).expect("a right space")).expect("a grid")
}

#[test]
fn it_names_every_combination_once_in_order_and_then_no_more() {
    let found: Vec<String> = history(&grid(), 100, |_| 1.0).iter().map(|(point, _)| point.to_string()).collect();
    assert_eq!(
        found,
        [
            "decay = constant, rank = 16, stabilized = false",
            "decay = constant, rank = 8, stabilized = false",
            "decay = linear, rank = 16, stabilized = false, warmup = 1",
            "decay = linear, rank = 8, stabilized = false, warmup = 1",
            "decay = linear, rank = 16, stabilized = false, warmup = 2",
            "decay = linear, rank = 8, stabilized = false, warmup = 2",
        ]
    );
    assert_eq!(grid().points().map(|point| point.to_string()).collect::<Vec<_>>(), found);
}

#[test]
fn it_fills_the_holes_of_a_history_in_any_order() {
    let points: Vec<_> = grid().points().collect();
    let tried = |indices: &[usize]| indices.iter().map(|&i| (points[i].clone(), finished(1.0))).collect::<Vec<_>>();
    assert_eq!(next(&grid(), &tried(&[3, 0, 1])).as_ref(), Some(&points[2]));
    assert_eq!(next(&grid(), &tried(&[1, 0, 3, 2])).as_ref(), Some(&points[4]));
    assert_eq!(next(&grid(), &tried(&[5, 4, 3, 2, 1, 0])), None);
    let foreign = vec![(point([("other", 1.into())]), finished(1.0))];
    assert_eq!(next(&grid(), &foreign).as_ref(), Some(&points[0]));
}

#[test]
fn nothing_to_set_is_one_combination_and_a_huge_range_is_gone_through_as_far_as_asked() {
    let nothing = Grid::new(Space::default()).expect("a grid");
    assert_eq!(history(&nothing, 100, |_| 1.0).len(), 1);
    let huge = Parameter::new("x", Domain::Integer { low: i64::MIN, high: i64::MAX, log: false });
    let huge = Grid::new(Space::new(vec![huge]).expect("a right space")).expect("a grid");
    let found: Vec<_> = history(&huge, 3, |_| 1.0).iter().filter_map(|(point, _)| point.integer("x")).collect();
    assert_eq!(found, [i64::MIN, i64::MIN + 1, i64::MIN + 2]);
}
