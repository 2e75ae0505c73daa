//! The example `tune` as people run it: what it refuses before any training, and what it leaves behind.
// The lint's exemption for tests leaves out the functions that they share.
#![allow(clippy::unwrap_used)]

mod arguments;
mod data;
mod desk;
mod grid;
mod model;
mod outcome;
mod outputs;
mod policy;
