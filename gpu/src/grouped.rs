//! Each grouped launch by itself, beside the time that moving its operands takes.

use std::collections::BTreeMap;

use burn::tensor::Tensor;

use crate::clock::Clock;
use crate::launches::{self, by_kernel};
use crate::layer::Layer;
use crate::record::{Record, Table, ms, ms_or_none, ratio};
use crate::run::Run;

/// What no launch can go below.
pub(crate) struct Limits {
    /// Bytes per second, read and written: the fastest copy of ours or PyTorch's.
    bandwidth: f64,
    /// Seconds that a launch with next to nothing to do is said to take.
    empty: f64,
}

impl Limits {
    pub(crate) fn measure(record: &mut Record, run: &Run, clock: &Clock) -> Self {
        let tensor = Tensor::<1>::zeros([run.sizes.copied], (&run.device, run.dtype));
        let seconds = clock.time(|| drop(tensor.clone().add_scalar(1.0)));
        let ours = 2.0 * (run.sizes.copied * run.dtype.size()) as f64 / seconds;
        let bandwidth = run.torch.bandwidth.map_or(ours, |torch| torch.max(ours));
        let one = Tensor::<1>::zeros([1], (&run.device, run.dtype));
        let empty = median_seconds(run, clock, || drop(one.clone().add_scalar(1.0))).into_values();
        let empty = empty.map(|(_, seconds)| seconds).fold(0.0, f64::max);
        record.figure("copy, Burn: bytes per second".to_owned(), ours);
        record.figure("copy, fastest: bytes per second".to_owned(), bandwidth);
        record.figure("launch of nothing: seconds".to_owned(), empty);
        Self { bandwidth, empty }
    }

    /// The table of these rows.
    pub(crate) fn table(&self, rows: Vec<Vec<String>>) -> Table {
        Table {
            title: "Grouped launches".to_owned(),
            note: format!(
                "Milliseconds on the device of all launches of a kernel in one forward and backward, and of moving what \
                 they must at {:.0} GB/s, the fastest copy measured here; what fits in a cache may be faster. A launch of \
                 nothing is said to take {} ms; the last column is without that.",
                self.bandwidth / 1e9,
                ms(self.empty)
            ),
            columns: vec!["kernel", "shape", "launches", "ours", "floor", "floor / ours", "less empty launches"],
            rows,
        }
    }
}

/// A layer that is timed.
pub(crate) struct Timed<'l> {
    pub(crate) clock: &'l Clock,
    pub(crate) layer: &'l Layer,
    pub(crate) name: &'l str,
    pub(crate) shape: [usize; 2],
    pub(crate) tokens: usize,
}

/// A row for each grouped kernel that a forward and a backward launch.
pub(crate) fn rows(record: &mut Record, run: &Run, timed: &Timed, limits: &Limits) -> Vec<Vec<String>> {
    let Timed { clock, layer, name, shape, tokens } = *timed;
    let mut kernels: BTreeMap<&str, (usize, f64)> = BTreeMap::new();
    let launched = median_seconds(run, clock, || layer.both_ways());
    for (kernel, (count, seconds)) in &launched {
        let Some(kernel) = kernel.strip_prefix("lora::") else { continue };
        // The second finishes what the first began.
        let kernel = if matches!(kernel, "gradient" | "fold") { "gradient and fold" } else { kernel };
        let sum = kernels.entry(kernel).or_default();
        *sum = (sum.0 + count, sum.1 + seconds);
    }
    let row = |(kernel, (count, seconds)): (&str, (usize, f64))| {
        let floor = Bytes::of(run, shape, tokens).moved_by(kernel).map(|bytes| bytes / limits.bandwidth);
        let shares = [seconds, seconds - count as f64 * limits.empty].map(|seconds| floor.map(|floor| floor / seconds));
        record.figure(format!("launch {kernel} {name}: seconds"), seconds);
        for (share, what) in shares.into_iter().zip(["share of floor", "share of floor less empty launches"]) {
            if let Some(share) = share.filter(|share| share.is_finite()) {
                record.figure(format!("launch {kernel} {name}: {what}"), share);
            }
        }
        let [share, less] = shares.map(ratio);
        vec![kernel.to_owned(), name.to_owned(), count.to_string(), ms(seconds), ms_or_none(floor), share, less]
    };
    kernels.into_iter().map(row).collect()
}

/// Launches of each kernel that a call launches, and the median over the samples of their seconds together.
fn median_seconds(run: &Run, clock: &Clock, call: impl Fn()) -> BTreeMap<String, (usize, f64)> {
    let mut samples: BTreeMap<String, Vec<(usize, f64)>> = BTreeMap::new();
    for _ in 0..run.sizes.samples {
        let launches = launches::of(|| {
            call();
            clock.sync();
        });
        for (kernel, sample) in by_kernel(&launches) {
            samples.entry(kernel.to_owned()).or_default().push(sample);
        }
    }
    let median = |mut samples: Vec<(usize, f64)>| {
        samples.sort_by(|a, b| a.1.total_cmp(&b.1));
        samples[samples.len() / 2]
    };
    samples.into_iter().map(|(kernel, samples)| (kernel, median(samples))).collect()
}

/// Bytes of the operands of a layer's grouped launches.
struct Bytes {
    /// `x`, as much as its gradient.
    x: f64,
    /// `y`, likewise.
    y: f64,
    /// All tokens' products with `a`, f32.
    down: f64,
    a: f64,
    b: f64,
}

impl Bytes {
    fn of(run: &Run, [d_out, d_in]: [usize; 2], tokens: usize) -> Self {
        let (adapters, rank, size) = (run.sizes.adapters, run.sizes.rank, run.dtype.size());
        let bytes = |entries: usize, size: usize| (entries * size) as f64;
        Self {
            x: bytes(tokens * d_in, size),
            y: bytes(tokens * d_out, size),
            down: bytes(tokens * rank, 4),
            a: bytes(adapters * rank * d_in, 4),
            b: bytes(adapters * rank * d_out, 4),
        }
    }

    /// What a kernel must read and write in a forward and a backward, each operand once; `None` of one that isn't known.
    fn moved_by(&self, kernel: &str) -> Option<f64> {
        let Self { x, y, down, a, b } = self;
        match kernel {
            "down" => Some(x + a + down + y + b + down),
            "up" => Some(2.0 * y + b + down + 2.0 * x + a + down),
            "gradient and fold" => Some(x + down + a + y + down + b),
            _ => None,
        }
    }
}
