//! The trainer against the simulated backend: what a run decides, keeps and reports, however many places there are.

mod audit;
mod bad_input;
mod curves;
mod exits;
mod follow;
mod memory;
mod not_finite;
mod random;
mod replay;
mod report;
mod search;
mod setup;
mod steps;
mod watched;
