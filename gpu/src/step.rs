//! Whole optimizer steps of a model of random weights: all adapters at once, and the frozen base alone.

use alto_core::backend::{Backend, Slot, StepReport};
use alto_core::batch::{Batch, Example, Lane, Objective};
use alto_core::burn::BurnBackend;

use crate::clock::Clock;
use crate::launches::{self, by_kernel};
use crate::random::Random;
use crate::record::{Record, Table, ms, ms_or_none, ratio};
use crate::run::Run;
use crate::torch::TorchTimes;

/// Times a step at every batch.
pub(crate) fn steps(record: &mut Record, run: &Run) {
    let (mut rows, mut launched) = (Vec::new(), Vec::new());
    for &batch in &run.sizes.batches {
        record.part(&format!("step {batch}"), |record| {
            // Anew for each batch: one that fails takes the others with it otherwise.
            let mut backend = run.backend(Random::new().model(&run.sizes.config()));
            rows.push(step(record, run, &mut backend, batch, &mut launched));
        });
    }
    let sizes = &run.sizes;
    record.tables.push(Table {
        title: format!("Steps of {} adapters of rank {}", sizes.adapters, sizes.rank),
        note: format!(
            "Milliseconds of a whole optimizer step: {} layers of width {}, vocabulary {}, rows of {} tokens, all seven \
             modules, {}. PyTorch one after another is one adapter's step times their number.",
            sizes.layers,
            sizes.hidden,
            sizes.vocabulary,
            sizes.row,
            crate::device::named(run.dtype),
        ),
        columns: vec![
            "rows of each",
            "ours",
            "tokens/s",
            "base alone",
            "adapters add",
            "PyTorch",
            "best grouping / ours",
            "one after another / ours",
        ],
        rows,
    });
    if launched.is_empty() {
        record.missing.push(format!("a step's launches: none was observed on {}", run.place));
    } else {
        record.tables.push(Table {
            title: "Where a step's time goes".to_owned(),
            note: "Launches of each kernel in one step of the first batch, and their milliseconds on the device."
                .to_owned(),
            columns: vec!["kernel", "launches", "ms"],
            rows: launched,
        });
    }
}

/// A row of the table; the launches are taken down if they aren't yet.
fn step(
    record: &mut Record,
    run: &Run,
    backend: &mut BurnBackend,
    batch: usize,
    launched: &mut Vec<Vec<String>>,
) -> Vec<String> {
    let clock = Clock::new(&run.device, &run.sizes);
    let base = rows_of_tokens(run, &vec![None; run.sizes.adapters], batch);
    let alone = time(&clock, backend, &base);
    let attach = |i: usize| backend.attach(&run.sizes.job(i, batch), None).expect("a job that fits");
    let slots: Vec<Option<Slot>> = (0..run.sizes.adapters).map(attach).map(Some).collect();
    let training = rows_of_tokens(run, &slots, batch);
    check(backend, &training, &base);
    let seconds = time(&clock, backend, &training);
    if launched.is_empty() {
        *launched = launch_rows(record, &clock, backend, &training);
    }

    let what = format!("step {batch}");
    let grouped = run.torch.best(&what, |way| !TorchTimes::is_sequential(way)).map(|(_, torch)| torch / seconds);
    let sequential = run.torch.best(&what, TorchTimes::is_sequential).map(|(_, torch)| torch / seconds);
    let added = seconds / alone - 1.0;
    let tokens = training.tokens.len() as f64;
    for (figure, number) in [
        ("seconds", Some(seconds)),
        ("seconds of the base alone", Some(alone)),
        ("share added by adapters", Some(added)),
        ("tokens per second", Some(tokens / seconds)),
        ("times faster than PyTorch's best grouping", grouped),
        ("times faster than one after another", sequential),
    ] {
        if let Some(number) = number {
            record.figure(format!("{what}: {figure}"), number);
        }
    }
    vec![
        batch.to_string(),
        ms(seconds),
        format!("{:.0}", tokens / seconds),
        ms(alone),
        format!("{:.1}%", 100.0 * added),
        run.torch.all(&what),
        ratio(grouped),
        ratio(sequential),
    ]
}

/// The first losses are those of the base model, and they fall.
fn check(backend: &mut BurnBackend, training: &Batch, base: &Batch) {
    const STEPS: usize = 4;
    let expected = backend.evaluate(base).expect("a batch that fits");
    for _ in 0..STEPS {
        backend.step(training).expect("a batch that fits");
    }
    let reports = backend.read().expect("the device works");
    for (report, expected) in reports.iter().zip(&expected) {
        let base = expected.sum / expected.count as f64;
        let off = (report.loss - base).abs() / base;
        // A fresh adapter's output is zero; so many roundings of 16 bits may still fall differently.
        assert!(off < 5e-3, "a fresh adapter's loss is {}, the base model's {base}", report.loss);
    }
    let mean = |reports: &[StepReport]| reports.iter().map(|report| report.loss).sum::<f64>() / reports.len() as f64;
    let (first, last) = (mean(&reports[..expected.len()]), mean(&reports[reports.len() - expected.len()..]));
    assert!(last < first, "the mean loss of the same rows goes from {first} to {last} in {STEPS} steps");
}

fn time(clock: &Clock, backend: &mut BurnBackend, batch: &Batch) -> f64 {
    let seconds = clock.time(|| backend.step(batch).expect("a batch that fits"));
    // The reports of all steps, which otherwise pile up.
    backend.read().expect("the device works");
    seconds
}

fn launch_rows(record: &mut Record, clock: &Clock, backend: &mut BurnBackend, batch: &Batch) -> Vec<Vec<String>> {
    let launches = launches::of(|| {
        backend.step(batch).expect("a batch that fits");
        clock.sync();
    });
    backend.read().expect("the device works");
    record.figure("step: launches".to_owned(), launches.len() as f64);
    let mut kernels: Vec<_> = by_kernel(&launches).into_iter().collect();
    kernels.sort_by(|a, b| b.1.1.total_cmp(&a.1.1));
    let total = (launches.len(), launches.iter().filter_map(|(_, seconds)| *seconds).sum::<f64>());
    let kernels = kernels.into_iter().chain((total.0 > 0).then_some(("all", total)));
    kernels
        .map(|(kernel, (count, seconds))| vec![kernel.to_owned(), count.to_string(), ms_or_none(Some(seconds))])
        .collect()
}

/// An optimizer step of every slot, or of the base alone, on rows of its own; every token is labelled.
fn rows_of_tokens(run: &Run, slots: &[Option<Slot>], batch: usize) -> Batch {
    let (length, vocabulary) = (run.sizes.row, run.sizes.vocabulary);
    let mut training = Batch::default();
    for (lane, &slot) in slots.iter().enumerate() {
        let token = |position: usize| ((lane * 7_919 + position * 104_729) % vocabulary) as u32;
        let row = |row: usize| Example {
            tokens: (0..length).map(|at| token(row * length + at)).collect(),
            targets: (0..length).map(|at| Some(token(row * length + at + 1))).collect(),
        };
        let rows: Vec<Example> = (0..batch).map(row).collect();
        let divisor = (batch * length) as f64;
        let lane = Lane { slot, rows: batch, objective: Objective::default(), divisor, last: true };
        training.push(lane, &rows);
    }
    training
}
