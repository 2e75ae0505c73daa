//! Workloads: made from seeds, read from traces, timed, and the paper's ablation over them.

mod ablation;
mod arrivals;
mod duration;
mod generator;
mod trace;
mod trainer;
