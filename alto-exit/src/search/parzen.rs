//! Where values were found, as a density.

use statrs::function::erf::{erf, erf_inv};

use super::draws::Draws;

/// A mixture of normal distributions on the line from 0 to 1, each cut off at its ends: one around each value, and a wide
/// one for what is not known.
///
/// A value's is as wide as the farther of its two neighbours is away, between `1 / min(100, 1 + values)` and 1 (Bergstra
/// et al., 2011, leave the bounds open; these are hyperopt's).
#[derive(Debug)]
pub(super) struct Parzen {
    kernels: Vec<Kernel>,
}

#[derive(Debug)]
struct Kernel {
    mean: f64,
    deviation: f64,
    /// Its part from 0 to 1, before it is cut off.
    mass: f64,
}

impl Parzen {
    /// The density of values from 0 to 1, in any order.
    pub(super) fn around(mut values: Vec<f64>) -> Self {
        values.sort_by(f64::total_cmp);
        let prior = Kernel::new(0.5, 1.0);
        let narrowest = 1.0 / (1 + values.len()).min(100) as f64;
        let at = |index: usize| values.get(index).copied();
        let kernels = values.iter().enumerate().map(|(index, &mean)| {
            let left = mean - index.checked_sub(1).and_then(at).unwrap_or(0.0);
            let right = at(index + 1).unwrap_or(1.0) - mean;
            Kernel::new(mean, left.max(right).clamp(narrowest, 1.0))
        });
        Self { kernels: kernels.chain([prior]).collect() }
    }

    /// A place, as likely as it is dense.
    pub(super) fn draw(&self, draws: &mut Draws) -> f64 {
        self.kernels[draws.below(self.kernels.len())].at(draws.unit())
    }

    /// The density at a place.
    pub(super) fn density(&self, place: f64) -> f64 {
        self.mean(|kernel| kernel.density(place))
    }

    /// The part of it that lies on a stretch.
    pub(super) fn mass(&self, (from, to): (f64, f64)) -> f64 {
        self.mean(|kernel| (kernel.below(to) - kernel.below(from)) / kernel.mass)
    }

    fn mean(&self, of: impl Fn(&Kernel) -> f64) -> f64 {
        self.kernels.iter().map(of).sum::<f64>() / self.kernels.len() as f64
    }
}

impl Kernel {
    fn new(mean: f64, deviation: f64) -> Self {
        let whole = Self { mean, deviation, mass: 1.0 };
        Self { mass: whole.below(1.0) - whole.below(0.0), ..whole }
    }

    /// The part of the whole normal distribution that lies below a place.
    fn below(&self, place: f64) -> f64 {
        0.5 + 0.5 * erf((place - self.mean) / (self.deviation * std::f64::consts::SQRT_2))
    }

    /// The place with this share of what isn't cut off below it.
    fn at(&self, share: f64) -> f64 {
        let below = self.below(0.0) + share * self.mass;
        let place = self.mean + self.deviation * std::f64::consts::SQRT_2 * erf_inv(2.0 * below - 1.0);
        place.clamp(0.0, 1.0)
    }

    fn density(&self, place: f64) -> f64 {
        let z = (place - self.mean) / self.deviation;
        (-0.5 * z * z).exp() / (self.deviation * self.mass * (2.0 * std::f64::consts::PI).sqrt())
    }
}
