//! Jobs that a search proposes while a run goes on.

use std::error::Error;
use std::fmt;

use alto_exit::search::{Point, Search, Trial};
use alto_exit::{Curve, End};
use serde::{Deserialize, Serialize};

use super::candidate::Candidate;
use super::error::TrainError;

/// Where a run's jobs come from if they aren't known from the start.
///
/// Of `first` jobs the search knows nothing but each other's points: they are asked for before anything trains, and go
/// through the places as listed candidates do. From then on it is asked whenever a place is free and no job waits for
/// one, and is told every point with its curve so far.
#[derive(Clone, Copy)]
pub struct Proposals<'a> {
    /// Says what to try next.
    pub search: &'a dyn Search,
    /// The candidate of a point; told how many were proposed before, so that each can have a name of its own.
    pub candidate: &'a MakeCandidate<'a>,
    /// Points that are asked for in all, at most; those that can't be trained count.
    pub jobs: usize,
    /// Of these, how many are asked for before anything trains; 1 at least. Memory is measured with them.
    pub first: usize,
}

/// Makes a candidate of a point, told how many were proposed before.
pub type MakeCandidate<'a> = dyn Fn(usize, &Point) -> Result<Candidate, Box<dyn Error + Send + Sync>> + 'a;

impl fmt::Debug for Proposals<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { search, jobs, first, .. } = self;
        f.debug_struct("Proposals").field("search", search).field("jobs", jobs).field("first", first).finish()
    }
}

/// A point that can't be trained.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Refused {
    /// What the search proposed.
    pub point: Point,
    /// Why not, for people to read.
    pub error: String,
}

impl Refused {
    /// What the search is told of it.
    pub(super) fn curve(&self) -> Curve {
        Curve { end: Some(End::Failed { step: 0, error: self.error.clone() }), ..Curve::default() }
    }
}

impl Proposals<'_> {
    /// The points that are asked for before anything trains, with their candidates.
    pub(super) fn first(&self) -> Result<Vec<(Candidate, Point)>, TrainError> {
        let mut found: Vec<(Candidate, Point)> = vec![];
        let unknown = Curve::default();
        while found.len() < self.first.max(1).min(self.jobs) {
            let tried: Vec<Trial> = found.iter().map(|(_, point)| Trial { point, curve: &unknown }).collect();
            let Some(point) = self.search.next(&tried) else { break };
            match (self.candidate)(found.len(), &point) {
                Ok(candidate) => found.push((candidate, point)),
                Err(source) => return Err(TrainError::Proposal { point, source }),
            }
        }
        Ok(found)
    }
}
