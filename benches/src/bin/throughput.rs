//! Tokens per second of training many adapters at once, beside the GEMM rate at the same step's shapes.
//!
//! `throughput [--model HIDDENxLAYERSxHEADSxKVxFFNxVOCAB] [--adapters N] [--rank R] [--batch B] [--seq L] [--steps S]`
//! prints one JSON line. The GEMM rate is that of the frozen products alone: each weight of the step times the batch,
//! forward and, where a gradient must pass, backward, in the proportions in which the step needs them.

use std::time::Instant;

use alto_benches::{Random, Shape, cpu_seconds, job, median, training_batch};
use alto_core::backend::{Backend, Slot};
use alto_core::burn::BurnBackend;
use alto_core::model::Linear;
use burn::tensor::{Device, Tensor, TensorData};
use clap::Parser;

#[derive(Parser)]
struct Arguments {
    /// The model's shape.
    #[arg(long, default_value = "288x6x6x6x768x32000", value_parser = |s: &str| Shape::parse(s).ok_or("expected six numbers"))]
    model: Shape,
    /// Adapters trained at once.
    #[arg(long, default_value_t = 8)]
    adapters: usize,
    #[arg(long, default_value_t = 8)]
    rank: usize,
    /// Rows per adapter.
    #[arg(long, default_value_t = 1)]
    batch: usize,
    /// Tokens per row.
    #[arg(long, default_value_t = 128)]
    seq: usize,
    /// Timed optimizer steps.
    #[arg(long, default_value_t = 20)]
    steps: usize,
}

fn main() {
    let arguments = Arguments::parse();
    let Arguments { model, adapters, rank, batch, seq, steps } = arguments;
    let mut backend = BurnBackend::new(model.config(), model.weights(), &Device::flex());
    let attach = |i: usize| backend.attach(&job(format!("j{i}"), rank, batch), None).expect("a job that fits");
    let slots: Vec<Slot> = (0..adapters).map(attach).collect();
    let rows = model.rows(adapters * batch, seq);
    let training = training_batch(&slots, &rows, batch);
    let before = backend.memory().in_use;
    backend.step(&training).expect("a batch that fits");
    let (start, cpu) = (Instant::now(), cpu_seconds());
    for _ in 0..steps {
        backend.step(&training).expect("a batch that fits");
    }
    let losses = backend.read().expect("the device works");
    let (seconds, cpu) = (start.elapsed().as_secs_f64(), cpu_seconds() - cpu);
    let peak = backend.memory().peak;
    assert!(losses.iter().all(|report| report.not_finite.is_none()), "a loss isn't finite");
    let (first, last) = (losses[0].loss, losses[losses.len() - adapters].loss);
    assert!(last < first, "the loss of the same rows falls, got {first} then {last}");

    let tokens = (adapters * batch * seq * steps) as f64;
    let (flop, gemm_seconds) = gemm_floor(&model, training.tokens.len());
    let step_seconds = seconds / steps as f64;
    println!(
        "{}",
        serde_json::json!({
            "adapters": adapters, "rank": rank, "batch": batch, "seq": seq, "steps": steps,
            "threads": rayon::current_num_threads(),
            "tokens_per_s": tokens / seconds, "cpu_seconds": cpu, "tokens_per_cpu_s": tokens / cpu,
            "step_ms": step_seconds * 1e3, "gemm_floor_ms": gemm_seconds * 1e3,
            "gemm_gflops": flop / gemm_seconds / 1e9, "share_of_gemm_rate": gemm_seconds / step_seconds,
            "model_mb": before >> 20, "peak_mb": peak >> 20, "loss_first": first, "loss_last": last,
        })
    );
}

/// Operations of a step's frozen products over `tokens`, and the time they take by themselves with Burn's matmul.
fn gemm_floor(model: &Shape, tokens: usize) -> (f64, f64) {
    let config = model.config();
    let mut shapes: Vec<([usize; 2], usize)> =
        Linear::ALL.iter().map(|linear| (linear.shape(&config), 2 * model.layers)).collect();
    // Nothing below the first block needs a gradient.
    for (shape, count) in &mut shapes[..3] {
        *count -= usize::from(shape[1] == model.hidden);
    }
    shapes.push(([model.vocabulary, model.hidden], 2));
    let device = Device::flex();
    let mut random = Random(4);
    let (mut flop, mut seconds) = (0.0, 0.0);
    for ([d_out, d_in], count) in shapes {
        let mut tensor = |rows, columns| {
            Tensor::<2>::from_data(
                TensorData::new(random.matrix(rows, columns, 1.0).into_data(), [rows, columns]),
                &device,
            )
        };
        let (x, w, dy) = (tensor(tokens, d_in), tensor(d_out, d_in), tensor(tokens, d_out));
        let time = |run: &dyn Fn() -> Tensor<2>| {
            median((0..7).map(|_| {
                let start = Instant::now();
                std::hint::black_box(run());
                start.elapsed().as_secs_f64()
            }))
        };
        let forward = time(&|| x.clone().matmul(w.clone().transpose()));
        let backward = time(&|| dy.clone().matmul(w.clone()));
        let backwards = count / 2;
        seconds += forward * (count - backwards) as f64 + backward * backwards as f64;
        flop += 2.0 * (tokens * d_in * d_out * count) as f64;
    }
    (flop, seconds)
}
