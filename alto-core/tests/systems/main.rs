//! What systems cost: by hand, by property, and in the order that papers report.

mod backend;
mod bad_input;
mod by_hand;
mod orders;
mod properties;
mod setup;
mod shipped;
