//! Every policy on curves made by hand, on random curves, and on recorded ones.

mod any_of;
mod curve;
mod curves;
mod diverging;
mod files;
mod overfitting;
mod properties;
mod recorded;
mod settings;
mod underperforming;
