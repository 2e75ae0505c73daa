//! Recorded runs played again: who ends where, what that saves, and what it costs.

mod corpora;
mod play;
mod properties;
mod rank_correlation;
mod report;
mod runs;
