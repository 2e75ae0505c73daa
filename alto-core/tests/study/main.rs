//! Studies: tasks trained on a virtual clock, and fleets of them.

mod ablation;
mod memory;
mod setup;
mod submit;
mod training;
mod trainings;
