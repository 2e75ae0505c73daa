//! The chance that a job makes up its gap to the lead.
//!
//! With `r = ln(1 / mark) / ln(mark / last mark)`, the way left in units of the way since the last check, a job
//! makes up its gap with a chance of at most
//!
//! ```text
//! P(N(0, 1) > (gap - r * gain) / (caution * sqrt(r) * s)),    s² = gain² + mean of all gains² + noise² + LEAST²
//! ```
//!
//! `gain` is by how much the gap shrank since the last check, where it did. The gap goes on shrinking as it did, on average;
//! around that it walks at random, the wider the more the ranking moved of late and the noisier the losses are. The way is
//! measured from mark to mark, not from one job's evaluation to its next.

use statrs::distribution::{ContinuousCDF, Normal};

use super::{Runner, median};

/// The least spread of a gap: losses are never compared more closely than this share of what was learned.
const LEAST: f64 = 0.001;

/// For each of these, the chance that it still makes up its gap.
pub(super) fn chances(runners: &[Runner], left: f64, learned: f64, caution: f64) -> Vec<f64> {
    let gain = |runner: &Runner| (runner.last_gap - runner.gap).max(0.0);
    let mut gains: Vec<f64> = runners.iter().map(|runner| gain(runner).powi(2)).collect();
    // In order of size, so that the sum is the same in whatever order the jobs are.
    gains.sort_by(f64::total_cmp);
    let gains = gains.iter().sum::<f64>() / runners.len() as f64;
    let noise = median(runners.iter().filter_map(|runner| runner.noise).collect()).unwrap_or(0.0) / learned;
    let normal = Normal::standard();
    let chance = |runner: &Runner| {
        let spread = (gain(runner).powi(2) + gains + noise.powi(2) + LEAST.powi(2)).sqrt();
        let away = (runner.gap - left * gain(runner)) / (caution * left.sqrt() * spread);
        // Where nothing can be said, nobody is cut.
        if away.is_nan() { 1.0 } else { normal.sf(away) }
    };
    runners.iter().map(chance).collect()
}
