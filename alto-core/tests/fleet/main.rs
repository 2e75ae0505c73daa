//! Fleets of many tasks: what starts when, on virtual clocks and on threads.

mod checker;
mod dry_run;
mod estimate;
mod fairness;
mod follow;
mod history;
mod hostile;
mod profiles;
mod properties;
mod refusals;
mod replanning;
mod replay;
mod report;
mod setup;
mod threads;
mod training;
mod unruly;
mod window;
mod won;
