//! What the cost models say of systems that train many adapters, beside what ALTO (arXiv:2604.05426) measured on H100:
//! `cargo run --release -p alto-core --no-default-features --example systems`.

use std::error::Error;

use alto_core::dtype::Dtype;
use alto_core::simulated::systems::{AdapterLoad, Device, ModelShape, Optimizer, Setup, System};
use alto_core::simulated::workload::ModelShare;

fn main() -> Result<(), Box<dyn Error>> {
    let device = Device::named("H100 SXM")?;
    kernels(&device)?;
    models(&device)?;
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
            let setup = Setup { system, device, model, dtype: Dtype::Bf16, devices: 1, optimizer, recompute: false };
            Ok(1e3 * setup.step(&loads)?.seconds())
        };
        let (alone, together) = (milliseconds(System::OneAfterAnother)?, milliseconds(System::AdapterParallel)?);
        let (mlora, fused) = (milliseconds(System::MLora)?, milliseconds(System::LoraFusion)?);
        let speedup = alone / together;
        println!("{batch:>5}  {alone:>18.1} {together:>18.1} {mlora:>8.1} {fused:>12.1} {speedup:>8.2} {paper:>6.1}");
    }
    Ok(())
}

/// Sixteen adapters of rank 16, four rows of GSM8K's length each, on each of the paper's models and its devices.
fn models(device: &Device) -> Result<(), Box<dyn Error>> {
    println!(
        "\nA step of 16 adapters of rank 16, four rows of 140 tokens each, in milliseconds; * recomputes activations:\n"
    );
    print!("{:<14} devices", "model");
    System::ALL.iter().for_each(|system| print!("  {:>20}", system.name()));
    println!();
    for ModelShare { model, devices, .. } in ModelShare::paper() {
        print!("{model:<14} {devices:>7}");
        let (dtype, optimizer) = (Dtype::Bf16, Optimizer::AdamW8Bit);
        for system in System::ALL {
            let (device, model) = (device.clone(), ModelShape::named(&model)?);
            let kept = Setup { system, device, model, dtype, devices, optimizer, recompute: false };
            let loads = vec![AdapterLoad::new(16, 4, 140); 16];
            let setup = if kept.fits(&loads)? { kept } else { Setup { recompute: true, ..kept } };
            let mark = if setup.recompute { "*" } else { " " };
            match setup.fits(&loads)? {
                true => print!("  {:>19.0}{mark}", 1e3 * setup.step(&loads)?.seconds()),
                false => print!("  {:>20}", "doesn't fit "),
            }
        }
        println!();
    }
    Ok(())
}

const WHAT_DIFFERS: &str = "\
The paper's are measured, these are rooflines, which no kernel reaches. LoRAFusion's memory and the filling of its
pipeline are ideal here. Where a model is gathered for each pass, as FSDP does and adapter parallelism for models over
half a device, that is most of the time; pipeline and tensor parallelism move no weights.";
