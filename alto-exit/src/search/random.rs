//! Points at random.

use serde::{Deserialize, Serialize};

use super::domain::Domain;
use super::draws::Draws;
use super::point::{Point, Value};
use super::space::Space;
use super::{Search, Trial};

/// Draws every point at random, each parameter as its domain says, whatever came of the others.
///
/// The `i`-th point follows from the seed and `i` alone. It never runs out, and where there are few values it repeats
/// itself; what is tried at most is the caller's to say.
///
/// Source: Bergstra and Bengio, "Random Search for Hyper-Parameter Optimization" (JMLR 13, 2012).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Random {
    /// What to draw from.
    pub space: Space,
    /// Another one gives other points.
    pub seed: u64,
}

impl Search for Random {
    fn next(&self, tried: &[Trial]) -> Option<Point> {
        Some(drawn(&self.space, &mut Draws::new(self.seed, tried.len())))
    }
}

/// A point as likely as the domains say.
pub(super) fn drawn(space: &Space, draws: &mut Draws) -> Point {
    space.point(|_, parameter| value(&parameter.domain, draws))
}

fn value(domain: &Domain, draws: &mut Draws) -> Value {
    match domain.line() {
        Some(line) => domain.at(&line, draws.unit()),
        None => domain.nth(draws.below(domain.count().unwrap_or(1) as usize) as u64),
    }
}
