//! What the cost models say of systems that train many adapters, beside what ALTO (arXiv:2604.05426) measured on H100:
//! `cargo run --release -p alto-core --no-default-features --example systems`.

use std::error::Error;

use alto_core::dtype::Dtype;
use alto_core::exit::LossAware;
use alto_core::exit::replay::Replay;
use alto_core::simulated::read_corpus;
use alto_core::simulated::systems::{AdapterLoad, Device, ModelShape, Optimizer, Setup, System};
use alto_core::simulated::workload::{Ablation, kept_shares};

fn main() -> Result<(), Box<dyn Error>> {
    let device = Device::named("H100 SXM")?;
    kernels(&device)?;
    tasks(&device)?;
    println!("\n{WHAT_DIFFERS}");
    Ok(())
}

/// Llama-3.2-1B, 32 adapters of rank 16, rows of 256 tokens.
fn kernels(device: &Device) -> Result<(), Box<dyn Error>> {
    println!("A step of 32 adapters of Llama-3.2-1B, in milliseconds, and over it one after another:\n");
    println!("batch   one after another   adapter parallel    mLoRA   LoRAFusion  speedup  paper");
    for (batch, paper) in [(1, 5.1), (2, 3.7), (4, 2.5)] {
        let loads = vec![AdapterLoad::new(16, batch, 256); 32];
        let milliseconds = |system| -> Result<f64, Box<dyn Error>> {
            let model = ModelShape::named("Llama-3.2-1B")?;
            let (device, optimizer) = (device.clone(), Optimizer::AdamW8Bit);
            let setup = Setup { system, device, model, dtype: Dtype::Bf16, devices: 1, optimizer };
            Ok(1e3 * setup.step(&loads)?.seconds())
        };
        let (alone, together) = (milliseconds(System::OneAfterAnother)?, milliseconds(System::AdapterParallel)?);
        let (mlora, fused) = (milliseconds(System::MLora)?, milliseconds(System::LoraFusion)?);
        let speedup = alone / together;
        println!("{batch:>5}  {alone:>18.1} {together:>18.1} {mlora:>8.1} {fused:>12.1} {speedup:>8.2} {paper:>6.1}");
    }
    Ok(())
}

/// Each model's task on GSM8K: adapter parallelism with exits, the mean over the recorded sweeps, over LoRAFusion to
/// the end of every job.
fn tasks(device: &Device) -> Result<(), Box<dyn Error>> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../testdata/curves/gsm-nano");
    let corpora = ["answer-s0", "answer-s1", "ask-s0", "ask-s1", "cram-s0", "cram-s1", "solve-s0", "solve-s1"]
        .map(|name| read_corpus(format!("{folder}/{name}.json")));
    let corpora = corpora.into_iter().collect::<Result<Vec<_>, _>>()?;
    let kept = kept_shares(&corpora, &LossAware::default(), &Replay::default())?;
    println!("\nHours of a task of the paper's grid on GSM8K, and speed over LoRAFusion with early exit:\n");
    println!("{:<14} devices  LoRAFusion  adapter parallel  with exits  speedup  paper", "model");
    for (task, paper) in Ablation::paper_tasks().into_iter().zip([9.5, 8.7, 9.4, 10.5]) {
        let hours = |system, kept: &[f64]| -> Result<f64, Box<dyn Error>> {
            Ok(task.seconds(&task.setup(system, device)?, kept)? / 3600.0)
        };
        let (fusion, together) = (hours(System::LoraFusion, &[])?, hours(System::AdapterParallel, &[])?);
        let each = kept.iter().map(|kept| hours(System::AdapterParallel, kept)).collect::<Result<Vec<f64>, _>>()?;
        let exits = each.iter().sum::<f64>() / each.len() as f64;
        print!("{:<14} {:>7} {fusion:>11.2} {together:>17.2} {exits:>11.2}", task.model, task.devices);
        println!(" {:>8.1} {paper:>6.1}", fusion / exits);
    }
    Ok(())
}

const WHAT_DIFFERS: &str = "\
What differs, and why: the paper's are measured, these are rooflines, which no kernel reaches. LoRAFusion's memory and
the filling of its pipeline are ideal here. The 70B model is gathered for each pass of adapter parallelism, and memory
leaves it few rows, since no activations are recomputed: there a full pipeline, which moves no weights, is ahead.";
