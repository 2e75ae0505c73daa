use alto_exit::search::{Domain, Grid, Parameter, Point, Random, Space, Tpe, Value};

use crate::trials::{mixed, point};

fn one(domain: Domain) -> Vec<Parameter> {
    vec![Parameter::new("x", domain)]
}

fn choice() -> Parameter {
    Parameter::new("a", Domain::Choice(vec![1.into(), 2.into()]))
}

fn dependent(on: &str, is: Vec<Value>) -> Parameter {
    Parameter::new("x", Domain::Fixed(0.into())).when(on, is)
}

#[test]
fn a_space_that_cant_be_searched_says_which_parameter_is_wrong_and_why() {
    let whole = |low, high, log| one(Domain::Integer { low, high, log });
    let real = Parameter::new("a", Domain::Uniform { low: 0.0, high: 1.0 });
    let refused: Vec<(Vec<Parameter>, &str)> = vec![
        (vec![choice(), choice()], "parameter a is given twice"),
        (
            one(Domain::Uniform { low: 2.0, high: 1.0 }),
            "parameter x: the range from 2 to 1 is empty, expected the lower end first",
        ),
        (one(Domain::LogUniform { low: f64::NAN, high: 1.0 }), "parameter x: NaN is not a finite number"),
        (one(Domain::Uniform { low: 0.0, high: f64::INFINITY }), "parameter x: inf is not a finite number"),
        (
            one(Domain::LogUniform { low: 0.0, high: 1.0 }),
            "parameter x: a logarithmic range starts over 0, but this one at 0",
        ),
        (whole(0, 8, true), "parameter x: a logarithmic range starts over 0, but this one at 0"),
        (whole(3, 2, false), "parameter x: the range from 3 to 2 is empty, expected the lower end first"),
        (one(Domain::Choice(vec![])), "parameter x has a list without values, expected at least one"),
        (one(Domain::Choice(vec![1.into(), 2.into(), 1.into()])), "parameter x has 1 twice"),
        (one(Domain::Fixed(f64::NAN.into())), "parameter x: NaN is not a finite number"),
        (vec![choice(), dependent("b", vec![1.into()])], "parameter x depends on b, which is none of the parameters"),
        (vec![dependent("a", vec![1.into()]), choice()], "parameter x depends on a, which must come before it"),
        (vec![dependent("x", vec![0.into()])], "parameter x depends on x, which must come before it"),
        (
            vec![
                Parameter::new("a", Domain::Fixed(0.into())).when("x", vec![0.into()]),
                dependent("a", vec![0.into()]),
            ],
            "parameter a depends on x, which must come before it",
        ),
        (vec![choice(), dependent("a", vec![3.into()])], "parameter x depends on a being 3, which it never is"),
        (vec![choice(), dependent("a", vec![1.0.into()])], "parameter x depends on a being 1, which it never is"),
        (vec![choice(), dependent("a", vec![])], "parameter x has a list without values, expected at least one"),
        (vec![choice(), dependent("a", vec![1.into(), 1.into()])], "parameter x has 1 twice"),
        (
            vec![real, dependent("a", vec![0.5.into()])],
            "parameter x depends on a, a range of real numbers, expected a choice or whole numbers",
        ),
    ];
    for (parameters, expected) in refused {
        let found = Space::new(parameters).map_err(|error| error.to_string());
        assert_eq!(found, Err(expected.to_owned()));
    }
}

#[test]
fn a_point_lies_in_the_space_if_it_has_what_is_present_and_nothing_else() {
    let space = mixed();
    let whole = point([
        ("rate", 1e-3.into()),
        ("decay", "linear".into()),
        ("warmup", 2.into()),
        ("start", 0.5.into()),
        ("rank", 8.into()),
        ("stabilized", true.into()),
    ]);
    assert!(space.contains(&whole));
    let with = |name: &str, value: Option<Value>| {
        let mut changed = whole.clone();
        match value {
            Some(value) => changed.0.insert(name.to_owned(), value),
            None => changed.0.remove(name),
        };
        space.contains(&changed)
    };
    assert!(with("rank", Some(256.into())) && !with("rank", Some(257.into())) && !with("rank", Some(8.0.into())));
    assert!(!with("decay", Some("constant".into())), "then warmup and start are absent");
    assert!(!with("warmup", Some(1.into())), "then start is absent");
    assert!(!with("start", None) && !with("rate", None) && !with("extra", Some(1.into())));
    assert!(!space.contains(&Point::default()) && Space::default().contains(&Point::default()));
}

#[test]
fn searches_and_points_come_from_files_and_go_to_them() {
    let space = mixed();
    let text = serde_json::to_string(&space).expect("a space has a text");
    assert_eq!(serde_json::from_str::<Space>(&text).expect("read back"), space);

    let tpe = Tpe { startup: 3, ..Tpe::new(space.clone(), 7) };
    let text = serde_json::to_string(&tpe).expect("a search has a text");
    assert_eq!(serde_json::from_str::<Tpe>(&text).expect("read back"), tpe);
    let random = Random { space, seed: 7 };
    let text = serde_json::to_string(&random).expect("a search has a text");
    assert_eq!(serde_json::from_str::<Random>(&text).expect("read back"), random);

    let values = point([("a", 1.into()), ("b", 1.0.into()), ("c", "1".into()), ("d", true.into())]);
    let text = serde_json::to_string(&values).expect("a point has a text");
    assert_eq!(text, r#"{"a":1,"b":1.0,"c":"1","d":true}"#);
    assert_eq!(serde_json::from_str::<Point>(&text).expect("read back"), values);
}

#[test]
fn a_file_with_an_unknown_field_or_a_setting_out_of_range_is_refused() {
    let refused = |text: &str| serde_json::from_str::<Tpe>(text).expect_err("wrong").to_string();
    let twice = r#"[{"name": "x", "domain": {"fixed": 1}}, {"name": "x", "domain": {"fixed": 2}}]"#;
    let found = refused(&format!(r#"{{"space": {twice}, "seed": 0}}"#));
    assert!(found.starts_with("parameter x is given twice"), "{found}");
    let found = refused(r#"{"space": [], "seed": 0, "gama": 0.5}"#);
    assert!(found.starts_with("unknown field `gama`"), "{found}");
    let found = refused(r#"{"space": [], "seed": 0, "gamma": 0.0}"#);
    assert!(found.starts_with("tpe: gamma is 0, but must be over 0 and at most 1"), "{found}");
    let found = refused(r#"{"space": [], "seed": 0, "candidates": 0}"#);
    assert!(found.starts_with("tpe: candidates is 0, but must be from 1 to 1000000"), "{found}");

    let range = r#"[{"name": "x", "domain": {"uniform": {"low": 0, "high": 1}}}]"#;
    let found = serde_json::from_str::<Grid>(range).expect_err("a range").to_string();
    assert!(found.starts_with("parameter x is a range of real numbers, which a grid can't go through"), "{found}");
}
