//! What to try next, from what was tried and how far it came.
//!
//! A [`Space`] says what can be set and to what; a [`Search`] names one [`Point`] of it after the other. It is asked
//! whenever a place is free, and told everything that was tried, running jobs included:
//!
//! ```
//! use alto_exit::search::{Domain, Parameter, Point, Search, Space, Tpe, Trial};
//! use alto_exit::{Curve, End, EvaluationPoint};
//!
//! let space = Space::new(vec![
//!     Parameter::new("learning_rate", Domain::LogUniform { low: 1e-5, high: 1e-1 }),
//!     Parameter::new("rank", Domain::Choice(vec![8.into(), 16.into(), 32.into()])),
//! ])?;
//! let search = Tpe::new(space, 0);
//!
//! let (mut points, mut curves): (Vec<Point>, Vec<Curve>) = (vec![], vec![]);
//! for _ in 0..40 {
//!     let tried: Vec<Trial> = points.iter().zip(&curves).map(|(point, curve)| Trial { point, curve }).collect();
//!     let Some(point) = search.next(&tried) else { break };
//!
//!     // Training, of which the last evaluation is all that is shown here.
//!     let rate = point.number("learning_rate").unwrap_or(f64::NAN);
//!     let last = EvaluationPoint { step: 100, progress: 1.0, loss: 1.0 + (rate.log10() + 3.0).powi(2) };
//!     curves.push(Curve { evaluations: vec![last], end: Some(End::Finished), ..Curve::default() });
//!     points.push(point);
//! }
//! let best = curves.iter().filter_map(|curve| Some(curve.best()?.loss)).fold(f64::INFINITY, f64::min);
//! assert!(best < 1.01, "a learning rate within a tenth of a decade of the best one");
//! # Ok::<(), alto_exit::search::SpaceError>(())
//! ```

mod densities;
mod domain;
mod draws;
mod grid;
mod parzen;
mod point;
mod random;
mod space;
mod space_error;
mod tpe;

use std::fmt::Debug;
use std::sync::Arc;

pub use domain::Domain;
pub use grid::Grid;
pub use point::{Point, Value};
pub use random::Random;
pub use space::{Condition, Parameter, Space};
pub use space_error::SpaceError;
pub use tpe::Tpe;

use crate::curve::Curve;
use crate::setting::SettingError;

/// Says what to try next.
///
/// A search is pure: it holds settings, a seed among them, and no memory of what it said before. The same history gives
/// the same point, so that a run can be gone over again from its log.
pub trait Search: Debug + Send + Sync {
    /// The point to try next; `None` if nothing is left to try.
    ///
    /// `tried` has every trial there was, in the order in which they were started: those that ended, however early, and
    /// those that still run. The order matters in two ways at most: how many they are says which of its random draws a
    /// search is at, and equal losses rank by it. Points from elsewhere, of other parameters or out of range, are allowed.
    fn next(&self, tried: &[Trial]) -> Option<Point>;

    /// Checks the settings.
    ///
    /// # Errors
    /// Names the search, the setting, its value and what would be right.
    fn check(&self) -> Result<(), SettingError> {
        Ok(())
    }
}

/// One thing that was tried, and what is known of it so far.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Trial<'a> {
    /// What was tried.
    pub point: &'a Point,
    /// Its losses up to where it came; without an [`end`](Curve::end) it still runs.
    pub curve: &'a Curve,
}

impl<S: Search + ?Sized> Search for &S {
    fn next(&self, tried: &[Trial]) -> Option<Point> {
        (**self).next(tried)
    }

    fn check(&self) -> Result<(), SettingError> {
        (**self).check()
    }
}

impl<S: Search + ?Sized> Search for Box<S> {
    fn next(&self, tried: &[Trial]) -> Option<Point> {
        (**self).next(tried)
    }

    fn check(&self) -> Result<(), SettingError> {
        (**self).check()
    }
}

impl<S: Search + ?Sized> Search for Arc<S> {
    fn next(&self, tried: &[Trial]) -> Option<Point> {
        (**self).next(tried)
    }

    fn check(&self) -> Result<(), SettingError> {
        (**self).check()
    }
}

const _: Option<&dyn Search> = None;
