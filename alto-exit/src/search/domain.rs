//! What one parameter can be set to.

use serde::{Deserialize, Serialize};

use super::point::Value;

/// What a parameter can be set to, and how likely each value is before anything is known.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
#[non_exhaustive]
pub enum Domain {
    /// Any real number from `low` to `high`.
    Uniform {
        /// The lowest value.
        low: f64,
        /// The highest value.
        high: f64,
    },
    /// Any real number from `low` to `high`, over 0; its logarithm is uniform.
    LogUniform {
        /// The lowest value.
        low: f64,
        /// The highest value.
        high: f64,
    },
    /// A whole number from `low` to `high`.
    Integer {
        /// The lowest value.
        low: i64,
        /// The highest value.
        high: i64,
        /// Whether its logarithm is uniform; `low` is over 0 then.
        #[serde(default)]
        log: bool,
    },
    /// One of these, in no order.
    Choice(Vec<Value>),
    /// Always this.
    Fixed(Value),
}

impl Domain {
    /// Whether the value lies in it.
    pub fn contains(&self, value: &Value) -> bool {
        match (self, value) {
            (Self::Uniform { low, high } | Self::LogUniform { low, high }, Value::Real(real)) => {
                low <= real && real <= high
            }
            (Self::Integer { low, high, .. }, Value::Integer(integer)) => low <= integer && integer <= high,
            (Self::Choice(values), value) => values.contains(value),
            (Self::Fixed(fixed), value) => fixed == value,
            _ => false,
        }
    }

    /// How many values it has; `None` if they can't be counted.
    pub(super) fn count(&self) -> Option<u64> {
        match self {
            Self::Uniform { low, high } | Self::LogUniform { low, high } => (low == high).then_some(1),
            Self::Integer { low, high, .. } => Some(high.abs_diff(*low).saturating_add(1)),
            Self::Choice(values) => Some(values.len() as u64),
            Self::Fixed(_) => Some(1),
        }
    }

    /// The value at this place among those that can be counted.
    pub(super) fn nth(&self, index: u64) -> Value {
        match self {
            Self::Uniform { low, .. } | Self::LogUniform { low, .. } => Value::Real(*low),
            Self::Integer { low, .. } => Value::Integer(low.wrapping_add_unsigned(index)),
            Self::Choice(values) => values[index as usize].clone(),
            Self::Fixed(value) => value.clone(),
        }
    }

    /// The line from 0 to 1 that a range is laid on; `None` for what has no order.
    pub(super) fn line(&self) -> Option<Line> {
        match *self {
            Self::Uniform { low, high } => Some(Line { low, high, log: false, whole: false }),
            Self::LogUniform { low, high } => Some(Line { low, high, log: true, whole: false }),
            Self::Integer { low, high, log } => {
                Some(Line { low: low as f64 - 0.5, high: high as f64 + 0.5, log, whole: true })
            }
            Self::Choice(_) | Self::Fixed(_) => None,
        }
    }

    /// The value at a place on the line.
    pub(super) fn at(&self, line: &Line, place: f64) -> Value {
        let number = line.number(place);
        match self {
            Self::Integer { low, high, .. } => Value::Integer((number.round() as i64).clamp(*low, *high)),
            _ => Value::Real(number.clamp(line.low, line.high)),
        }
    }
}

/// A range laid on the line from 0 to 1, on which it is uniform.
///
/// A whole number has the stretch of the line that is rounded to it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Line {
    low: f64,
    high: f64,
    log: bool,
    whole: bool,
}

impl Line {
    /// The number at a place; beyond an end, that end.
    fn number(&self, place: f64) -> f64 {
        // Not low + place * (high - low): the difference may overflow.
        let between = |low: f64, high: f64| low * (1.0 - place) + high * place;
        if self.log { between(self.low.ln(), self.high.ln()).exp() } else { between(self.low, self.high) }
    }

    /// Where a number lies, 0 to 1; `None` for what is none.
    pub(super) fn place(&self, value: &Value) -> Option<f64> {
        value.number().filter(|number| !number.is_nan()).map(|number| self.place_of(number))
    }

    /// The stretch that stands for a whole number; `None` where numbers are points.
    pub(super) fn stretch(&self, value: &Value) -> Option<(f64, f64)> {
        let number = value.number().filter(|_| self.whole)?;
        Some((self.place_of(number - 0.5), self.place_of(number + 0.5)))
    }

    fn place_of(&self, number: f64) -> f64 {
        let number = number.clamp(self.low, self.high);
        // Halves, as the differences of the wholes may overflow.
        let share = |low: f64, x: f64, high: f64| (x / 2.0 - low / 2.0) / (high / 2.0 - low / 2.0);
        let place = if self.log {
            share(self.low.ln(), number.ln(), self.high.ln())
        } else {
            share(self.low, number, self.high)
        };
        // A range of one number has no width.
        if place.is_nan() { 0.5 } else { place.clamp(0.0, 1.0) }
    }
}
