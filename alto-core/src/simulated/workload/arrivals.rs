//! When tasks come.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use super::error::WorkloadError;

/// How tasks come, all by chance.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Arrivals {
    /// All at the start.
    AtOnce,
    /// Each by itself: a Poisson process, whose gaps are exponential.
    Poisson {
        /// Tasks in an hour, on average.
        per_hour: f64,
    },
    /// In bursts, as when a team submits its experiments: bursts are a Poisson process, their sizes geometric, and a
    /// burst's tasks come evenly within a time.
    Bursty {
        /// Bursts in an hour, on average.
        bursts_per_hour: f64,
        /// Tasks in a burst, on average; at least 1.
        mean_size: f64,
        /// Seconds within which a burst's tasks come.
        spread: f64,
    },
}

impl Arrivals {
    /// When the first so many tasks come, in seconds, ascending. The same seed gives the same times.
    ///
    /// # Errors
    /// A rate that isn't a finite number over 0, a mean size under 1, or a spread under 0.
    pub fn times(&self, tasks: usize, seed: u64) -> Result<Vec<f64>, WorkloadError> {
        self.check()?;
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let mut gap = |per_hour: f64| -(1.0 - random.random::<f64>()).ln() * 3600.0 / per_hour;
        match *self {
            Arrivals::AtOnce => Ok(vec![0.0; tasks]),
            Arrivals::Poisson { per_hour } => {
                let next = |at: &mut f64, _| {
                    *at += gap(per_hour);
                    Some(*at)
                };
                Ok((0..tasks).scan(0.0, next).collect())
            }
            Arrivals::Bursty { bursts_per_hour, mean_size, spread } => {
                Ok(bursts(&mut random, tasks, bursts_per_hour, mean_size, spread))
            }
        }
    }

    fn check(&self) -> Result<(), WorkloadError> {
        let out = |setting, value, expected| Err(WorkloadError::OutOfRange { setting, value, expected });
        let over_zero = |value: f64| value.is_finite() && value > 0.0;
        match *self {
            Arrivals::Poisson { per_hour } if !over_zero(per_hour) => {
                out("per_hour", per_hour, "a finite number over 0")
            }
            Arrivals::Bursty { bursts_per_hour, .. } if !over_zero(bursts_per_hour) => {
                out("bursts_per_hour", bursts_per_hour, "a finite number over 0")
            }
            Arrivals::Bursty { mean_size, .. } if !(mean_size.is_finite() && mean_size >= 1.0) => {
                out("mean_size", mean_size, "a finite number of at least 1")
            }
            Arrivals::Bursty { spread, .. } if !(spread.is_finite() && spread >= 0.0) => {
                out("spread", spread, "a finite number of at least 0")
            }
            _ => Ok(()),
        }
    }
}

fn bursts(random: &mut ChaCha8Rng, tasks: usize, per_hour: f64, mean_size: f64, spread: f64) -> Vec<f64> {
    let mut times = Vec::with_capacity(tasks);
    let mut start = 0.0;
    while times.len() < tasks {
        start += -(1.0 - random.random::<f64>()).ln() * 3600.0 / per_hour;
        // One, and one more as long as chance will have it.
        loop {
            times.push(start + spread * random.random::<f64>());
            if times.len() == tasks || random.random::<f64>() < 1.0 / mean_size {
                break;
            }
        }
    }
    // Bursts may overlap.
    times.sort_by(f64::total_cmp);
    times
}
