//! `linear_log_probs` beside Burn's own operations.

use alto_benches::{bench_cases, log_probs_cases};
use criterion::{Criterion, criterion_group, criterion_main};

fn log_probs(criterion: &mut Criterion) {
    bench_cases(criterion, &log_probs_cases());
}

criterion_group!(benches, log_probs);
criterion_main!(benches);
