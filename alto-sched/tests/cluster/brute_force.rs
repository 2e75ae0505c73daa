//! The slow and obvious way: every order, option and node.

use alto_sched::Snapshot;

/// The least makespan, for whole seconds and a handful of tasks.
///
/// Placing tasks one by one, each as early as it fits, reaches an optimal plan for some order, option and node of each.
pub(crate) fn makespan(snapshot: &Snapshot) -> f64 {
    let now = snapshot.now as usize;
    let latest = |until: f64| (until as usize).saturating_sub(now);
    let longest =
        |task: &alto_sched::Task| task.options.iter().map(|option| option.duration as usize).max().unwrap_or(0);
    let horizon = snapshot.running.iter().map(|running| latest(running.until)).max().unwrap_or(0)
        + snapshot.waiting.iter().map(|task| latest(task.release)).max().unwrap_or(0)
        + snapshot.waiting.iter().map(longest).sum::<usize>();
    let mut free: Vec<Vec<usize>> =
        snapshot.cluster.nodes.iter().map(|node| vec![node.devices.len(); horizon + 1]).collect();
    for running in &snapshot.running {
        for device in &running.devices {
            let node = snapshot.cluster.nodes.iter().position(|node| node.devices.contains(device)).expect("known");
            free[node][..latest(running.until)].iter_mut().for_each(|free| *free -= 1);
        }
    }
    let mut best = horizon;
    let mut left: Vec<usize> = (0..snapshot.waiting.len()).collect();
    search(snapshot, &mut free, &mut left, 0, &mut best);
    best as f64
}

fn search(snapshot: &Snapshot, free: &mut Vec<Vec<usize>>, left: &mut Vec<usize>, end: usize, best: &mut usize) {
    if left.is_empty() {
        *best = (*best).min(end);
        return;
    }
    let now = snapshot.now as usize;
    for index in 0..left.len() {
        let task = left.remove(index);
        let waiting = &snapshot.waiting[task];
        for option in &waiting.options {
            for node in 0..free.len() {
                let home = &snapshot.cluster.nodes[node];
                let (width, duration) = (option.width as usize, option.duration as usize);
                let suits = option.kind.as_ref().is_none_or(|kind| *kind == home.kind)
                    && home.memory.is_none_or(|memory| option.memory <= memory)
                    && width <= home.devices.len();
                let from = (waiting.release as usize).saturating_sub(now);
                let fits = |start: &usize| free[node][*start..start + duration].iter().all(|&free| free >= width);
                let Some(start) = suits.then(|| (from..*best).find(|s| s + duration < *best && fits(s))).flatten()
                else {
                    continue;
                };
                free[node][start..start + duration].iter_mut().for_each(|free| *free -= width);
                search(snapshot, free, left, end.max(start + duration), best);
                free[node][start..start + duration].iter_mut().for_each(|free| *free += width);
            }
        }
        left.insert(index, task);
    }
}
