//! Workloads: made from seeds, read from traces.

mod arrivals;
mod generator;
mod trace;
