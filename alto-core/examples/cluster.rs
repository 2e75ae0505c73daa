//! The ablation of ALTO (arXiv:2604.05426), eleven tasks of four model sizes on eight devices, computed by cost models:
//! `cargo run --release -p alto-core --no-default-features --example cluster -- [DEVICE [CORPUS...]]`.
//!
//! Durations follow from data sheets, what early exit leaves from recorded runs; no number is fitted to the paper's.

use std::error::Error;
use std::path::PathBuf;

use alto_core::exit::LossAware;
use alto_core::exit::replay::Replay;
use alto_core::simulated::read_corpus;
use alto_core::simulated::systems::{Device, System};
use alto_core::simulated::workload::{Ablation, kept_shares};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let device = Device::named(&arguments.next().unwrap_or_else(|| "H100 SXM".to_owned()))?;
    let given: Vec<PathBuf> = arguments.map(PathBuf::from).collect();
    let corpora = if given.is_empty() { committed()? } else { given };
    let corpora = corpora.iter().map(read_corpus).collect::<Result<Vec<_>, _>>()?;
    let kept = kept_shares(&corpora, &LossAware::default(), &Replay::default())?;
    println!("Eight {}; parameters: {}.", device.name, device.source);
    for (without, systems) in [
        ("FSDP, which the paper compares with", &[System::DataParallel][..]),
        ("the fastest of FSDP, pipeline and tensor parallel", &ALONE),
    ] {
        println!("\nWithout batching, tasks of several devices train one adapter after another with {without}.\n");
        print(&Ablation::new(Ablation::paper_tasks(), &device, 8, &kept, systems)?, &kept);
    }
    println!("\n{WHAT_DIFFERS}");
    Ok(())
}

const ALONE: [System; 3] = [System::DataParallel, System::Pipeline, System::TensorParallel];

fn print(ablation: &Ablation, kept: &[Vec<f64>]) {
    println!("{:<17} devices  jobs  samples left    alone  +exits  batched  +exits  alone is", "seconds for");
    for (index, timed) in ablation.tasks.iter().enumerate() {
        let (task, share) = (&timed.task, kept[index % kept.len()].iter().cycle());
        let trained: f64 = task.jobs.iter().zip(share).map(|(job, share)| share * job.samples as f64).sum();
        let left = 100.0 * trained / task.jobs.iter().map(|job| job.samples).sum::<u64>() as f64;
        print!("{:<17} {:>7} {:>5} {left:>12.1}%", task.name, task.devices, task.jobs.len());
        print!(" {:>8.0} {:>7.0} {:>8.0}", timed.alone, timed.alone_with_exits, timed.batched);
        println!(" {:>7.0}  {}", timed.batched_with_exits, timed.alone_by.name());
    }
    println!("\nbatching  scheduling  exits    makespan  over none  speedup  paper  ours / paper");
    for row in &ablation.rows {
        let on = |on| if on { "yes" } else { "-" };
        let (batching, scheduling, exits) = (on(row.batching), on(row.scheduling), on(row.exits));
        print!("{batching:<9} {scheduling:<11} {exits:<5} {:>9.0} s", row.makespan);
        print!(" {:>10.2} {:>8.2}", row.over_none, row.speedup);
        match row.paper {
            Some(paper) => println!(" {paper:>6.2} {:>13.2}", row.speedup / paper),
            None => println!("      -             -"),
        }
    }
}

/// Recorded sweeps of this repository.
fn committed() -> Result<Vec<PathBuf>, Box<dyn Error>> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../testdata/curves/gsm-nano");
    let entries = std::fs::read_dir(folder).map_err(|error| format!("{folder}: {error}"))?;
    let mut paths = entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>, std::io::Error>>()?;
    paths.sort();
    Ok(paths)
}

const WHAT_DIFFERS: &str = "\
Speedups are over batching alone, the paper's 1.00; `over none` is over none of the three. What differs, and why:
- Without batching, one adapter after another waits for launches and reads all weights for few tokens; FSDP also
  sends the whole model for them. The paper doesn't say how its jobs train without batching, but not much slower
  than with it.
- Tensor parallelism sends little over NVLink. In these formulas it trains the 70B model one adapter after another
  faster than adapter parallelism does, since that gathers the model for each pass, and memory leaves it few rows:
  no activations are recomputed here. Against it batching doesn't help that task.
- Early exit saves more here than the paper's 72 to 83% of the samples: the recorded runs are of a model of 0.9
  million parameters, with learning rates up to 0.1, where more jobs are hopeless than in the paper's grid.
- What scheduling wins depends on the tasks and their order. The paper doesn't list them; here its four models take
  turns, all on GSM8K, and a task is placed once, by what it takes with exits, and never moved.
- Costs are rooflines from data sheets: no kernel reaches them. Evaluations, loading and waiting at rungs are left
  out.";
