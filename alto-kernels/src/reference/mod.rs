//! The slow and obvious version of every kernel, with its gradient: plain loops over f64, no tensor library.
//!
//! They are the oracles of the fast kernels, and of anyone's own: a kernel is right if it agrees with the function
//! of the same name here within the rounding of its dtype. Every `_backward` takes the gradient of some loss with
//! respect to the output (`dy`) and returns the gradients with respect to the inputs, in the order of the inputs.
//!
//! A tensor `[tokens, heads, head_dim]` is a [`Matrix`] `[tokens, heads * head_dim]` here: in row-major order these
//! are the same numbers, and head `h` is columns `h * head_dim..(h + 1) * head_dim`.
//!
//! ```
//! use alto_kernels::LoraLane;
//! use alto_kernels::reference::{Matrix, multi_lora_linear};
//!
//! let x = Matrix::new(2, 1, vec![1.0, 10.0]);
//! let w = Matrix::new(1, 1, vec![3.0]);
//! let (a, b) = (Matrix::new(1, 1, vec![2.0]), Matrix::new(1, 1, vec![5.0]));
//! // Only the second token goes through the adapter.
//! let lanes = [LoraLane { rows: 1..2, ranks: 0..1, scale: 0.5 }];
//! assert_eq!(multi_lora_linear(&x, &w, &a, &b, &lanes).data(), [3.0, 30.0 + 0.5 * 10.0 * 2.0 * 5.0]);
//! ```

mod adamw;
mod attention;
mod log_probs;
mod lora;
mod matrix;
mod norm;
mod rotary;
mod swiglu;

pub use adamw::{AdamWOutcome, adamw};
pub use attention::{causal_attention, causal_attention_backward};
pub use log_probs::{linear_log_probs, linear_log_probs_backward};
pub use lora::{multi_lora_linear, multi_lora_linear_backward};
pub use matrix::Matrix;
pub use norm::{rms_norm, rms_norm_backward};
pub use rotary::{rotary, rotary_backward};
pub use swiglu::{swiglu, swiglu_backward};
