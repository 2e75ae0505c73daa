//! What trains where and when.
//!
//! This crate decides and computes nothing else: every function here is pure, takes what is free, what waits and
//! what each job needs, and answers with indices into what it was given. Nothing in it knows of models, adapters or
//! devices, so a trainer that shares nothing else with this workspace can use it.
//!
//! Within one task, on one device:
//! - [`MemoryModel`] learns from a short profile how many bytes a batch takes, and keeps its largest error as margin;
//! - [`admit`] picks which waiting jobs begin: the largest batch size first, while it fits;
//! - [`backfill`] picks who takes the place of jobs that ended: first a waiting job of the same batch size, then any
//!   that fits;
//! - [`check`] finds a job that would wait forever, before anything has begun.
//!
//! ```
//! use alto_sched::{Load, MemoryModel, MemorySample, Need, Room, admit, backfill};
//!
//! // A profile: one adapter of 2 MB, steps of three sizes, the peak that the device reported for each.
//! let sample = |tokens, peak| MemorySample { load: Load { adapter_bytes: 2_000_000, tokens, squared_tokens: 0 }, peak };
//! let model = MemoryModel::fit(
//!     &[sample(128, 103_280_000), sample(256, 104_560_000), sample(512, 107_120_000)],
//!     false,
//! )?;
//! assert_eq!(model.predict(&Load { adapter_bytes: 4_000_000, tokens: 1000, squared_tokens: 0 }), 114_000_000);
//!
//! // Three jobs wait; the device has 118 MB and three slots.
//! let need = |batch: usize| Need {
//!     load: Load { adapter_bytes: 2_000_000, tokens: 128 * batch as u64, squared_tokens: 0 },
//!     batch,
//! };
//! let room = Room { budget: Some(118_000_000), slots: Some(3) };
//! let waiting = [need(1), need(4), need(8)];
//! assert_eq!(admit(&model, &[], &waiting, &room)?, [2, 0]); // 8 first; 4 doesn't fit beside it, 1 does
//!
//! // The job of batch size 8 ends early: none of its size waits, so the next largest takes its place.
//! assert_eq!(backfill(&model, &[need(1)], &[need(4)], &[8], &room)?, [0]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

mod admission;
mod least_squares;
mod memory;

pub use admission::{AdmissionError, Need, Room, admit, backfill, check};
pub use memory::{Coefficients, FitError, Load, MEMORY_MODEL_VERSION, MemoryModel, MemorySample, ModelError};
