//! Every kernel against its plain reference, on one table of awkward shapes; the references against finite
//! differences and against values computed by PyTorch.

mod adamw;
mod attention;
mod compare;
mod data;
mod device;
mod finite_differences;
mod known_values;
mod log_probs;
mod lora;
mod norm;
mod rotary;
mod shapes;
mod swiglu;
mod testing;
mod tolerance;
