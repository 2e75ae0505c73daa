//! Every policy on curves made by hand, on random curves, and on recorded ones.

mod adaptive_rung;
mod any_of;
mod curve;
mod curves;
mod decorators;
mod diverging;
mod every;
mod extrapolation;
mod files;
mod halving;
mod median_stopping;
mod overfitting;
mod patience;
mod properties;
mod recorded;
mod settings;
mod underperforming;
mod worse_than_untrained;
