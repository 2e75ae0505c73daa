//! Every search on spaces and histories made by hand and at random.

mod grid;
mod properties;
mod random;
mod spaces;
mod tpe;
mod trials;
