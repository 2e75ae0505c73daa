//! The search for the least makespan.

mod branch;
#[cfg(feature = "exact")]
mod exact;
mod local;
mod makespan;
mod memory;
mod ruin;
mod score;
mod tail;
mod waste;

pub use makespan::Makespan;
pub use score::Second;
