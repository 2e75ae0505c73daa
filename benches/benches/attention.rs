//! `causal_attention` beside Burn's own operations.

use alto_benches::{attention_cases, bench_cases};
use criterion::{Criterion, criterion_group, criterion_main};

fn attention(criterion: &mut Criterion) {
    bench_cases(criterion, &attention_cases());
}

criterion_group!(benches, attention);
criterion_main!(benches);
