//! What can be set, and to what.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::domain::Domain;
use super::point::{Point, Value};
use super::space_error::SpaceError;

/// The parameters to set, in order.
///
/// Every space that there is was checked: names are unique, ranges and choices are not empty, and conditions name an
/// earlier parameter and values that it can have. Read from a file, it is a list of [`Parameter`]s:
///
/// ```
/// let text = r#"[
///     {"name": "learning_rate", "domain": {"log_uniform": {"low": 1e-5, "high": 1e-2}}},
///     {"name": "decay", "domain": {"choice": ["constant", "linear"]}},
///     {"name": "warmup", "domain": {"integer": {"low": 1, "high": 100, "log": true}},
///      "when": {"parameter": "decay", "is": ["linear"]}}
/// ]"#;
/// let space: alto_exit::search::Space = serde_json::from_str(text)?;
/// assert_eq!(space.parameters().len(), 3);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Vec<Parameter>", into = "Vec<Parameter>")]
pub struct Space {
    parameters: Vec<Parameter>,
}

/// One thing to set.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Parameter {
    /// Its name, which no other has.
    pub name: String,
    /// What it can be set to.
    pub domain: Domain,
    /// When it is present; always if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when: Option<Condition>,
}

/// Another parameter is present and has one of these values.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Condition {
    /// The other parameter, which comes before.
    pub parameter: String,
    /// The values.
    pub is: Vec<Value>,
}

impl Parameter {
    /// A parameter that is always present.
    pub fn new(name: &str, domain: Domain) -> Self {
        Self { name: name.to_owned(), domain, when: None }
    }

    /// The same, present only where the other parameter has one of these values.
    #[must_use]
    pub fn when(self, parameter: &str, is: Vec<Value>) -> Self {
        Self { when: Some(Condition { parameter: parameter.to_owned(), is }), ..self }
    }

    /// Whether the parameter is present, given all that come before it.
    pub(super) fn is_present(&self, point: &Point) -> bool {
        let Some(Condition { parameter, is }) = &self.when else { return true };
        point.get(parameter).is_some_and(|value| is.contains(value))
    }
}

impl Space {
    /// A space of these parameters.
    ///
    /// # Errors
    /// When a name is there twice, a range or choice is empty, not finite or has no logarithm, or a condition can't be
    /// met: its parameter is unknown, doesn't come before, or never has a value.
    pub fn new(parameters: Vec<Parameter>) -> Result<Self, SpaceError> {
        for (index, parameter) in parameters.iter().enumerate() {
            let Parameter { name, domain, when } = parameter;
            if parameters[..index].iter().any(|other| other.name == *name) {
                return Err(SpaceError::DuplicateName { name: name.clone() });
            }
            check_domain(name, domain)?;
            if let Some(condition) = when {
                check_condition(name, condition, &parameters, index)?;
            }
        }
        Ok(Self { parameters })
    }

    /// The parameters, in order.
    pub fn parameters(&self) -> &[Parameter] {
        &self.parameters
    }

    /// Whether the point has a value for each parameter that is present with it, of those that it can have, and no other.
    pub fn contains(&self, point: &Point) -> bool {
        let right = |parameter: &&Parameter| match point.get(&parameter.name) {
            Some(value) => parameter.is_present(point) && parameter.domain.contains(value),
            None => !parameter.is_present(point),
        };
        let present = self.parameters.iter().filter(|parameter| parameter.is_present(point)).count();
        point.0.len() == present && self.parameters.iter().all(|parameter| right(&parameter))
    }

    /// The point that comes of choosing a value for each parameter that is present, in order; told its index, too.
    pub(super) fn point(&self, mut choose: impl FnMut(usize, &Parameter) -> Value) -> Point {
        let mut point = Point::default();
        for (index, parameter) in self.parameters.iter().enumerate() {
            if parameter.is_present(&point) {
                point.0.insert(parameter.name.clone(), choose(index, parameter));
            }
        }
        point
    }
}

impl TryFrom<Vec<Parameter>> for Space {
    type Error = SpaceError;

    fn try_from(parameters: Vec<Parameter>) -> Result<Self, SpaceError> {
        Self::new(parameters)
    }
}

impl From<Space> for Vec<Parameter> {
    fn from(space: Space) -> Self {
        space.parameters
    }
}

fn check_domain(name: &str, domain: &Domain) -> Result<(), SpaceError> {
    let name = || name.to_owned();
    match domain {
        Domain::Uniform { low, high } => check_range(name, *low, *high, false),
        Domain::LogUniform { low, high } => check_range(name, *low, *high, true),
        Domain::Integer { low, high, log } if low <= high => check_range(name, *low as f64, *high as f64, *log),
        Domain::Integer { low, high, .. } => {
            Err(SpaceError::EmptyRange { name: name(), low: *low as f64, high: *high as f64 })
        }
        Domain::Choice(values) if values.is_empty() => Err(SpaceError::EmptyList { name: name() }),
        Domain::Choice(values) => check_values(name, values),
        Domain::Fixed(value) => check_values(name, std::slice::from_ref(value)),
    }
}

fn check_range(name: impl Fn() -> String, low: f64, high: f64, log: bool) -> Result<(), SpaceError> {
    if let Some(value) = [low, high].into_iter().find(|end| !end.is_finite()) {
        return Err(SpaceError::NotFinite { name: name(), value });
    }
    if low > high {
        return Err(SpaceError::EmptyRange { name: name(), low, high });
    }
    if log && low <= 0.0 {
        return Err(SpaceError::NoLogarithm { name: name(), low });
    }
    Ok(())
}

fn check_values(name: impl Fn() -> String, values: &[Value]) -> Result<(), SpaceError> {
    let mut seen = BTreeSet::new();
    for value in values {
        match value {
            Value::Real(real) if !real.is_finite() => {
                return Err(SpaceError::NotFinite { name: name(), value: *real });
            }
            _ if !seen.insert(value) => return Err(SpaceError::DuplicateValue { name: name(), value: value.clone() }),
            _ => {}
        }
    }
    Ok(())
}

fn check_condition(name: &str, when: &Condition, all: &[Parameter], index: usize) -> Result<(), SpaceError> {
    let (name, on) = (|| name.to_owned(), || when.parameter.clone());
    let Some(other) = all.iter().position(|other| other.name == when.parameter) else {
        return Err(SpaceError::UnknownCondition { name: name(), on: on() });
    };
    if other >= index {
        return Err(SpaceError::LateCondition { name: name(), on: on() });
    }
    let domain = &all[other].domain;
    if matches!(domain, Domain::Uniform { .. } | Domain::LogUniform { .. }) {
        return Err(SpaceError::ConditionOnRange { name: name(), on: on() });
    }
    if when.is.is_empty() {
        return Err(SpaceError::EmptyList { name: name() });
    }
    check_values(name, &when.is)?;
    match when.is.iter().find(|value| !domain.contains(value)) {
        Some(value) => Err(SpaceError::ImpossibleCondition { name: name(), on: on(), value: value.clone() }),
        None => Ok(()),
    }
}
