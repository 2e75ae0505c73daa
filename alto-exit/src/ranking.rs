//! Jobs ranked by their losses at a progress mark.

use std::cmp::Ordering;

use crate::curve::Curve;
use crate::reason::Standing;

/// Jobs that reached a mark, best first: by validation loss there, ties by index, losses that are not finite last.
#[derive(Debug)]
pub(crate) struct Ranking {
    mark: f64,
    /// Ascending by loss.
    records: Vec<Record>,
    /// Each job's index in `records`, by job; `None` for one that is not ranked.
    places: Vec<Option<usize>>,
}

/// One job's loss at the mark.
#[derive(Debug, Clone, Copy)]
struct Record {
    job: usize,
    step: u64,
    loss: f64,
}

impl Ranking {
    /// Ranks those of these jobs, ascending, that reached the mark.
    pub(crate) fn at(mark: f64, jobs: impl IntoIterator<Item = usize>, cohort: &[Curve]) -> Self {
        let record = |job: usize| {
            let at_mark = cohort[job].at_mark(mark)?;
            Some(Record { job, step: at_mark.step, loss: at_mark.loss })
        };
        let mut records: Vec<Record> = jobs.into_iter().filter_map(record).collect();
        // The sort is stable, so that ties stay in order of their indices.
        records.sort_by(|a, b| by_loss(a.loss, b.loss));
        let mut places = vec![None; cohort.len()];
        for (place, record) in records.iter().enumerate() {
            places[record.job] = Some(place);
        }
        Self { mark, records, places }
    }

    pub(crate) fn len(&self) -> usize {
        self.records.len()
    }

    /// The best so many, ascending by job.
    pub(crate) fn best(&self, count: usize) -> Vec<usize> {
        let mut jobs: Vec<usize> = self.records.iter().take(count).map(|record| record.job).collect();
        jobs.sort_unstable();
        jobs
    }

    /// Where the job stands if only the best `kept` stay, at least one; `None` where it is one of them or not ranked.
    pub(crate) fn cut(&self, job: usize, kept: usize) -> Option<Standing> {
        let place = self.places[job].filter(|&place| place >= kept)?;
        let Record { step, loss, .. } = self.records[place];
        let cut = self.records[kept - 1].loss;
        Some(Standing { step, mark: self.mark, place: place + 1, of: self.len(), kept, loss, cut })
    }

    /// The ranking with one more job, if it is not in it.
    pub(crate) fn joined_by(&self, job: usize, cohort: &[Curve]) -> Option<Self> {
        if self.places[job].is_some() {
            return None;
        }
        let mut jobs: Vec<usize> = self.records.iter().map(|record| record.job).chain([job]).collect();
        jobs.sort_unstable();
        Some(Self::at(self.mark, jobs, cohort))
    }

    pub(crate) fn mark(&self) -> f64 {
        self.mark
    }
}

/// `ceil(keep * n)`, at least 1.
pub(crate) fn share(keep: f64, n: usize) -> usize {
    let share = keep * n as f64;
    // 0.07 * 100 comes out a hair over 7, and must not keep an eighth.
    let share = share * (1.0 - 4.0 * f64::EPSILON);
    (share.ceil() as usize).max(1)
}

/// Lower first; what is not finite last, and all alike.
pub(crate) fn by_loss(a: f64, b: f64) -> Ordering {
    match (a.is_finite(), b.is_finite()) {
        (true, true) => a.partial_cmp(&b).unwrap_or(Ordering::Equal),
        (a, b) => b.cmp(&a),
    }
}
