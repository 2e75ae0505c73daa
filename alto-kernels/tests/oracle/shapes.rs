//! The library's table of awkward batches.

pub(crate) use alto_kernels::testing::{Shape, shapes};
