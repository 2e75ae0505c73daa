//! The training loss, smoothed, beside the validation loss: what windows look at.

use crate::curve::Curve;

/// One evaluation after the first step, and the smoothed training loss up to it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Smoothed {
    /// Optimizer steps done before the evaluation.
    pub step: u64,
    /// Samples seen over samples budgeted.
    pub progress: f64,
    /// Exponential moving average of the training losses up to this step; `None` where none is recorded yet.
    pub train: Option<f64>,
    /// Validation loss, in nats per token.
    pub validation: f64,
}

impl Curve {
    /// The moving average of the training loss, sampled at each evaluation after the first step.
    ///
    /// Seeded with the first loss, then `alpha * loss + (1 - alpha) * average`, step by step; an `alpha` of 1 doesn't
    /// smooth. From a loss that is not finite on, the average isn't either.
    pub fn smoothed(&self, alpha: f64) -> Vec<Smoothed> {
        self.smoothing(alpha, 0, None, 0).collect()
    }

    /// The last so many of [`smoothed`](Self::smoothed), or all where there are fewer.
    pub(crate) fn latest_smoothed(&self, alpha: f64, count: usize) -> Vec<Smoothed> {
        let before = self.trained().count().saturating_sub(count);
        // What the evaluations before have taken in, in one go.
        let until = self.trained().take(before).map(|evaluation| evaluation.step).max();
        let (average, taken) = match (until, self.train.split_first()) {
            (Some(until), Some((first, others))) if first.step <= until => {
                let (mut average, mut taken) = (first.loss, 1);
                for point in others.iter().take_while(|point| point.step <= until) {
                    average = alpha * point.loss + (1.0 - alpha) * average;
                    taken += 1;
                }
                (Some(average), taken)
            }
            _ => (None, 0),
        };
        self.smoothing(alpha, before, average, taken).collect()
    }

    /// Goes on after so many evaluations, which have taken in so many training losses.
    fn smoothing(
        &self,
        alpha: f64,
        before: usize,
        mut average: Option<f64>,
        taken: usize,
    ) -> impl Iterator<Item = Smoothed> {
        let mut train = self.train[taken..].iter().peekable();
        self.trained().skip(before).map(move |evaluation| {
            while let Some(point) = train.next_if(|point| point.step <= evaluation.step) {
                average = Some(average.map_or(point.loss, |so_far| alpha * point.loss + (1.0 - alpha) * so_far));
            }
            Smoothed {
                step: evaluation.step,
                progress: evaluation.progress,
                train: average,
                validation: evaluation.loss,
            }
        })
    }
}
