//! Ends a job whose training and validation loss rise together.

use serde::{Deserialize, Serialize};

use crate::curve::Curve;
use crate::policy::{ExitPolicy, Verdict};
use crate::reason::{Reason, Series};
use crate::setting::{SettingError, Settings, checked};
use crate::smoothed::Smoothed;

/// Ends a job when the slopes of its smoothed training loss and of its validation loss both reach a threshold over
/// `window` evaluations, `patience` times in a row; and at once when a recorded loss is not finite.
///
/// A slope is that of the least-squares line, per evaluation. The earliest exit is at evaluation
/// `window + patience - 1`, the third by default; an evaluation before the first step doesn't count, and neither does
/// a window in which no training loss is known yet. Deserialized settings are checked.
///
/// It sees rises, not heights: a loss that explodes between two evaluations and then creeps down is never caught.
///
/// Source: ALTO (arXiv:2604.05426); the moving average's factor is ours, since the paper gives none.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(remote = "Self", default, deny_unknown_fields)]
pub struct Diverging {
    /// Evaluations in a window, at least 2.
    pub window: usize,
    /// Least slope of both losses, in nats per token and evaluation.
    pub threshold: f64,
    /// Windows in a row, each ending one evaluation after the other; at least 1.
    pub patience: usize,
    /// Weight of the newest training loss in the moving average, over 0 and at most 1.
    pub ema: f64,
}

checked!(Diverging, "diverging");

impl Default for Diverging {
    fn default() -> Self {
        Self { window: 2, threshold: 0.001, patience: 2, ema: 0.3 }
    }
}

impl ExitPolicy for Diverging {
    fn judge(&self, job: usize, cohort: &[Curve]) -> Verdict {
        let curve = &cohort[job];
        if self.check().is_err() {
            return Verdict::Keep;
        }
        self.verdict(curve, &curve.latest_smoothed(self.ema, self.needed()))
    }

    fn compares(&self) -> bool {
        false
    }

    fn check(&self) -> Result<(), SettingError> {
        let settings = Settings("diverging");
        settings.at_least(2, "window", self.window)?;
        settings.finite("threshold", self.threshold)?;
        settings.at_least(1, "patience", self.patience)?;
        settings.share("ema", self.ema)
    }
}

impl Diverging {
    /// How many of the latest evaluations it looks at.
    pub(super) fn needed(&self) -> usize {
        self.window.saturating_add(self.patience - 1)
    }

    /// The verdict by the latest evaluations, with right settings.
    pub(super) fn verdict(&self, curve: &Curve, evaluations: &[Smoothed]) -> Verdict {
        if let Some(reason) = not_finite(curve) {
            return Verdict::Exit(reason);
        }
        let latest_first = evaluations.windows(self.window).rev().take(self.patience);
        let rising: Vec<Slopes> = latest_first
            .map_while(Slopes::over)
            .take_while(|slopes| slopes.train >= self.threshold && slopes.validation >= self.threshold)
            .collect();
        match rising.first() {
            Some(latest) if rising.len() == self.patience => Verdict::Exit(Reason::Diverging {
                step: latest.step,
                train_slope: latest.train,
                validation_slope: latest.validation,
                threshold: self.threshold,
                window: self.window,
                patience: self.patience,
            }),
            _ => Verdict::Keep,
        }
    }
}

/// The first recorded loss that is not finite; on the same step the training loss, which came first.
fn not_finite(curve: &Curve) -> Option<Reason> {
    // Nearly every curve is done with here, and without a branch by loss; the search below takes several times as long.
    let is_finite = curve.train.iter().fold(true, |all, point| all & point.loss.is_finite())
        & curve.evaluations.iter().fold(true, |all, point| all & point.loss.is_finite());
    if is_finite {
        return None;
    }
    let training = curve.train.iter().map(|point| (point.step, Series::Training, point.loss));
    let validation = curve.evaluations.iter().map(|point| (point.step, Series::Validation, point.loss));
    training
        .chain(validation)
        .filter(|(_, _, loss)| !loss.is_finite())
        .min_by_key(|&(step, _, _)| step)
        .map(|(step, series, loss)| Reason::NotFinite { step, series, loss })
}

/// Slopes of one window, per evaluation.
struct Slopes {
    step: u64,
    train: f64,
    validation: f64,
}

impl Slopes {
    /// `None` where no training loss is known yet at one of the window's evaluations.
    fn over(window: &[Smoothed]) -> Option<Self> {
        let train: Vec<f64> = window.iter().map(|point| point.train).collect::<Option<_>>()?;
        let validation: Vec<f64> = window.iter().map(|point| point.validation).collect();
        Some(Self { step: window.last()?.step, train: slope(&train), validation: slope(&validation) })
    }
}

/// Slope of the least-squares line through `(0, y[0]), (1, y[1]), ...`.
fn slope(y: &[f64]) -> f64 {
    let centre = (y.len() - 1) as f64 / 2.0;
    let (mut rise, mut spread) = (0.0, 0.0);
    for (i, value) in y.iter().enumerate() {
        let x = i as f64 - centre;
        // Relative to the first value, so that a flat line is flat to the last bit.
        rise += x * (value - y[0]);
        spread += x * x;
    }
    rise / spread
}
