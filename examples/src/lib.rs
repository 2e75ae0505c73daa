//! What the recipes share, so that each shows its own idea only; see the `examples` of this package.
#![forbid(unsafe_code)]

use std::io::Write;

mod arguments;
mod device;
mod inputs;
mod output;
mod policy;
mod progress;

pub use arguments::Arguments;
pub use device::DeviceName;
pub use inputs::{quickstart, read_rows};
pub use output::{check_outputs, fresh, save_adapter, write_new};
pub use policy::read_policy;
pub use progress::Progress;

/// An error with its causes, on one line.
pub fn chain(error: &dyn std::error::Error) -> String {
    let causes: Vec<String> =
        std::iter::successors(Some(error), |error| error.source()).map(ToString::to_string).collect();
    causes.join(": ").split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Writes a line on standard error, if anyone still reads it.
pub fn tell(line: std::fmt::Arguments) {
    let _ = writeln!(std::io::stderr(), "{line}");
}
