//! Ends a job whose curve, drawn out to the end of its budget, hardly gets under the best loss there is.

use serde::{Deserialize, Serialize};

use crate::curve::{Curve, EvaluationPoint};
use crate::policy::{ExitPolicy, Verdict};
use crate::power_law::{MOST_POINTS, Outlook, Point, outlook};
use crate::reason::Reason;
use crate::setting::{SettingError, Settings, checked};

/// Ends a job when the chance that its loss at the end of the budget is under the lowest that any job has reached so far
/// is less than `bound`.
///
/// The validation loss is taken to fall as `a + b * t^-c` in the progress `t`, with `b >= 0`, and with noise of one
/// size. For each exponent `c` on a grid from 0.25 to 3, finer about the best, the weighted least squares give `a` and `b` in
/// closed form; a residual weighs as its progress, so that the recent course counts most. The residuals give each
/// exponent a Student t distribution of the loss at the end, and its likelihood as weight; the chance is that of the
/// mixture, so it is small only if every exponent that fits says so. Of more than 32 evaluations, the latest and others
/// evenly spaced, 32 at most, are fitted.
///
/// A curve of this family is lowest at its end, so "at the end" is "ever"; noise that dips lower on the way is left out.
/// A curve that rises is taken as level. The job that holds the lowest loss, or ties with it, is never ended. It is
/// silent before `evaluations` with finite losses, after the end of the budget, and where numbers overflow.
///
/// A learning rate's warm-up bends the curve the other way and makes a job look hopeless:
/// [`NotBefore`](crate::NotBefore) its end. So does a learning rate that decays to zero, which gives a late fall.
///
/// Losses scaled by a positive constant give the same verdicts, within rounding. Deserialized settings are checked.
///
/// Source: Domhan, Springenberg & Hutter, "Speeding Up Automatic Hyperparameter Optimization of Deep Neural Networks by
/// Extrapolation of Learning Curves", IJCAI 2015, for the rule; they mix eleven families by Monte Carlo. For the family
/// alone: Viering & Loog, "The Shape of Learning Curves: a Review" (arXiv:2103.10948).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(remote = "Self", default, deny_unknown_fields)]
pub struct Extrapolation {
    /// A job with less chance is ended; over 0 and under 1.
    pub bound: f64,
    /// Evaluations with finite losses that a fit takes, at least 4.
    pub evaluations: usize,
}

checked!(Extrapolation, "extrapolation");

impl Default for Extrapolation {
    /// The paper's chance of 0.05, and a tenth of the budget where it is evaluated a hundred times.
    fn default() -> Self {
        Self { bound: 0.05, evaluations: 10 }
    }
}

impl ExitPolicy for Extrapolation {
    fn judge(&self, job: usize, cohort: &[Curve]) -> Verdict {
        self.judge_all(&[job], cohort).remove(0)
    }

    fn judge_all(&self, jobs: &[usize], cohort: &[Curve]) -> Vec<Verdict> {
        let best: Vec<f64> = cohort.iter().map(Curve::lowest).collect();
        let target = best.iter().copied().fold(f64::INFINITY, f64::min);
        let verdict = |&job: &usize| {
            // Whoever holds the target has nothing to beat.
            if self.check().is_err() || best[job] <= target {
                Verdict::Keep
            } else {
                self.verdict(&cohort[job], target)
            }
        };
        jobs.iter().map(verdict).collect()
    }

    fn check(&self) -> Result<(), SettingError> {
        let settings = Settings("extrapolation");
        settings.require(self.bound > 0.0 && self.bound < 1.0, "bound", self.bound, "over 0 and under 1")?;
        settings.at_least(4, "evaluations", self.evaluations)
    }
}

impl Extrapolation {
    fn verdict(&self, curve: &Curve, target: f64) -> Verdict {
        let Some(latest) = curve.latest().filter(|latest| latest.progress < 1.0) else { return Verdict::Keep };
        let is_usable = |at: &&EvaluationPoint| at.step > 0 && at.loss.is_finite() && at.progress > 0.0;
        let latest_first = curve.evaluations.iter().rev();
        if latest_first.clone().filter(is_usable).take(self.evaluations).count() < self.evaluations {
            return Verdict::Keep;
        }
        let thinned = latest_first.step_by(curve.evaluations.len().div_ceil(MOST_POINTS));
        let points: Vec<Point> =
            thinned.filter(is_usable).map(|at| Point { progress: at.progress, loss: at.loss }).collect();
        // Few may be left of a long curve with hardly any finite loss.
        if points.len() < 4 {
            return Verdict::Keep;
        }
        match outlook(&points, target) {
            Some(Outlook { expected, chance }) if chance < self.bound => Verdict::Exit(Reason::Extrapolation {
                step: latest.step,
                expected,
                target,
                chance,
                bound: self.bound,
                evaluations: points.len(),
            }),
            _ => Verdict::Keep,
        }
    }
}
