//! What a scheduler is asked doesn't grow with what has ended.

use std::sync::Mutex;

use alto_core::fleet::Fleet;
use alto_sched::{Backfill, Cluster, Plan, PlanError, Scheduler, Snapshot};

use super::setup::{plain, run};

/// Remembers how large the snapshots were.
#[derive(Debug, Default)]
struct Counting {
    sizes: Mutex<Vec<(usize, usize)>>,
}

impl Scheduler for Counting {
    fn plan(&self, snapshot: &Snapshot) -> Result<Plan, PlanError> {
        self.sizes.lock().expect("nobody panics").push((snapshot.waiting.len(), snapshot.running.len()));
        Backfill.plan(snapshot)
    }
}

#[test]
fn only_what_waits_and_runs_is_planned() {
    // Two devices, a task a second for two: at no time are there more than three that have not ended.
    let tasks: Vec<_> = (0..2000).map(|index| plain(f64::from(index), "t", 1, 2.0)).collect();
    let scheduler = Counting::default();
    let (report, _) = run(&Fleet::new(Cluster::single("H100", 2)), &scheduler, &tasks);
    let sizes = scheduler.sizes.into_inner().expect("nobody panicked");
    assert_eq!((report.totals.finished, report.totals.replans as usize), (2000, sizes.len()));
    assert!(sizes.iter().all(|&(waiting, running)| waiting == 1 && running <= 2), "{:?}", sizes.iter().max());
}
