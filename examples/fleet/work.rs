//! A task that is read and checked: how long it takes, how it trains, and how it would on a simulated device.

use std::error::Error;
use std::path::PathBuf;
use std::time::Instant;

use alto_core::burn::BurnBackend;
use alto_core::data::{Dataset, Tokenizer};
use alto_core::exit::{LossAware, Policy};
use alto_core::fleet::{Profile, ProfileKey, Profiles, Timeline, Watch};
use alto_core::job::Job;
use alto_core::model::{ModelConfig, ModelWeights};
use alto_core::sched::Task;
use alto_core::simulated::{RecordedRun, SimulatedBackend};
use alto_core::trainer::{Candidate, Outcome, TrainError, Trainer};
use alto_examples::{quickstart, read_policy, read_rows};
use burn::tensor::Device;

use crate::file::TaskFile;
use crate::lost::Lost;

pub(crate) type Fallible<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// All that a task's training needs.
#[derive(Debug)]
pub(crate) struct Work {
    pub(crate) name: String,
    pub(crate) after: f64,
    devices: u32,
    /// Threads of a device.
    share: usize,
    pub(crate) model: PathBuf,
    config: ModelConfig,
    train: Dataset,
    val: Dataset,
    jobs: Vec<Job>,
    policy: Policy,
    trainer: Trainer,
    lost_after: Option<u64>,
}

impl Work {
    /// Reads what the task names; a device has so many threads.
    pub(crate) fn read(task: TaskFile, share: usize) -> Fallible<Self> {
        let TaskFile { name, after, devices, slots, interval, lost_after, grid, .. } = task;
        let quickstart = quickstart();
        let model = task.model.unwrap_or_else(|| quickstart.join("gsm-nano"));
        let (config, tokenizer) = (ModelConfig::read(&model)?, Tokenizer::read(&model)?);
        let train = task.train.unwrap_or_else(|| quickstart.join("data/train.jsonl"));
        let val = task.val.unwrap_or_else(|| quickstart.join("data/val.jsonl"));
        let train = read_rows(&train, &tokenizer, &config)?;
        let val = read_rows(&val, &tokenizer, &config)?;
        let jobs = grid.jobs(train.examples().len())?;
        let policy = match task.policy {
            Some(path) => read_policy(&path)?,
            None => Policy::LossAware(LossAware::default()),
        };
        let trainer = Trainer { slots, interval, ..Trainer::default() };
        Ok(Self { name, after, devices, share, model, config, train, val, jobs, policy, trainer, lost_after })
    }

    /// What it needs, by a profile that is measured if it isn't known; the seconds that this took; what a simulated
    /// device is to charge.
    pub(crate) fn plan(&self, profiles: &mut Profiles) -> Fallible<(Task, f64, Profile)> {
        let (profile, seconds) = profiles.get_or_measure(self.profile_key(), || self.measure())?;
        let duration = profile.duration(&self.trainer, &self.jobs, &self.train, &self.val);
        Ok((Task::rigid(&self.name, self.devices, duration), seconds, profile.clone()))
    }

    fn profile_key(&self) -> ProfileKey {
        let lanes: Vec<String> =
            self.together().iter().map(|job| format!("{} x {}", job.batch, job.adapter.rank)).collect();
        let tokens: usize = self.train.examples().iter().map(|row| row.tokens.len()).sum();
        ProfileKey {
            model: self.model.display().to_string(),
            shape: format!("{}; {tokens} tokens in {} rows", lanes.join(", "), self.train.examples().len()),
            device: format!("flex, {} threads", self.threads()),
            version: env!("CARGO_PKG_VERSION").to_owned(),
        }
    }

    /// Those of its jobs that train together at first.
    fn together(&self) -> &[Job] {
        &self.jobs[..self.trainer.slots.unwrap_or(self.jobs.len()).min(self.jobs.len())]
    }

    fn measure(&self) -> Fallible<Profile> {
        self.on_its_threads(|| {
            let (mut backend, began) = (self.backend()?, Instant::now());
            let clock = || began.elapsed().as_secs_f64();
            Ok(Profile::measure(&mut backend, &self.train, self.together(), &clock)?)
        })
    }

    /// Trains, and tells the fleet when it expects to end.
    pub(crate) fn train(&self, watch: &Watch) -> Fallible<Result<Outcome, TrainError>> {
        self.on_its_threads(|| {
            let mut backend = self.backend()?;
            let mut backend = Lost { backend: &mut backend, after: self.lost_after };
            let (candidates, mut observe) = (self.candidates(), watch.follow(&self.jobs));
            Ok(self.trainer.run(&mut backend, &self.train, &self.val, candidates, &self.policy, &mut observe))
        })
    }

    /// What becomes of it on a simulated device that is as fast as the profile says and knows these runs.
    pub(crate) fn simulate(&self, profile: &Profile, runs: Vec<RecordedRun>) -> Fallible<Timeline> {
        let runs = self.jobs.iter().map(|job| job.name.clone()).zip(runs);
        let mut backend = SimulatedBackend::new(runs, profile.cost_model())?;
        let clock = backend.clock();
        let mut backend = Lost { backend: &mut backend, after: self.lost_after };
        let (train, val) = (&self.train, &self.val);
        Ok(Timeline::trained(&clock, &self.trainer, &mut backend, train, val, self.candidates(), &self.policy).0)
    }

    /// Whether it is meant to fail.
    pub(crate) fn is_to_fail(&self) -> bool {
        self.lost_after.is_some()
    }

    fn candidates(&self) -> Vec<Candidate> {
        self.jobs.iter().cloned().map(Candidate::from).collect()
    }

    fn backend(&self) -> Fallible<BurnBackend> {
        let weights = ModelWeights::read(&self.model, &self.config)?;
        Ok(BurnBackend::new(self.config.clone(), weights, &Device::flex()))
    }

    fn threads(&self) -> usize {
        self.devices as usize * self.share
    }

    /// Everything that computes here takes the threads of the pool that it runs in.
    fn on_its_threads<T: Send>(&self, act: impl FnOnce() -> Fallible<T> + Send) -> Fallible<T> {
        rayon::ThreadPoolBuilder::new().num_threads(self.threads()).build()?.install(act)
    }
}
