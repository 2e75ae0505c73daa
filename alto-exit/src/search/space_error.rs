//! Why a space can't be searched.

use super::point::Value;

/// A space that can't be searched.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum SpaceError {
    /// Two parameters of one name.
    #[error("parameter {name} is given twice")]
    DuplicateName {
        /// The name.
        name: String,
    },
    /// A range that ends before it starts.
    #[error("parameter {name}: the range from {low} to {high} is empty, expected the lower end first")]
    EmptyRange {
        /// The parameter's name.
        name: String,
        /// Where it starts.
        low: f64,
        /// Where it ends.
        high: f64,
    },
    /// A range or value that is not a finite number.
    #[error("parameter {name}: {value} is not a finite number")]
    NotFinite {
        /// The parameter's name.
        name: String,
        /// The number.
        value: f64,
    },
    /// A logarithmic range that starts at or below 0.
    #[error("parameter {name}: a logarithmic range starts over 0, but this one at {low}")]
    NoLogarithm {
        /// The parameter's name.
        name: String,
        /// Where it starts.
        low: f64,
    },
    /// A choice, or a condition, without a value.
    #[error("parameter {name} has a list without values, expected at least one")]
    EmptyList {
        /// The parameter's name.
        name: String,
    },
    /// A choice, or a condition, with a value twice.
    #[error("parameter {name} has {value} twice")]
    DuplicateValue {
        /// The parameter's name.
        name: String,
        /// The value.
        value: Value,
    },
    /// A condition on a parameter that isn't there.
    #[error("parameter {name} depends on {on}, which is none of the parameters")]
    UnknownCondition {
        /// The parameter's name.
        name: String,
        /// What it depends on.
        on: String,
    },
    /// A condition on the parameter itself or one behind it; so a circle of conditions, too.
    #[error("parameter {name} depends on {on}, which must come before it")]
    LateCondition {
        /// The parameter's name.
        name: String,
        /// What it depends on.
        on: String,
    },
    /// A condition on a value that the other parameter never has.
    #[error("parameter {name} depends on {on} being {value}, which it never is")]
    ImpossibleCondition {
        /// The parameter's name.
        name: String,
        /// What it depends on.
        on: String,
        /// The value.
        value: Value,
    },
    /// A condition on a range of real numbers.
    #[error("parameter {name} depends on {on}, a range of real numbers, expected a choice or whole numbers")]
    ConditionOnRange {
        /// The parameter's name.
        name: String,
        /// What it depends on.
        on: String,
    },
    /// A range of real numbers in a grid.
    #[error("parameter {name} is a range of real numbers, which a grid can't go through; list the values as a choice")]
    RangeInGrid {
        /// The parameter's name.
        name: String,
    },
}
