//! Recorded runs played again: who ends where, what that saves, and what it costs.

mod adaptive_rung;
mod corpora;
mod play;
mod properties;
mod rank_correlation;
mod report;
mod runs;
mod verdicts;
