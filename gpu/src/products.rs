//! The frozen product, and what the adapters add to it: the whole of one linear layer.
//!
//! The base product is timed as the trainer runs it, as a layer without lanes. What the adapters add is the difference of
//! the layer with and without them; going backward, of forward and backward together and forward alone.

use crate::clock::Clock;
use crate::grouped;
use crate::layer::Layer;
use crate::random::Random;
use crate::record::{Record, Table, ms, ms_or_none, ratio};
use crate::run::Run;

/// Seconds of the base product, and what adapters add.
struct Seconds {
    base: f64,
    forward: f64,
    backward: f64,
}

fn time(clock: &Clock, layer: &Layer) -> Seconds {
    let bare = layer.bare();
    let base = clock.time(|| drop(bare.forward()));
    let forward = clock.time(|| drop(layer.forward())) - base;
    let base_both = clock.time(|| bare.both_ways());
    let both = clock.time(|| layer.both_ways()) - base_both;
    Seconds { base, forward, backward: both - forward }
}

/// Times every shape of linear layer over every batch.
pub(crate) fn products(record: &mut Record, run: &Run) {
    let clock = Clock::new(&run.device, &run.sizes);
    let device = grouped::Limits::measure(record, run, &clock);
    let (mut gemm, mut lora, mut launched) = (Vec::new(), Vec::new(), Vec::new());
    for &batch in &run.sizes.batches {
        for shape in run.sizes.linears() {
            let tokens = run.sizes.tokens(batch);
            let name = format!("{}x{} over {tokens}", shape[0], shape[1]);
            record.part(&name.clone(), |record| {
                let layer = Layer::new(run, shape, tokens);
                let seconds = time(&clock, &layer);
                let dims = [shape[0], shape[1], tokens];
                gemm.push(gemm_row(record, run, &name, "forward", dims, seconds.base));
                if run.place.tunes_quickly(&run.device) {
                    let dy = Random::new().tensor::<2>([tokens, shape[0]], 1.0, (&run.device, run.dtype));
                    let backward = clock.time(|| drop(dy.clone().matmul(layer.weight.clone())));
                    gemm.push(gemm_row(record, run, &name, "backward", dims, backward));
                }
                for (way, seconds) in [("forward", seconds.forward), ("backward", seconds.backward)] {
                    lora.push(lora_row(record, run, &name, way, seconds));
                }
                let timed = grouped::Timed { clock: &clock, layer: &layer, name: &name, shape, tokens };
                launched.extend(grouped::rows(record, run, &timed, &device));
            });
        }
    }
    if !run.place.tunes_quickly(&run.device) {
        record.missing.push(format!("base GEMM backward: on {} Burn's matmul is tuned for minutes", run.place));
    }
    if launched.is_empty() {
        record.missing.push(format!("each grouped launch by itself: none was observed on {}", run.place));
    }
    record.tables.push(Table {
        title: "Base GEMM".to_owned(),
        note: "Milliseconds; PyTorch is `torch.matmul`, cuBLAS on CUDA. Backward is `dY W`.".to_owned(),
        columns: vec!["shape", "way", "ours", "TFLOP/s", "PyTorch", "PyTorch / ours"],
        rows: gemm,
    });
    record.tables.push(Table {
        title: "What adapters add to a linear layer".to_owned(),
        note: format!(
            "Milliseconds with {} adapters of rank {} less without. PyTorch's ways are timed by themselves, with the \
             addition to the base's output; `bmm` only works because all adapters have equally many tokens here.",
            run.sizes.adapters, run.sizes.rank
        ),
        columns: vec!["shape", "way", "ours", "PyTorch", "best PyTorch / ours"],
        rows: lora,
    });
    record.tables.push(device.table(launched));
}

fn gemm_row(record: &mut Record, run: &Run, name: &str, way: &str, dims: [usize; 3], seconds: f64) -> Vec<String> {
    let torch = run.torch.best(&format!("gemm {way} {name}"), |_| true).map(|(_, seconds)| seconds);
    let share = torch.map(|torch| torch / seconds);
    record.figure(format!("gemm {way} {name}: seconds"), seconds);
    if let Some(share) = share {
        record.figure(format!("gemm {way} {name}: share of PyTorch's rate"), share);
    }
    let flop = 2.0 * dims.iter().map(|&dim| dim as f64).product::<f64>();
    let rate = format!("{:.1}", flop / seconds / 1e12);
    vec![name.to_owned(), way.to_owned(), ms(seconds), rate, ms_or_none(torch), ratio(share)]
}

fn lora_row(record: &mut Record, run: &Run, name: &str, way: &str, seconds: f64) -> Vec<String> {
    let what = format!("lora {way} {name}");
    let best = run.torch.best(&what, |_| true).map(|(_, torch)| torch / seconds);
    record.figure(format!("{what}: seconds"), seconds);
    if let Some(best) = best {
        record.figure(format!("{what}: times faster than PyTorch"), best);
    }
    vec![name.to_owned(), way.to_owned(), ms(seconds), run.torch.all(&what), ratio(best)]
}
