//! The kernels on Burn's Flex backend: plain memory, [`gemm`] for products, rayon for threads.

mod adamw;
mod attention;
mod log_probs;
mod lora;
mod matrix;
mod norm;
mod rotary;
mod swiglu;
mod tensor;
mod vector;
