//! Where the good and the bad values of a parameter lie.

use super::domain::{Domain, Line};
use super::draws::Draws;
use super::parzen::Parzen;
use super::point::{Point, Value};
use super::space::Parameter;

/// Points from which values are taken.
pub(super) struct Split<'a> {
    pub(super) good: Vec<&'a Point>,
    pub(super) bad: Vec<&'a Point>,
}

/// Where one parameter's good and bad values lie.
pub(super) enum Densities {
    /// On the line of a range.
    Range { line: Line, good: Parzen, bad: Parzen },
    /// Each choice's share.
    Choice { good: Vec<f64>, bad: Vec<f64> },
}

impl Densities {
    pub(super) fn of(parameter: &Parameter, split: &Split) -> Self {
        let Parameter { name, domain, .. } = parameter;
        let values =
            |points: &[&Point]| -> Vec<Value> { points.iter().filter_map(|point| point.get(name).cloned()).collect() };
        let (good, bad) = (values(&split.good), values(&split.bad));
        match domain.line() {
            Some(line) => {
                let around =
                    |values: Vec<Value>| Parzen::around(values.iter().filter_map(|value| line.place(value)).collect());
                Self::Range { line, good: around(good), bad: around(bad) }
            }
            None => {
                let choices: Vec<Value> = (0..domain.count().unwrap_or(0)).map(|index| domain.nth(index)).collect();
                Self::Choice { good: shares(&choices, &good), bad: shares(&choices, &bad) }
            }
        }
    }

    /// A value drawn from the good density, and the logarithm of the ratio of both there.
    pub(super) fn draw(&self, domain: &Domain, draws: &mut Draws) -> (Value, f64) {
        match self {
            Self::Range { line, good, bad } => {
                let place = good.draw(draws);
                let value = domain.at(line, place);
                let ratio = match line.stretch(&value) {
                    Some(stretch) => good.mass(stretch).ln() - bad.mass(stretch).ln(),
                    None => good.density(place).ln() - bad.density(place).ln(),
                };
                (value, ratio)
            }
            Self::Choice { good, bad } => {
                let index = drawn_by(good, draws);
                (domain.nth(index as u64), good[index].ln() - bad[index].ln())
            }
        }
    }
}

/// Each choice's share of the values, with one observation more that is spread over all.
fn shares(choices: &[Value], values: &[Value]) -> Vec<f64> {
    let found = |choice: &Value| values.iter().filter(|value| *value == choice).count() as f64;
    let spread = 1.0 / choices.len() as f64;
    let counts: Vec<f64> = choices.iter().map(|choice| found(choice) + spread).collect();
    let all: f64 = counts.iter().sum();
    counts.into_iter().map(|count| count / all).collect()
}

/// A place among these shares, as likely as its share.
fn drawn_by(shares: &[f64], draws: &mut Draws) -> usize {
    let mut left = draws.unit();
    let falls_in = |&share: &f64| {
        left -= share;
        left < 0.0
    };
    shares.iter().position(falls_in).unwrap_or(shares.len() - 1)
}
