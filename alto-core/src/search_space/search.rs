//! The search that a search space asks for.

use alto_exit::search::{Grid, Parameter, Point, Random, Search, Space, Tpe};
use serde::{Deserialize, Serialize};

use super::error::SearchSpaceError;
use super::grid::{JOBS_LIMIT, Settings, budgetable_rows};
use super::space::SearchSpace;
use crate::job::Job;

/// How jobs are chosen, where they are not simply all of a grid: the table `[search]`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SearchSettings {
    /// What says which job is next.
    pub method: Method,
    /// How many jobs there are, at most.
    pub jobs: usize,
    /// What random choices follow from; 0 if not given.
    #[serde(default)]
    pub seed: u64,
    /// How many jobs are chosen before anything trains, and so without knowing of any loss; 10 if not given.
    #[serde(default = "ten")]
    pub first: usize,
}

fn ten() -> usize {
    10
}

/// What says which job is next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Method {
    /// All combinations in order, as [`Grid`]; ranges of real numbers have none.
    Grid,
    /// At random, as [`Random`].
    Random,
    /// The tree-structured Parzen estimator, as [`Tpe`], with `first` jobs at random.
    Tpe,
}

impl SearchSpace {
    /// The search that the table `[search]` asks for; `None` without one.
    ///
    /// Its points have the keys of the lists and ranges: `rank`, `alpha_per_rank`, `learning_rate`, `weight_decay`,
    /// `batch` and `seed`, in this order.
    ///
    /// # Errors
    /// When a list or range is empty, has an entry twice, is not finite or, if logarithmic, not positive; when a grid has
    /// a range of real numbers; when there are to be no jobs, or more than 100,000.
    pub fn to_search(&self) -> Result<Option<Box<dyn Search>>, SearchSpaceError> {
        let Some(SearchSettings { method, jobs, seed, first }) = self.search else { return Ok(None) };
        for (key, found) in [("jobs", jobs), ("first", first)] {
            if found == 0 || found > JOBS_LIMIT {
                return Err(SearchSpaceError::Search { key, found });
            }
        }
        let space = Space::new(vec![
            Parameter::new("rank", self.rank.domain("rank")?),
            Parameter::new("alpha_per_rank", self.alpha_per_rank.domain("alpha_per_rank")?),
            Parameter::new("learning_rate", self.learning_rate.domain("learning_rate")?),
            Parameter::new("weight_decay", self.weight_decay.domain("weight_decay")?),
            Parameter::new("batch", self.batch.domain("batch")?),
            Parameter::new("seed", self.seed.domain("seed")?),
        ])?;
        Ok(Some(match method {
            Method::Grid => Box::new(Grid::new(space)?),
            Method::Random => Box::new(Random { space, seed }),
            Method::Tpe => Box::new(Tpe { startup: first, ..Tpe::new(space, seed) }),
        }))
    }

    /// The job of a point for a training set of this many rows, checked; `index` comes first in its name, so that no two
    /// have one name.
    ///
    /// # Errors
    /// When a setting is missing or out of range, or not exactly one budget is given.
    pub fn job(&self, index: usize, point: &Point, rows: usize) -> Result<Job, SearchSpaceError> {
        let number = |key| point.number(key).ok_or(SearchSpaceError::Missing { key });
        let whole = |key| {
            let found = point.integer(key).and_then(|number| u64::try_from(number).ok());
            found.ok_or(SearchSpaceError::Missing { key })
        };
        let settings = Settings {
            rank: whole("rank")? as usize,
            alpha: number("alpha_per_rank")?,
            learning_rate: number("learning_rate")?,
            weight_decay: number("weight_decay")?,
            batch: whole("batch")? as usize,
            seed: whole("seed")?,
        };
        let name = format!("{index}-{}", self.name(&settings, |number| format!("{number:.2e}")));
        self.job_of(&settings, name, rows)
    }

    /// Checks the search, and the jobs at the lower and the upper ends.
    pub(super) fn check_search(&self) -> Result<(), SearchSpaceError> {
        self.to_search()?;
        let rows = budgetable_rows(self.epochs);
        let (Some(rank), Some(alpha), Some(learning_rate)) =
            (self.rank.ends(), self.alpha_per_rank.ends(), self.learning_rate.ends())
        else {
            return Ok(());
        };
        let (Some(weight_decay), Some(batch), Some(seed)) =
            (self.weight_decay.ends(), self.batch.ends(), self.seed.ends())
        else {
            return Ok(());
        };
        let low = Settings {
            rank: rank.0,
            alpha: alpha.0,
            learning_rate: learning_rate.0,
            weight_decay: weight_decay.0,
            batch: batch.0,
            seed: seed.0,
        };
        let high = Settings {
            rank: rank.1,
            alpha: alpha.1,
            learning_rate: learning_rate.1,
            weight_decay: weight_decay.1,
            batch: batch.1,
            seed: seed.1,
        };
        for settings in [low, high] {
            let name = self.name(&settings, |number| format!("{number:.2e}"));
            self.job_of(&settings, name, rows)?;
        }
        Ok(())
    }
}
