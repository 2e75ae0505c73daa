//! What trains where and when.
//!
//! This crate decides and computes nothing else: every function here is pure, takes what is free, what waits and
//! what each of it needs, and answers with indices into what it was given. Nothing in it knows of models, adapters or
//! devices, so a trainer that shares nothing else with this workspace can use it. It has two halves, which share
//! nothing but this page.
//!
//! # Between tasks, on a cluster
//! A [`Scheduler`] looks at a [`Snapshot`] (the [`Cluster`], what is [`Running`], the [`Task`]s that wait) and makes a
//! [`Plan`], which [`Plan::check`] tries to refute from the snapshot alone. Each plan says how far from the least
//! makespan it may be.
//! - [`Makespan`] is the one to use: the last task ends as early as it can be made to.
//! - [`FirstComeFirstServed`], [`Backfill`], [`ShortestFirst`] and [`LongestFirst`] look at each task once.
//!
//! Replanning is the same call on a later snapshot, with the last plan's placements as [`Snapshot::previous`].
//!
//! ```
//! use alto_sched::{Choice, Cluster, Makespan, Running, Scheduler, Snapshot, Task};
//!
//! // 16 H100 in two machines and 4 A100, of which one machine is half taken for ten more minutes.
//! let cluster = Cluster::default().with("H100", 16, 8).with("A100", 4, 4);
//! let running = vec![Running { name: "earlier".into(), devices: vec![0, 1, 2, 3], until: 600.0 }];
//! let on = |kind: &str, width, duration| Choice { kind: Some(kind.into()), width, duration, memory: 0 };
//! let task = |name: &str, options| Task { name: name.into(), release: 0.0, weight: 1.0, options };
//! let waiting = vec![
//!     task("70B", vec![on("H100", 8, 1800.0)]),
//!     task("32B", vec![on("H100", 4, 1500.0), on("H100", 8, 900.0)]),
//!     task("8B", vec![on("H100", 1, 700.0), on("A100", 1, 1400.0)]),
//! ];
//! let snapshot = Snapshot { cluster, running, waiting, ..Snapshot::default() };
//! let plan = Makespan::default().plan(&snapshot)?;
//! plan.check(&snapshot)?;
//! assert_eq!((plan.makespan, plan.proven), (1800.0, true));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! With the feature `exact`, [`Makespan`] also asks a constraint-programming engine (Pumpkin, in pure Rust), which
//! proves some plans optimal that branch and bound can't.
//!
//! # Within one task, on one device
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

mod cluster;
mod device;

pub use cluster::{
    Backfill, CheckError, Choice, Cluster, FirstComeFirstServed, Gantt, Holder, Instance, InstanceError,
    InstanceOption, InstanceTask, LongestFirst, Makespan, Node, PLAN_VERSION, Placement, Plan, PlanError,
    PlanFileError, Refused, Running, RunningFault, Scheduler, Second, ShortestFirst, Snapshot, Task, TaskFault,
};
pub use device::{
    AdmissionError, Coefficients, FitError, Load, MEMORY_MODEL_VERSION, MemoryModel, MemorySample, ModelError, Need,
    Room, admit, backfill, check,
};
