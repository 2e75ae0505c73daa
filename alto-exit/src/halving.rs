//! Rungs at which only a share of those who came so far stays.

use crate::curve::Curve;
use crate::ranking::Ranking;
use crate::reason::Standing;
use crate::setting::{SettingError, Settings};

/// Progress marks at `first * eta^k`, all of them under 1.
pub(crate) fn marks(first: f64, eta: usize) -> Vec<f64> {
    if check("", first, eta).is_err() {
        return vec![];
    }
    // A mark that comes out a hair under 1 is the end of the budget.
    (0..).map(|k| first * (eta as f64).powi(k)).take_while(|&mark| mark < 1.0 - 1e-9).collect()
}

pub(crate) fn check(policy: &'static str, first: f64, eta: usize) -> Result<(), SettingError> {
    let settings = Settings(policy);
    settings.require((1e-6..1.0).contains(&first), "first", first, "from 0.000001 to under 1")?;
    settings.at_least(2, "eta", eta)
}

/// The jobs of one bracket, ranked at each of its marks.
#[derive(Debug)]
pub(crate) struct Halving {
    eta: usize,
    /// One by mark: of those among whom the marks before left the job.
    rankings: Vec<Ranking>,
}

impl Halving {
    /// Ranks these jobs, ascending, of which one of `eta` stays at each mark.
    pub(crate) fn of(jobs: Vec<usize>, marks: &[f64], eta: usize, cohort: &[Curve]) -> Self {
        let mut left = jobs;
        let ranked = |&mark: &f64| {
            let ranking = Ranking::at(mark, left.iter().copied(), cohort);
            left = ranking.best(ranking.len().div_ceil(eta));
            ranking
        };
        Self { eta, rankings: marks.iter().map(ranked).collect() }
    }

    /// The job's place at the mark where it stands, if that is too low to stay.
    pub(crate) fn cut(&self, job: usize, cohort: &[Curve]) -> Option<Standing> {
        let cut = |ranking: &Ranking| ranking.cut(job, ranking.len().div_ceil(self.eta));
        let here = self.rankings.iter().filter(|ranking| cohort[job].stands_at(ranking.mark()));
        // A job that went on counts, even if others have come since who would have pushed it out.
        here.filter_map(|ranking| ranking.joined_by(job, cohort).as_ref().map_or_else(|| cut(ranking), cut)).next()
    }
}
