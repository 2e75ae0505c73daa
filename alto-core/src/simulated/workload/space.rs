//! The search spaces of the paper.

use serde::{Deserialize, Serialize};

use super::task::TaskJob;

/// A grid: one job for each way of taking one entry of every list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Space {
    /// Peak learning rates.
    pub learning_rates: Vec<f64>,
    /// Ranks.
    pub ranks: Vec<usize>,
    /// Rows in an optimizer step.
    pub batches: Vec<usize>,
}

impl Space {
    /// The grid of ALTO (arXiv:2604.05426) for models that train on so many devices: 5 x 3 x 4 on one, 4 x 4 x 4 with
    /// ranks to 128 on several. Which four learning rates those are, the paper doesn't say; the first are taken, and
    /// no cost depends on it.
    pub fn paper(devices: usize) -> Space {
        let mut learning_rates = vec![1e-5, 5e-5, 2e-4, 3e-4, 5e-4];
        let mut ranks = vec![16, 32, 64];
        if devices > 1 {
            learning_rates.pop();
            ranks.push(128);
        }
        Space { learning_rates, ranks, batches: vec![1, 2, 4, 8] }
    }

    /// The grid's jobs, each to see so many samples: learning rates within batches within ranks.
    pub fn jobs(&self, samples: u64) -> Vec<TaskJob> {
        let mut jobs = Vec::new();
        for &rank in &self.ranks {
            for &batch in &self.batches {
                let job = |&learning_rate| TaskJob { rank, learning_rate, batch, samples };
                jobs.extend(self.learning_rates.iter().map(job));
            }
        }
        jobs
    }
}
