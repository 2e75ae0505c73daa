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
        self.smoothing(alpha).collect()
    }

    /// The last so many of [`smoothed`](Self::smoothed), or all where there are fewer.
    pub(crate) fn latest_smoothed(&self, alpha: f64, count: usize) -> Vec<Smoothed> {
        let before = self.trained().count().saturating_sub(count);
        self.smoothing(alpha).skip(before).collect()
    }

    fn smoothing(&self, alpha: f64) -> impl Iterator<Item = Smoothed> {
        let mut train = self.train.iter().peekable();
        let mut average = None;
        self.trained().map(move |evaluation| {
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
