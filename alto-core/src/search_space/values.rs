//! What one setting is tried with: a list or a range.

use std::fmt;
use std::marker::PhantomData;

use alto_exit::search::{Domain, Value};
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{Error, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::error::SearchSpaceError;

/// What one setting is tried with.
///
/// In TOML a list, `[8, 16]` or `{ choice = [8, 16] }`, or a range with its ends, `{ log = [1e-5, 1e-2] }` or
/// `{ uniform = [0.0, 0.1] }`. Ranges of whole numbers have whole numbers in them. A range takes a search to choose from.
#[derive(Debug, Clone, PartialEq)]
pub enum Values<T> {
    /// Any of these.
    List(Vec<T>),
    /// From the first to the second, its logarithm uniform.
    Log(T, T),
    /// From the first to the second.
    Uniform(T, T),
}

impl<T> Values<T> {
    /// The list; an error for a range.
    pub(super) fn list(&self, key: &'static str) -> Result<&[T], SearchSpaceError> {
        match self {
            Self::List(list) => Ok(list),
            Self::Log(..) | Self::Uniform(..) => Err(SearchSpaceError::RangeInGrid { key }),
        }
    }

    /// Whether there is more than one.
    pub(super) fn vary(&self) -> bool {
        !matches!(self, Self::List(list) if list.len() <= 1)
    }

    /// The lowest and the highest.
    pub(super) fn ends(&self) -> Option<(T, T)>
    where
        T: Copy + PartialOrd,
    {
        match self {
            Self::Log(low, high) | Self::Uniform(low, high) => Some((*low, *high)),
            Self::List(list) => {
                let ends =
                    |ends: (T, T), &x: &T| (if x < ends.0 { x } else { ends.0 }, if x > ends.1 { x } else { ends.1 });
                let first = *list.first()?;
                Some(list.iter().fold((first, first), ends))
            }
        }
    }

    /// What a search chooses from.
    pub(super) fn domain(&self, key: &'static str) -> Result<Domain, SearchSpaceError>
    where
        T: Number,
    {
        match self {
            Self::List(list) => {
                list.iter().map(|number| number.value(key)).collect::<Result<_, _>>().map(Domain::Choice)
            }
            Self::Log(low, high) => T::range(key, low, high, true),
            Self::Uniform(low, high) => T::range(key, low, high, false),
        }
    }
}

/// A number that a setting can be.
pub(super) trait Number {
    /// As a search has it.
    fn value(&self, key: &'static str) -> Result<Value, SearchSpaceError>;
    /// A range of such numbers.
    fn range(key: &'static str, low: &Self, high: &Self, log: bool) -> Result<Domain, SearchSpaceError>;
}

impl Number for f64 {
    fn value(&self, _: &'static str) -> Result<Value, SearchSpaceError> {
        Ok(Value::Real(*self))
    }

    fn range(_: &'static str, &low: &f64, &high: &f64, log: bool) -> Result<Domain, SearchSpaceError> {
        Ok(if log { Domain::LogUniform { low, high } } else { Domain::Uniform { low, high } })
    }
}

impl Number for u64 {
    fn value(&self, key: &'static str) -> Result<Value, SearchSpaceError> {
        whole(key, *self).map(Value::Integer)
    }

    fn range(key: &'static str, &low: &u64, &high: &u64, log: bool) -> Result<Domain, SearchSpaceError> {
        Ok(Domain::Integer { low: whole(key, low)?, high: whole(key, high)?, log })
    }
}

impl Number for usize {
    fn value(&self, key: &'static str) -> Result<Value, SearchSpaceError> {
        (*self as u64).value(key)
    }

    fn range(key: &'static str, &low: &usize, &high: &usize, log: bool) -> Result<Domain, SearchSpaceError> {
        u64::range(key, &(low as u64), &(high as u64), log)
    }
}

fn whole(key: &'static str, value: u64) -> Result<i64, SearchSpaceError> {
    i64::try_from(value).map_err(|_| SearchSpaceError::TooLarge { key, value })
}

/// The table of a range, or of a list by its name.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Named<T> {
    Log(Vec<T>),
    Uniform(Vec<T>),
    Choice(Vec<T>),
}

impl<T: Serialize + Copy> Serialize for Values<T> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match *self {
            Self::List(ref list) => list.serialize(to),
            Self::Log(low, high) => Named::Log(vec![low, high]).serialize(to),
            Self::Uniform(low, high) => Named::Uniform(vec![low, high]).serialize(to),
        }
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Values<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(ValuesVisitor(PhantomData))
    }
}

struct ValuesVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for ValuesVisitor<T> {
    type Value = Values<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a sequence, or a table with one of log, uniform and choice")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Values<T>, A::Error> {
        Vec::deserialize(SeqAccessDeserializer::new(list)).map(Values::List)
    }

    fn visit_map<A: MapAccess<'de>>(self, table: A) -> Result<Values<T>, A::Error> {
        // Not arrays of two: TOML passes over what is too much for them.
        let ends = |ends: Vec<T>| {
            let found = ends.len();
            <[T; 2]>::try_from(ends)
                .map_err(|_| A::Error::custom(format_args!("a range has its two ends, but this one {found} numbers")))
        };
        Ok(match Named::deserialize(MapAccessDeserializer::new(table))? {
            Named::Log(range) => ends(range).map(|[low, high]| Values::Log(low, high))?,
            Named::Uniform(range) => ends(range).map(|[low, high]| Values::Uniform(low, high))?,
            Named::Choice(list) => Values::List(list),
        })
    }
}
