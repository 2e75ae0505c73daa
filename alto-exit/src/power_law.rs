//! Losses that fall as a power of progress, drawn out to the end of the budget.
//!
//! `loss = a + b * t^-c + noise` with `b >= 0`, `t` the progress and the noise's variance `s^2 / t`. Given `c`, weighted
//! least squares give `a`, `b` and the residual sum; the loss at `t = 1` is then distributed as Student's t with `n - 2`
//! degrees of freedom, about `a + b`, with scale `s * sqrt(1 + leverage)`. Exponents on a grid that
//! is finer about the best are mixed by their likelihood, the residual sum to the power `-n / 2`, times the share of the
//! grid that each stands for.

use statrs::distribution::{ContinuousCDF, StudentsT};

/// The grid's exponents are `1/4, 2/4, ..., 12/4`: their powers need two roots and products.
const EXPONENTS: u32 = 12;

/// How often the grid's spacing is halved about the exponent that fits best.
const HALVINGS: i32 = 4;

/// More points than these would not be worth their time.
pub(crate) const MOST_POINTS: usize = 32;

/// A loss at a progress over 0.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Point {
    pub(crate) progress: f64,
    pub(crate) loss: f64,
}

/// What the course so far says about the loss at the end of the budget.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Outlook {
    pub(crate) expected: f64,
    /// Probability of a loss under the target.
    pub(crate) chance: f64,
}

/// The outlook from at least four points, latest first; `None` where the numbers can't be fitted.
pub(crate) fn outlook(points: &[Point], target: f64) -> Option<Outlook> {
    let latest = points.first()?.progress;
    // All numbers are relative, to the latest progress and the largest loss: nothing overflows, whatever the unit.
    let unit = points.iter().map(|point| point.loss.abs()).fold(f64::MIN_POSITIVE, f64::max);
    let times: Vec<f64> = points.iter().map(|point| point.progress / latest).collect();
    let losses: Vec<f64> = points.iter().map(|point| point.loss / unit).collect();
    let fits = fits(&Course::of(times, losses), 1.0 / latest);

    let n = points.len() as f64;
    let distribution = StudentsT::new(0.0, 1.0, n - 2.0).ok()?;
    let least = fits.iter().map(|fit| fit.residual).fold(f64::INFINITY, f64::min);
    let (mut all, mut expected, mut chance) = (0.0, 0.0, 0.0);
    for (at, fit) in fits.iter().enumerate() {
        let (before, after) = (&fits[at.saturating_sub(1)], &fits[(at + 1).min(fits.len() - 1)]);
        let weight = (after.exponent - before.exponent) * (fit.residual / least).powf(-n / 2.0);
        // The distribution is dear, and this fit changes next to nothing.
        if weight < 1e-4 {
            continue;
        }
        let scale = (fit.residual / (n - 2.0) * fit.spread).sqrt();
        all += weight;
        expected += weight * fit.end;
        chance += weight * distribution.cdf((target / unit - fit.end) / scale);
    }
    let outlook = Outlook { expected: expected / all * unit, chance: chance / all };
    (outlook.expected.is_finite() && outlook.chance.is_finite()).then_some(outlook)
}

/// Losses at times relative to the latest, with what all fits need of them.
struct Course {
    times: Vec<f64>,
    losses: Vec<f64>,
    /// Sum of the weights, which are the times.
    weight: f64,
    mean: f64,
    /// Weighted sum of squares about the mean.
    total: f64,
}

/// The least squares for one exponent.
struct Fit {
    exponent: f64,
    /// The loss at the end, `a + b`.
    end: f64,
    /// Weighted sum of squared residuals.
    residual: f64,
    /// Variance of a loss at the end over that of a loss now.
    spread: f64,
}

/// The fits that can be computed, by ascending exponent. The horizon is the time of the end.
fn fits(course: &Course, horizon: f64) -> Vec<Fit> {
    let quarter = |time: &f64| time.sqrt().sqrt().recip();
    let (roots, end_root) = (course.times.iter().map(quarter).collect::<Vec<_>>(), quarter(&horizon));
    let (mut powers, mut end_power) = (vec![1.0; roots.len()], 1.0);
    let on_grid = |quarters| {
        powers.iter_mut().zip(&roots).for_each(|(power, root)| *power *= root);
        end_power *= end_root;
        course.fit(f64::from(quarters) / 4.0, &powers, end_power)
    };
    let mut fits: Vec<Fit> = (1..=EXPONENTS).filter_map(on_grid).collect();

    let logs: Vec<f64> = course.times.iter().map(|time| time.ln()).collect();
    for halving in 1..=HALVINGS {
        let Some(best) = fits.iter().min_by(|a, b| a.residual.total_cmp(&b.residual)) else { break };
        let (middle, reach) = (best.exponent, 0.25 * 0.5_f64.powi(halving));
        for exponent in [middle - reach, middle + reach] {
            powers.iter_mut().zip(&logs).for_each(|(power, log)| *power = (-exponent * log).exp());
            fits.extend(course.fit(exponent, &powers, horizon.powf(-exponent)));
        }
    }
    fits.sort_by(|a, b| a.exponent.total_cmp(&b.exponent));
    fits
}

impl Course {
    fn of(times: Vec<f64>, losses: Vec<f64>) -> Self {
        let weight: f64 = times.iter().sum();
        let mean = times.iter().zip(&losses).map(|(w, loss)| w * loss).sum::<f64>() / weight;
        let total = times.iter().zip(&losses).map(|(w, loss)| w * (loss - mean).powi(2)).sum();
        Self { times, losses, weight, mean, total }
    }

    /// The least squares for these powers of the times; `None` where they overflow.
    fn fit(&self, exponent: f64, powers: &[f64], end_power: f64) -> Option<Fit> {
        let power_mean = self.times.iter().zip(powers).map(|(w, power)| w * power).sum::<f64>() / self.weight;
        let (mut xx, mut xy) = (0.0, 0.0);
        for ((w, power), loss) in self.times.iter().zip(powers).zip(&self.losses) {
            xx += w * (power - power_mean).powi(2);
            xy += w * (power - power_mean) * (loss - self.mean);
        }
        let ahead = end_power - power_mean;
        let slope = (xy / xx).max(0.0);
        // What rounding leaves of a perfect fit: no certainty is greater.
        let floor = 1e-15 * self.total + powers.len() as f64 * 1e-24;
        let fit = Fit {
            exponent,
            end: self.mean + slope * ahead,
            residual: (self.total - slope * xy).max(floor),
            spread: 1.0 + 1.0 / self.weight + if slope > 0.0 { ahead * ahead / xx } else { 0.0 },
        };
        [fit.end, fit.residual, fit.spread].iter().all(|number| number.is_finite()).then_some(fit)
    }
}
