//! Whole train steps at one, 4, 16 and 64 adapters.

use alto_benches::{quick, train_steps};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};

fn train_step(criterion: &mut Criterion) {
    let mut group = quick(criterion, "train_step");
    for step in train_steps() {
        step.check();
        group.throughput(Throughput::Elements(step.tokens as u64));
        group.bench_function(&step.name, |bencher| bencher.iter(|| step.run()));
        step.forget();
    }
    group.finish();
}

criterion_group!(benches, train_step);
criterion_main!(benches);
