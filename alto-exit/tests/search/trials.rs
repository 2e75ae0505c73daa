//! Histories that the tests are made of.

use alto_exit::search::{Domain, Parameter, Point, Search, Space, Trial, Value};
use alto_exit::{Curve, End, EvaluationPoint};

/// A job that ran to its end with this loss.
pub(crate) fn finished(loss: f64) -> Curve {
    Curve { end: Some(End::Finished), ..reached(1.0, loss) }
}

/// A job that still runs and came this far.
pub(crate) fn reached(progress: f64, loss: f64) -> Curve {
    let step = (100.0 * progress) as u64;
    Curve { evaluations: vec![EvaluationPoint { step, progress, loss }], ..Curve::default() }
}

/// The point of these values.
pub(crate) fn point<const N: usize>(values: [(&str, Value); N]) -> Point {
    Point(values.map(|(name, value)| (name.to_owned(), value)).into())
}

/// What the search says after this history.
pub(crate) fn next(search: &dyn Search, history: &[(Point, Curve)]) -> Option<Point> {
    let tried: Vec<Trial> = history.iter().map(|(point, curve)| Trial { point, curve }).collect();
    search.next(&tried)
}

/// The history of one job after the other, each of which ends with the loss of its point.
pub(crate) fn history(search: &dyn Search, count: usize, loss: impl Fn(&Point) -> f64) -> Vec<(Point, Curve)> {
    let mut history = vec![];
    while history.len() < count {
        let Some(point) = next(search, &history) else { break };
        let curve = finished(loss(&point));
        history.push((point, curve));
    }
    history
}

/// Every kind of parameter, two of them conditional, one on the other.
pub(crate) fn mixed() -> Space {
    let parameters = vec![
        Parameter::new("rate", Domain::LogUniform { low: 1e-5, high: 1e-1 }),
        Parameter::new("decay", Domain::Choice(vec!["constant".into(), "linear".into(), "cosine".into()])),
        Parameter::new("warmup", Domain::Integer { low: 0, high: 3, log: false })
            .when("decay", vec!["linear".into(), "cosine".into()]),
        Parameter::new("start", Domain::Uniform { low: -1.0, high: 1.0 }).when("warmup", vec![2.into(), 3.into()]),
        Parameter::new("rank", Domain::Integer { low: 1, high: 256, log: true }),
        Parameter::new("stabilized", Domain::Fixed(true.into())),
    ];
    Space::new(parameters).expect("a right space")
}
