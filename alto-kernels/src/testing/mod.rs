//! Does a device compute what the references compute? Every kernel on one table of awkward batches.
//!
//! For those who bring a device or a dtype that nobody has tried yet, and for those who implement a `...Kernel` trait for a
//! backend of their own: [`Kernel::compare`] runs a kernel forward and backward on a [`Shape`] and sets each tensor that
//! comes out beside its [`mod@reference`](crate::reference), which computes in f64 from the same numbers. What rounding
//! may cost is a table by kernel and dtype, [`Tolerance`].
//!
//! ```
//! use alto_kernels::testing::{Kernel, shapes};
//! use burn::tensor::{DType, Device};
//!
//! for kernel in Kernel::ALL {
//!     for shape in shapes().iter().filter(|shape| shape.tokens() < 20) {
//!         for comparison in kernel.compare(shape, &Device::flex(), DType::F32) {
//!             assert!(comparison.passes(), "{kernel}: {}: {comparison}", shape.name);
//!         }
//!     }
//! }
//! ```

mod comparison;
mod draws;
mod kernel;
mod number;
mod runs;
mod shapes;
mod tolerance;

pub use comparison::Comparison;
pub use draws::Draws;
pub use kernel::Kernel;
pub use number::{largest, rounded, smallest};
pub use shapes::{Shape, shapes};
pub use tolerance::Tolerance;
