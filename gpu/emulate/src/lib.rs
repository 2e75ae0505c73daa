//! A CUDA driver without a GPU, whose kernels are PTX run on the CPU, an instruction at a time.
//!
//! A program that loads `libcuda.so` at run time, as CubeCL does, runs on it unchanged; `gpu/emulated` lets it. Its host code,
//! tiles and PTX are the same as on a GPU, matrix instructions included. Results are a GPU's; times count instructions and
//! say nothing.
//! It is stricter than a GPU. A launch fails, and says where, if a kernel
//! - reads or writes outside of every allocation, or at an address that isn't a multiple of the access;
//! - touches shared memory that another unit wrote or read without a barrier between them;
//! - reaches a barrier or a matrix instruction with only some of the units that must take part.
//!
//! Fresh memory, shared or not, is filled with NaN, so that what is read before it was written shows.
//!
//! Four variables tell it what to be:
//!
//! | variable | meaning |
//! |---|---|
//! | `EMULATED_SM` | compute capability, 80 or 90 (the default) |
//! | `EMULATED_PTX` | a folder to which every kernel that is launched is written, with its launch in its first line |
//! | `EMULATED_RUN` | `0` to launch nothing: results are garbage, but every kernel was generated |
//! | `EMULATED_THREADS` | threads that blocks are spread over, all processors by default |
//!
//! Instructions are those that CubeCL's generator emits; a kernel with another one fails to load, and the message names it.

mod arithmetic;
mod block;
mod clock;
mod convert;
mod decode;
mod driver;
mod flow;
mod half;
mod instruction;
mod launch;
mod memory;
mod ptx;
mod shared;
#[cfg(test)]
mod tests;
mod values;
mod warp;
