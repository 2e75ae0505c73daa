//! One way of setting everything.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

/// A value for each parameter that is present, by name.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Point(pub BTreeMap<String, Value>);

impl Point {
    /// The parameter's value; `None` if it is absent.
    pub fn get(&self, parameter: &str) -> Option<&Value> {
        self.0.get(parameter)
    }

    /// The parameter's value as a number; `None` if it is absent or text.
    pub fn number(&self, parameter: &str) -> Option<f64> {
        self.get(parameter)?.number()
    }

    /// The parameter's value if it is an integer.
    pub fn integer(&self, parameter: &str) -> Option<i64> {
        match self.get(parameter) {
            Some(Value::Integer(integer)) => Some(*integer),
            _ => None,
        }
    }

    /// The parameter's value if it is text.
    pub fn text(&self, parameter: &str) -> Option<&str> {
        match self.get(parameter) {
            Some(Value::Text(text)) => Some(text),
            _ => None,
        }
    }
}

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, (name, value)) in self.0.iter().enumerate() {
            write!(f, "{}{name} = {value}", if i == 0 { "" } else { ", " })?;
        }
        Ok(())
    }
}

/// What a parameter is set to. In files it stands as it is: `true`, `8`, `1e-3`, `"linear"`.
///
/// Values are equal if they are of one kind and have the same bits: `8` is not `8.0`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Value {
    /// Yes or no.
    Flag(bool),
    /// A whole number.
    Integer(i64),
    /// Any other number.
    Real(f64),
    /// A name.
    Text(String),
}

impl Value {
    /// The value as a number, whole or not.
    pub fn number(&self) -> Option<f64> {
        match self {
            Self::Integer(integer) => Some(*integer as f64),
            Self::Real(real) => Some(*real),
            Self::Flag(_) | Self::Text(_) => None,
        }
    }

    fn kind(&self) -> u8 {
        match self {
            Self::Flag(_) => 0,
            Self::Integer(_) => 1,
            Self::Real(_) => 2,
            Self::Text(_) => 3,
        }
    }
}

impl Ord for Value {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Flag(a), Self::Flag(b)) => a.cmp(b),
            (Self::Integer(a), Self::Integer(b)) => a.cmp(b),
            (Self::Real(a), Self::Real(b)) => a.total_cmp(b),
            (Self::Text(a), Self::Text(b)) => a.cmp(b),
            _ => self.kind().cmp(&other.kind()),
        }
    }
}

impl PartialOrd for Value {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Value {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Value {}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag(flag) => flag.fmt(f),
            Self::Integer(integer) => integer.fmt(f),
            Self::Real(real) if *real != 0.0 && !(1e-4..1e6).contains(&real.abs()) => write!(f, "{real:e}"),
            Self::Real(real) => real.fmt(f),
            Self::Text(text) => text.fmt(f),
        }
    }
}

impl From<bool> for Value {
    fn from(flag: bool) -> Self {
        Self::Flag(flag)
    }
}

impl From<i64> for Value {
    fn from(integer: i64) -> Self {
        Self::Integer(integer)
    }
}

impl From<f64> for Value {
    fn from(real: f64) -> Self {
        Self::Real(real)
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}
