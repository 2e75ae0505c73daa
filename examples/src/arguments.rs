//! The arguments of `tune`.

use std::path::PathBuf;

use alto_core::dtype::Dtype;
use clap::Parser;

use crate::DeviceName;

/// What `tune` is told on the command line.
#[derive(Debug, Parser)]
#[command(about = "Tunes LoRA adapters over a grid; without arguments, the quick start")]
pub struct Arguments {
    /// Llama model in Hugging Face's layout, with its tokenizer.
    #[arg(long, value_name = "DIR", requires_all = ["train", "val", "out"])]
    pub model: Option<PathBuf>,
    /// Training rows, a JSONL file of {"prompt": "...", "completion": "..."}.
    #[arg(long, value_name = "FILE", requires = "val")]
    pub train: Option<PathBuf>,
    /// Validation rows, likewise.
    #[arg(long, value_name = "FILE", requires = "train")]
    pub val: Option<PathBuf>,
    /// Where the best adapter goes; must not exist.
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Grid of hyperparameters in TOML; that of the quick start if not given.
    #[arg(long, value_name = "FILE")]
    pub grid: Option<PathBuf>,
    /// Which jobs end early, a JSON file such as {"version": 1, "policy": "never"}; the paper's policy if not given.
    #[arg(long, value_name = "FILE")]
    pub policy: Option<PathBuf>,
    /// Where the report goes; OUT/report.json if not given.
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
    /// Jobs that train at a time; as many as fit if not given.
    #[arg(long, value_name = "N")]
    pub slots: Option<usize>,
    /// Memory that the whole process may take, of the device if it has its own; no limit if not given.
    #[arg(long = "memory", value_name = "GIB", value_parser = gib)]
    pub memory_bytes: Option<u64>,
    /// Progress between a job's evaluations.
    #[arg(long, value_name = "SHARE", default_value_t = 0.02)]
    pub interval: f64,
    /// Share of the jobs that the policy ended, drawn at random, that run on to their end afterwards: the report then says how
    /// often the policy was wrong.
    #[arg(long, value_name = "SHARE", default_value_t = 0.0)]
    pub audit: f64,
    /// What it trains on: flex (the CPU), cpu (CubeCL's, for tests), wgpu, or cuda, commonly with a number, as cuda:1.
    #[arg(long, value_name = "DEVICE", default_value = "flex")]
    pub device: DeviceName,
    /// What the frozen model computes in: f32, f16 or bf16; adapters are f32 always.
    #[arg(long, value_name = "DTYPE", default_value = "f32")]
    pub dtype: Dtype,
    /// Threads, at most 256; one for each core if not given.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub threads: Option<u16>,
}

impl Arguments {
    /// Those that this process was started with; ends it if they are wrong.
    pub fn of_this_process() -> Self {
        Self::parse()
    }
}

fn gib(text: &str) -> Result<u64, String> {
    match text.parse::<f64>() {
        Ok(gib) if gib.is_finite() && gib > 0.0 => Ok((gib * f64::from(1 << 30)) as u64),
        _ => Err("expected a finite positive number of GiB".to_owned()),
    }
}
