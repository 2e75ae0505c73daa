//! Criterion over the cases.

use std::hint::black_box;
use std::time::Duration;

use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, Criterion};

use crate::case::{Case, Run};

/// A group whose benches take about a second each.
pub fn quick<'a>(criterion: &'a mut Criterion, name: &str) -> BenchmarkGroup<'a, WallTime> {
    let mut group = criterion.benchmark_group(name);
    group.sample_size(10).warm_up_time(Duration::from_millis(100)).measurement_time(Duration::from_millis(600));
    group
}

/// Checks each case, then times its ways one after another.
pub fn bench_cases(criterion: &mut Criterion, cases: &[Case]) {
    for case in cases {
        case.check();
        let mut group = quick(criterion, &case.name);
        let mut bench = |way: &str, run: &Run| {
            group.bench_function(way, |bencher| bencher.iter(|| black_box(run())));
        };
        bench("ours", &case.ours);
        bench("plain", &case.plain);
        if let Some(floor) = &case.floor {
            bench("floor", floor);
        }
        group.finish();
    }
}
