//! Every combination, one after the other.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::point::Point;
use super::space::Space;
use super::space_error::SpaceError;
use super::{Search, Trial};

/// Goes through all combinations in order: the first parameter varies slowest.
///
/// The next point is the first that was not tried, so that a history with holes is filled up. A parameter that is absent
/// isn't varied, so no point comes twice.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Space", into = "Space")]
pub struct Grid {
    // None of its parameters is a range of real numbers.
    space: Space,
}

impl Grid {
    /// All combinations of this space.
    ///
    /// # Errors
    /// When a parameter is a range of real numbers.
    pub fn new(space: Space) -> Result<Self, SpaceError> {
        match space.parameters().iter().find(|parameter| parameter.domain.count().is_none()) {
            Some(range) => Err(SpaceError::RangeInGrid { name: range.name.clone() }),
            None => Ok(Self { space }),
        }
    }

    /// The space.
    pub fn space(&self) -> &Space {
        &self.space
    }

    /// All points, in order.
    pub fn points(&self) -> impl Iterator<Item = Point> {
        let mut digits = Some(vec![0; self.space.parameters().len()]);
        std::iter::from_fn(move || {
            let here = digits.take()?;
            let point = self.space.point(|index, parameter| parameter.domain.nth(here[index]));
            digits = self.after(here, &point);
            Some(point)
        })
    }

    /// The next digits, as an odometer turns; what is absent stands still.
    fn after(&self, mut digits: Vec<u64>, point: &Point) -> Option<Vec<u64>> {
        for (index, parameter) in self.space.parameters().iter().enumerate().rev() {
            let more = digits[index] + 1 < parameter.domain.count().unwrap_or(1);
            if more && point.get(&parameter.name).is_some() {
                digits[index] += 1;
                return Some(digits);
            }
            digits[index] = 0;
        }
        None
    }
}

impl Search for Grid {
    fn next(&self, tried: &[Trial]) -> Option<Point> {
        let tried: BTreeSet<&Point> = tried.iter().map(|trial| trial.point).collect();
        self.points().find(|point| !tried.contains(point))
    }
}

impl TryFrom<Space> for Grid {
    type Error = SpaceError;

    fn try_from(space: Space) -> Result<Self, SpaceError> {
        Self::new(space)
    }
}

impl From<Grid> for Space {
    fn from(grid: Grid) -> Self {
        grid.space
    }
}
