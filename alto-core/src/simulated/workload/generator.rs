//! Workloads out of a seed.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use super::arrivals::Arrivals;
use super::error::WorkloadError;
use super::space::Space;
use super::task::TuningTask;

/// Makes tasks by chance: the same settings give the same tasks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Generator {
    /// Seed of all choices.
    pub seed: u64,
    /// How many tasks.
    pub tasks: usize,
    /// When they come.
    pub arrivals: Arrivals,
    /// Of what models, by weight.
    pub models: Vec<ModelShare>,
    /// On what data, each as likely.
    pub data: Vec<DataSize>,
    /// Passes over the data.
    pub epochs: f64,
}

/// How often a model is tuned.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelShare {
    /// Name of a [shipped model](crate::simulated::systems::ModelShape::shipped).
    pub model: String,
    /// Devices that it trains on.
    pub devices: usize,
    /// How likely it is, over the sum of all weights.
    pub weight: f64,
}

/// A data set by its size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DataSize {
    /// Rows of training data.
    pub rows: u64,
    /// Tokens of each.
    pub row_tokens: u64,
}

impl DataSize {
    /// GSM8K: 7,473 rows of training data, of 450 characters on average, which is 140 tokens at 3.2 characters each.
    pub const GSM8K: DataSize = DataSize { rows: 7473, row_tokens: 140 };
    /// OpenThoughts3-1.2M: 1,200,000 rows of reasoning, which take 28 GB compressed, so that nearly all are longer than
    /// the 2,048 tokens that they are cut to here.
    pub const OPEN_THOUGHTS_3: DataSize = DataSize { rows: 1_200_000, row_tokens: 2048 };
    /// Tulu 3's SFT mixture: 939,343 rows in 2,914,250,827 bytes, by its card: 3,102 each, or 775 tokens at 4 bytes.
    pub const TULU_3: DataSize = DataSize { rows: 939_343, row_tokens: 775 };
    /// UltraFeedback, binarized: 61,135 pairs in 405,688,662 bytes, by its card: 6,636 for a prompt and three
    /// conversations that begin with it (chosen, rejected, and chosen again). At about 2,000 bytes a conversation and 4
    /// bytes a token that is 500 tokens for each of a pair.
    pub const ULTRA_FEEDBACK: DataSize = DataSize { rows: 61_135, row_tokens: 500 };
}

impl ModelShare {
    /// The models of ALTO's evaluation (arXiv:2604.05426) and the devices that each trained on, in equal shares.
    pub fn paper() -> Vec<ModelShare> {
        let models = [("Llama-3.1-8B", 1), ("Qwen2.5-7B", 1), ("Qwen2.5-32B", 2), ("Llama-3.1-70B", 4)];
        let share = |(model, devices): (&str, usize)| ModelShare { model: model.to_owned(), devices, weight: 1.0 };
        models.map(share).into()
    }
}

impl Generator {
    /// So many tasks as in ALTO's evaluation: its models in equal shares and its search spaces, three passes over
    /// GSM8K.
    pub fn paper(seed: u64, tasks: usize, arrivals: Arrivals) -> Generator {
        Generator { seed, tasks, arrivals, models: ModelShare::paper(), data: vec![DataSize::GSM8K], epochs: 3.0 }
    }

    /// The tasks in the order in which they come, named by their index and model.
    ///
    /// # Errors
    /// No models or data, a weight, number of epochs or arrival rate that isn't a finite number over 0.
    pub fn tasks(&self) -> Result<Vec<TuningTask>, WorkloadError> {
        self.check()?;
        let releases = self.arrivals.times(self.tasks, self.seed)?;
        // A stream of its own, so that other arrivals leave the tasks as they are.
        let mut random = ChaCha8Rng::seed_from_u64(self.seed);
        random.set_stream(1);
        let all: f64 = self.models.iter().map(|share| share.weight).sum();
        let task = |(index, release): (usize, f64)| {
            let mut left = all * random.random::<f64>();
            let share = self.models.iter().find(|share| {
                left -= share.weight;
                left < 0.0
            });
            let share = share.unwrap_or(&self.models[self.models.len() - 1]);
            let data = self.data[random.random_range(0..self.data.len())];
            let samples = (self.epochs * data.rows as f64).ceil() as u64;
            TuningTask {
                name: format!("{index}-{}", share.model),
                release,
                model: share.model.clone(),
                devices: share.devices,
                row_tokens: data.row_tokens,
                jobs: Space::paper(share.devices).jobs(samples),
            }
        };
        Ok(releases.into_iter().enumerate().map(task).collect())
    }

    fn check(&self) -> Result<(), WorkloadError> {
        for (setting, is_empty) in [("models", self.models.is_empty()), ("data", self.data.is_empty())] {
            if is_empty {
                return Err(WorkloadError::Empty { setting });
            }
        }
        let weights = self.models.iter().map(|share| ("weight", share.weight));
        for (setting, value) in weights.chain([("epochs", self.epochs)]) {
            if !(value.is_finite() && value > 0.0) {
                return Err(WorkloadError::OutOfRange { setting, value, expected: "a finite number over 0" });
            }
        }
        match self.models.iter().find(|share| share.devices == 0) {
            Some(_) => Err(WorkloadError::OutOfRange { setting: "devices", value: 0.0, expected: "at least 1" }),
            None => Ok(()),
        }
    }
}
