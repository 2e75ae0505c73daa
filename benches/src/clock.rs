//! Times measured in turns, so that a busy machine slows all that is compared alike.

use std::time::Instant;

/// What one call took.
#[derive(Debug, Clone, Copy)]
pub struct Cost {
    /// Seconds on the wall clock.
    pub wall: f64,
    /// Seconds of all processors together; 0 where the system doesn't tell.
    pub cpu: f64,
}

/// Seconds of one sample: the processor clock is only exact to a few milliseconds.
const SAMPLE: f64 = 0.2;

/// The costs per call of each of these, sampled in turns: `costs[which][round]`.
pub fn in_turns(rounds: usize, calls: &[&dyn Fn()]) -> Vec<Vec<Cost>> {
    let repeats: Vec<usize> = calls.iter().map(|call| (SAMPLE / cost(1, call).wall).ceil() as usize).collect();
    let mut costs = vec![Vec::new(); calls.len()];
    for _ in 0..rounds {
        for ((call, &repeats), costs) in calls.iter().zip(&repeats).zip(&mut costs) {
            costs.push(cost(repeats.max(1), call));
        }
    }
    costs
}

fn cost(repeats: usize, call: &dyn Fn()) -> Cost {
    let (start, cpu) = (Instant::now(), cpu_seconds());
    for _ in 0..repeats {
        call();
    }
    let per_call = |seconds: f64| seconds / repeats as f64;
    Cost { wall: per_call(start.elapsed().as_secs_f64()), cpu: per_call(cpu_seconds() - cpu) }
}

/// The middle one; NaN of none.
pub fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// Processor time that this process's threads took so far, where the system tells.
pub fn cpu_seconds() -> f64 {
    let threads = std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let nanoseconds = |thread: std::fs::DirEntry| -> Option<f64> {
        std::fs::read_to_string(thread.path().join("schedstat")).ok()?.split_whitespace().next()?.parse().ok()
    };
    threads.filter_map(nanoseconds).sum::<f64>() / 1e9
}
