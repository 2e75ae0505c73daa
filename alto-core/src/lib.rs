//! Tunes many LoRA adapters in one pass over one frozen base model, and stops the hopeless ones early.
//!
//! - A [`Job`](job::Job) is one hyperparameter configuration; a [`SearchSpace`](search_space::SearchSpace) makes a grid of them.
//! - A [`Trainer`](trainer::Trainer) trains all jobs on a [`Backend`](backend::Backend), asks an
//!   [`ExitPolicy`](exit::ExitPolicy) which of them to end, gives their places to the next, and keeps the adapter of each
//!   job's best validation loss.
//! - [`BurnBackend`](burn::BurnBackend) is a Llama model from a Hugging Face directory, on Burn. Whatever else can make an
//!   optimizer step can be a backend too; [`SimulatedBackend`](simulated::SimulatedBackend) replays recorded curves.
//! - A [`Fleet`](fleet::Fleet) runs many such tasks on a cluster, each where and when the last of them ends the earliest.
//! - [`study`] has both run on simulated devices and clusters, at any scale.
//! - [`peft`] writes an adapter as PEFT and vLLM load it.
//!
//! Each job gets the losses and the adapter that it gets alone, whoever joins or leaves; [`testing`] checks that, and that
//! they are those of transformers and PEFT.
//!
//! # Example
//! ```no_run
//! use std::path::Path;
//!
//! use alto_core::backend::Backend;
//! use alto_core::burn::BurnBackend;
//! use alto_core::data::{Dataset, Tokenizer};
//! use alto_core::exit::LossAware;
//! use alto_core::peft;
//! use alto_core::search_space::SearchSpace;
//! use alto_core::trainer::Trainer;
//!
//! let model = Path::new("models/SmolLM2-135M");
//! let mut backend = BurnBackend::read(model)?;
//! let tokenizer = Tokenizer::read(model)?;
//! let context = backend.config().context;
//! let train = Dataset::read(Path::new("train.jsonl"), &tokenizer, context)?;
//! let validation = Dataset::read(Path::new("val.jsonl"), &tokenizer, context)?;
//!
//! let grid = "
//!     version = 1
//!     learning_rate = [1e-4, 1e-3, 1e-2]
//!     rank = [8, 16]
//!     batch = [1, 2]
//!     epochs = 3
//! ";
//! let jobs = SearchSpace::from_toml(grid)?.jobs(train.examples().len())?;
//! let candidates = jobs.into_iter().map(Into::into).collect();
//! let outcome = Trainer::default().run(
//!     &mut backend,
//!     &train,
//!     &validation,
//!     candidates,
//!     &LossAware::default(),
//!     &mut |event| println!("{:6.1} s: {}", event.seconds, event.kind),
//! )?;
//! println!("{}", outcome.report.table());
//! if let Some(best) = outcome.report.winner.and_then(|job| outcome.adapters[job].as_ref()) {
//!     peft::export(best, Path::new("adapter"), "SmolLM2-135M")?;
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Features
//! `flex`, on by default, brings [`burn`] with Burn's CPU backend. `cuda`, `wgpu`, `vulkan`, `metal` and `rocm` add CubeCL's
//! devices, `cpu` its CPU runtime, for tests: [`BurnBackend::with_dtype`](burn::BurnBackend::with_dtype) takes the device.
//! Without any this crate builds without Burn: traits, trainer and simulated backend, for someone who brings another
//! framework.

#![forbid(unsafe_code)]

pub mod adapter;
pub mod backend;
pub mod batch;
#[cfg(feature = "flex")]
pub mod burn;
pub mod data;
pub mod dtype;
pub mod fleet;
pub mod job;
pub mod matrix;
pub mod model;
pub mod peft;
pub mod search_space;
pub mod simulated;
pub mod study;
pub mod tensor_file;
pub mod testing;
pub mod trainer;
mod version;

#[doc(inline)]
pub use alto_exit as exit;
#[cfg(feature = "flex")]
#[doc(inline)]
pub use alto_kernels as kernels;
#[doc(inline)]
pub use alto_sched as sched;
