//! The example `tune` as people run it: what it refuses before any training, and what it leaves behind.

mod arguments;
mod data;
mod desk;
mod grid;
mod model;
mod outcome;
mod outputs;
