//! Points where good ones are dense and bad ones rare.

use serde::{Deserialize, Serialize};

use super::densities::{Densities, Split};
use super::draws::Draws;
use super::point::Point;
use super::random::drawn;
use super::space::Space;
use super::{Search, Trial};
use crate::setting::{SettingError, Settings};

/// The tree-structured Parzen estimator: splits the trials into good and bad ones, and tries what is likely among the
/// good and unlikely among the bad.
///
/// # How trials are ranked
/// A trial is worth its lowest finite validation loss so far, however far it came and however it ended: that is the
/// adapter that one would have of it, and what a run's winner is found by. So an exit counts as evidence at the progress
/// reached. One that overfitted keeps what it had before; one that was cut at a rung has a loss from there, above those
/// of the jobs that stayed and were better even then. (To rank the finished first, as Optuna ranks pruned trials, would
/// put a job that is ended at its best behind a slow one that hardly learned.) The best
/// `ceil(gamma * n)` of the `n` with any loss or an end are good, 25 at most; ties go by index. A trial without a finite
/// loss is never good.
///
/// A job that runs is ranked no differently. Until it beats the ended ones it is with the bad, so that places that are
/// free at one time aren't all given to the same point.
///
/// # How a point is made
/// While fewer than `startup` trials have a loss or an end, or none has a finite loss, it is drawn at random. Then
/// each parameter has a density of its good values and one of its bad, of the trials in which it is present: in the
/// logarithm for logarithmic ranges, counts for choices, with the domain itself as one more observation. Of `candidates`
/// whole points drawn from the good densities, parameter by parameter down the tree of conditions, it is that with the
/// largest product of their ratios. (Taking the best of each parameter apart, as is often done, was measured too: it
/// sticks to the first good choice and found higher minima on all test functions.) A point that was tried already is made
/// anew, a few times over.
///
/// Only the order of losses counts, not their sizes. It never runs out.
///
/// Source: Bergstra, Bardenet, Bengio and Kégl, "Algorithms for Hyper-Parameter Optimization" (NIPS 2011).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Unchecked")]
pub struct Tpe {
    /// What to search.
    pub space: Space,
    /// Another one gives other points.
    pub seed: u64,
    /// Trials drawn at random at first.
    pub startup: usize,
    /// Share of the trials that are good, over 0 and at most 1.
    pub gamma: f64,
    /// Points that are drawn, of which the best is taken; at least 1.
    pub candidates: usize,
}

impl Tpe {
    /// A search with 10 trials at random at first, a share of 0.25, and 24 candidates.
    ///
    /// The paper has a share of 0.15; with the 30 to 100 trials that a sweep has, 0.25 found lower minima of test functions.
    pub fn new(space: Space, seed: u64) -> Self {
        Self { space, seed, startup: startup(), gamma: gamma(), candidates: candidates() }
    }

    /// Those that are good, and all others; `None` while too little is known.
    fn split<'a>(&self, tried: &[Trial<'a>]) -> Option<Split<'a>> {
        let loss = |trial: &Trial| trial.curve.best().map(|best| best.loss);
        let known = tried.iter().filter(|trial| trial.curve.end.is_some() || loss(trial).is_some()).count();
        let mut ranked: Vec<(f64, &'a Point)> =
            tried.iter().filter_map(|trial| Some((loss(trial)?, trial.point))).collect();
        if known < self.startup || ranked.is_empty() {
            return None;
        }
        ranked.sort_by(|a, b| a.0.total_cmp(&b.0));
        let good = ((self.gamma * known as f64).ceil() as usize).clamp(1, MOST_GOOD).min(ranked.len());
        let lost = tried.iter().filter(|trial| loss(trial).is_none()).map(|trial| trial.point);
        let points = |part: &[(f64, &'a Point)]| part.iter().map(|&(_, point)| point).collect::<Vec<_>>();
        Some(Split { good: points(&ranked[..good]), bad: points(&ranked[good..]).into_iter().chain(lost).collect() })
    }

    /// The best of the candidates, the first on ties.
    fn likeliest(&self, densities: &[Densities], draws: &mut Draws) -> Point {
        let mut candidate = || {
            let mut score = 0.0;
            let point = self.space.point(|index, parameter| {
                let (value, ratio) = densities[index].draw(&parameter.domain, draws);
                score += ratio;
                value
            });
            (score, point)
        };
        let first = candidate();
        let rest = (1..self.candidates).map(|_| candidate());
        rest.fold(first, |best, next| if next.0 > best.0 { next } else { best }).1
    }
}

/// Trials that are good at most, so that a long search goes on narrowing down.
const MOST_GOOD: usize = 25;

/// How often a point that was tried already is made anew.
const TRIES: usize = 10;

impl Search for Tpe {
    fn next(&self, tried: &[Trial]) -> Option<Point> {
        let mut draws = Draws::new(self.seed, tried.len());
        let Some(split) = self.split(tried) else { return Some(drawn(&self.space, &mut draws)) };
        let is_new = |point: &Point| tried.iter().all(|trial| trial.point != point);
        let densities: Vec<Densities> =
            self.space.parameters().iter().map(|parameter| Densities::of(parameter, &split)).collect();
        let new = (0..TRIES).map(|_| self.likeliest(&densities, &mut draws)).find(is_new);
        // What is likely was tried; then anything that was not.
        let mut any = || drawn(&self.space, &mut draws);
        new.or_else(|| (0..TRIES).map(|_| any()).find(is_new)).or_else(|| Some(any()))
    }

    fn check(&self) -> Result<(), SettingError> {
        let settings = Settings("tpe");
        settings.share("gamma", self.gamma)?;
        let candidates = (1..=1_000_000).contains(&self.candidates);
        settings.require(candidates, "candidates", self.candidates as f64, "from 1 to 1000000")
    }
}

fn startup() -> usize {
    10
}

fn gamma() -> f64 {
    0.25
}

fn candidates() -> usize {
    24
}

/// The settings as a file may have them.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Unchecked {
    space: Space,
    seed: u64,
    #[serde(default = "startup")]
    startup: usize,
    #[serde(default = "gamma")]
    gamma: f64,
    #[serde(default = "candidates")]
    candidates: usize,
}

impl TryFrom<Unchecked> for Tpe {
    type Error = SettingError;

    fn try_from(unchecked: Unchecked) -> Result<Self, SettingError> {
        let Unchecked { space, seed, startup, gamma, candidates } = unchecked;
        let checked = Self { space, seed, startup, gamma, candidates };
        checked.check().map(|()| checked)
    }
}
