//! What a curve says of its job at each check of a race.

use super::{finite, median};
use crate::curve::{Curve, EvaluationPoint, lowest};

/// Evaluations whose noise counts.
const LATE: usize = 5;
/// By how much the median of absolute deviations is under a normal distribution's deviation.
const MEDIAN_TO_DEVIATION: f64 = 1.4826;

/// What is known of a job at a check.
#[derive(Debug, Clone, Copy)]
pub(super) struct Record {
    /// Lowest finite loss until the mark is reached: of an adapter that is kept, whatever becomes of the job; infinite
    /// without one.
    pub(super) best: f64,
    /// `None` for a job that hasn't come to the mark.
    pub(super) arrival: Option<Arrival>,
}

/// A job's evaluation at a mark.
#[derive(Debug, Clone, Copy)]
pub(super) struct Arrival {
    pub(super) step: u64,
    /// Deviation of the latest losses from a straight line; `None` of fewer than three.
    pub(super) noise: Option<f64>,
    /// Whether it was evaluated later: then it stayed, whatever one would say today.
    pub(super) stayed: bool,
}

/// The job's record at each of these marks, ascending: one pass over the curve.
pub(super) fn records(curve: &Curve, marks: &[f64]) -> Vec<Record> {
    let evaluations = &curve.evaluations;
    let (mut best, mut read) = (f64::INFINITY, 0_usize);
    let record = |&mark: &f64| {
        // The evaluation at the last mark may be the one at this mark, too.
        let from = read.saturating_sub(1);
        let is_there = |at: &EvaluationPoint| at.step > 0 && at.progress >= mark;
        let at = evaluations[from..].iter().position(is_there).map(|ahead| from + ahead);
        let end = at.map_or(evaluations.len(), |at| at + 1);
        best = lowest(&evaluations[read..end]).min(best);
        read = end;
        let arrival = |at: usize| Arrival {
            step: evaluations[at].step,
            noise: noise(&evaluations[..=at]),
            stayed: at + 1 < evaluations.len(),
        };
        Record { best, arrival: at.map(arrival) }
    };
    marks.iter().map(record).collect()
}

/// Deviation of the latest losses from a straight line.
fn noise(evaluations: &[EvaluationPoint]) -> Option<f64> {
    let late = &evaluations[evaluations.len().saturating_sub(LATE)..];
    let bend = |three: &[EvaluationPoint]| {
        let [before, middle, after] = [three[0].loss, three[1].loss, three[2].loss];
        // That of the untrained adapter is another matter.
        finite((middle - (before + after) / 2.0).abs()).filter(|_| three[0].step > 0)
    };
    let bend = median(late.windows(3).filter_map(bend).collect())?;
    // The middle of three losses in a line deviates by 3/2 of one loss's variance.
    Some(bend * MEDIAN_TO_DEVIATION / 1.5_f64.sqrt())
}
