//! `multi_lora_linear` beside Burn's own operations.

use alto_benches::{bench_cases, lora_cases};
use criterion::{Criterion, criterion_group, criterion_main};

fn multi_lora_linear(criterion: &mut Criterion) {
    bench_cases(criterion, &lora_cases());
}

criterion_group!(benches, multi_lora_linear);
criterion_main!(benches);
