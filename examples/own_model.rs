//! A Burn model and a training loop of one's own, with many adapters in one pass.
//!
//! [`multi_lora_linear`] stands where a linear layer stood; model, loss, optimizer and loop are one's own, in Burn. Here a
//! small frozen network gets an adapter for each of four tasks, of different ranks and numbers of rows, all trained in one
//! batch. Then each is trained alone and gets the same losses: lanes share the frozen weights and nothing else.

use alto_kernels::{LoraLane, LoraLanes, multi_lora_linear};
use burn::module::{Module, Param};
use burn::optim::{AdamWConfig, GradientsParams};
use burn::tensor::{Device, Distribution, Tensor, activation::relu};

/// Input, hidden and output.
const WIDTHS: [usize; 3] = [16, 32, 4];
/// Rank and rows of each task.
const TASKS: [(usize, usize); 4] = [(2, 24), (4, 40), (8, 16), (4, 32)];
const STEPS: usize = 100;

/// A frozen linear layer, and all tasks' factors for it, stacked along the rank.
#[derive(Module, Debug)]
struct Adapted {
    /// `[d_out, d_in]`, no parameter: it gets no gradient.
    weight: Tensor<2>,
    /// `[ranks, d_in]`.
    a: Param<Tensor<2>>,
    /// `[ranks, d_out]`.
    b: Param<Tensor<2>>,
}

#[derive(Module, Debug)]
struct Network {
    layers: Vec<Adapted>,
}

impl Network {
    fn new(frozen: &[Tensor<2>; 2], tasks: &[usize]) -> Self {
        let layer = |weight: &Tensor<2>| {
            let [d_out, d_in] = weight.dims();
            let ranks = tasks.iter().map(|&task| TASKS[task].0);
            // As PEFT starts: `a` within 1 / sqrt(d_in), `b` zero, so that the network is the frozen one at first.
            let start = tasks.iter().map(|&task| random([TASKS[task].0, d_in], (d_in as f64).powf(-0.5), 10 + task));
            let a = Param::from_tensor(Tensor::cat(start.collect(), 0));
            let b = Param::from_tensor(Tensor::zeros([ranks.sum(), d_out], &weight.device()));
            Adapted { weight: weight.clone(), a, b }
        };
        Self { layers: frozen.iter().map(layer).collect() }
    }

    fn forward(&self, x: Tensor<2>, lanes: &LoraLanes) -> Tensor<2> {
        let apply =
            |layer: &Adapted, x| multi_lora_linear(x, layer.weight.clone(), layer.a.val(), layer.b.val(), lanes);
        apply(&self.layers[1], relu(apply(&self.layers[0], x)))
    }
}

/// Each lane's rows and ranks, end to end.
fn lanes(tasks: &[usize]) -> LoraLanes {
    let (mut row, mut rank) = (0, 0);
    let lane = |&task: &usize| {
        let (ranks, rows) = TASKS[task];
        (row, rank) = (row + rows, rank + ranks);
        LoraLane { rows: row - rows..row, ranks: rank - ranks..rank, scale: 2.0 / ranks as f32 }
    };
    LoraLanes::new(tasks.iter().map(lane).collect())
}

/// A task's rows, and what a network near the frozen one makes of them.
fn rows(frozen: &[Tensor<2>; 2], task: usize) -> (Tensor<2>, Tensor<2>) {
    let x = random([TASKS[task].1, WIDTHS[0]], 1.0, 20 + task);
    let near = |weight: &Tensor<2>, seed| weight.clone() + random(weight.dims(), 0.3, seed);
    let hidden = relu(x.clone().matmul(near(&frozen[0], 30 + task).transpose()));
    (x, hidden.matmul(near(&frozen[1], 40 + task).transpose()))
}

/// Trains these tasks in one pass; each one's loss, by step.
fn train(frozen: &[Tensor<2>; 2], tasks: &[usize]) -> Vec<Vec<f32>> {
    let (mut network, lanes) = (Network::new(frozen, tasks), lanes(tasks));
    let (x, y): (Vec<_>, Vec<_>) = tasks.iter().map(|&task| rows(frozen, task)).unzip();
    let (x, y) = (Tensor::cat(x, 0), Tensor::cat(y, 0));
    let mut optimizer = AdamWConfig::new().with_weight_decay(0.0).init();
    let mut losses = vec![vec![]; tasks.len()];
    for _ in 0..STEPS {
        let error = (network.forward(x.clone(), &lanes) - y.clone()).square();
        // Each task has a mean of its own, so that nobody's gradient depends on how many rows others have.
        let means = lanes.iter().map(|lane| error.clone().slice([lane.rows.clone()]).mean());
        let means = Tensor::cat(means.collect(), 0);
        for (losses, loss) in losses.iter_mut().zip(means.to_data().iter::<f32>()) {
            losses.push(loss);
        }
        let gradients = GradientsParams::from_grads(means.sum().backward(), &network);
        network = optimizer.step(0.02, network, gradients);
    }
    losses
}

/// Uniform numbers within `bound`, the same for the same seed.
fn random(shape: [usize; 2], bound: f64, seed: usize) -> Tensor<2> {
    let device = Device::flex().autodiff();
    device.seed(seed as u64);
    Tensor::random(shape, Distribution::Uniform(-bound, bound), &device)
}

fn main() {
    let frozen = [random([WIDTHS[1], WIDTHS[0]], 0.4, 0), random([WIDTHS[2], WIDTHS[1]], 0.3, 1)];
    let together = train(&frozen, &[0, 1, 2, 3]);
    for (task, (losses, (rank, rows))) in together.iter().zip(TASKS).enumerate() {
        let alone = &train(&frozen, &[task])[0];
        let differences = losses.iter().zip(alone).map(|(a, b)| (a - b).abs() / b);
        let difference = differences.fold(0.0, f32::max);
        let (first, last) = (losses[0], losses[STEPS - 1]);
        println!(
            "task {task}, rank {rank}, {rows} rows: loss {first:.4} to {last:.4}, off by {difference:.1e} from alone"
        );
        assert!(last < 0.5 * first, "it learns");
        assert!(difference < 1e-4, "its losses are those that it has alone, but for rounding");
    }
}
