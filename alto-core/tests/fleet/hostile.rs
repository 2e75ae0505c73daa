//! Schedulers that keep to the letter of a plan and to nothing else.

use std::collections::BTreeMap;

use alto_core::fleet::{Fleet, FleetError};
use alto_sched::{Backfill, Cluster, Placement, Plan, PlanError, Scheduler, Snapshot, TaskFault};

use super::setup::{plain, run, site, starts};

/// Plans that can be carried out, made up at random from the snapshot: any order, any option, any node, idle time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Whimsical {
    pub(crate) seed: u64,
    /// Seconds that a start may lie behind the earliest.
    pub(crate) idle: f64,
    /// Whether the last to come is to start first.
    pub(crate) reversed: bool,
    /// Seconds that every start and end lies beside the grid of microseconds.
    pub(crate) beside: f64,
}

impl Whimsical {
    /// A number that follows from all that may differ.
    fn whim(&self, snapshot: &Snapshot, salt: usize) -> u64 {
        let mut hash = self.seed ^ snapshot.now.to_bits() ^ (snapshot.waiting.len() as u64) << 32 ^ salt as u64;
        for _ in 0..3 {
            hash = (hash ^ hash >> 31).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        }
        hash >> 20
    }
}

fn grid(seconds: f64) -> f64 {
    (seconds * 1e6).round() / 1e6
}

impl Scheduler for Whimsical {
    fn plan(&self, snapshot: &Snapshot) -> Result<Plan, PlanError> {
        let now = snapshot.now;
        let mut free: BTreeMap<u32, f64> =
            snapshot.cluster.nodes.iter().flat_map(|node| &node.devices).map(|&device| (device, now)).collect();
        for running in &snapshot.running {
            for device in &running.devices {
                free.insert(*device, running.until.max(now));
            }
        }
        let mut order: Vec<usize> = (0..snapshot.waiting.len()).collect();
        match self.reversed {
            true => order.reverse(),
            false => order.sort_by_key(|&task| self.whim(snapshot, task)),
        }
        let mut placements = vec![None; snapshot.waiting.len()];
        for task in order {
            let needs = &snapshot.waiting[task];
            let ways: Vec<_> = needs
                .options
                .iter()
                .enumerate()
                .flat_map(|(choice, option)| {
                    let fits = move |node: &&alto_sched::Node| {
                        node.devices.len() >= option.width as usize
                            && option.kind.as_ref().is_none_or(|kind| *kind == node.kind)
                    };
                    snapshot.cluster.nodes.iter().filter(fits).map(move |node| (choice, option, node))
                })
                .collect();
            let (choice, option, node) = ways[self.whim(snapshot, 1000 + task) as usize % ways.len()];
            let mut devices = node.devices.clone();
            devices.sort_by(|a, b| free[a].total_cmp(&free[b]));
            devices.truncate(option.width as usize);
            devices.sort_unstable();
            let earliest = devices.iter().map(|device| free[device]).fold(now.max(grid(needs.release)), f64::max);
            let idle = self.idle * (self.whim(snapshot, 2000 + task) % 100) as f64 / 100.0;
            let start = grid(earliest + idle);
            let end = grid(start + grid(option.duration).max(1e-6));
            for &device in &devices {
                free.insert(device, end);
            }
            placements[task] = Some(Placement { choice, devices, start: start + self.beside, end: end + self.beside });
        }
        let last = placements.iter().flatten().map(|placement| grid(placement.end)).fold(now, f64::max);
        let ends = placements.iter().zip(&snapshot.waiting);
        let completions = ends.filter_map(|(place, task)| Some(task.weight * grid(grid(place.as_ref()?.end) - now)));
        let weighted_completion = completions.sum();
        let makespan = grid(last - now);
        let proven = makespan == 0.0;
        Ok(Plan { placements, refused: vec![], makespan, lower_bound: 0.0, proven, weighted_completion })
    }
}

#[test]
fn a_start_between_two_microseconds_comes() {
    let scheduler = Whimsical { seed: 0, idle: 0.0, reversed: false, beside: 4e-7 };
    let tasks = [plain(0.0, "a", 1, 5.0), plain(1.0, "b", 1, 5.0)];
    let (_, events) = run(&Fleet::new(Cluster::single("H100", 1)), &scheduler, &tasks);
    assert_eq!(starts(&events), [(0, 0.0), (1, 5.0)]);
}

/// Blames a task of this index.
#[derive(Debug)]
struct Blaming(usize);

impl Scheduler for Blaming {
    fn plan(&self, _: &Snapshot) -> Result<Plan, PlanError> {
        Err(PlanError::Task { task: self.0, name: "x".into(), fault: TaskFault::NoOption })
    }
}

#[test]
fn a_scheduler_that_blames_a_task_that_is_not_there_is_an_error() {
    let tasks = [plain(0.0, "a", 1, 5.0), plain(0.0, "b", 1, 5.0)];
    for overtaking in [None, Some(0)] {
        let fleet = Fleet { skip_bad: true, overtaking, ..Fleet::new(Cluster::single("H100", 1)) };
        let error = fleet.run(&Blaming(7), &mut site(&tasks), &mut |_| {}).unwrap_err();
        assert!(matches!(error, FleetError::Task { task: 7, .. }), "{error}");
        // One that is there is refused, as is the other in its turn.
        let report = fleet.run(&Blaming(0), &mut site(&tasks), &mut |_| {}).unwrap();
        assert_eq!(report.totals.refused, 2);
    }
}

/// What somebody may get wrong about one place of a plan.
#[derive(Debug)]
struct Sloppy {
    fault: u8,
}

impl Scheduler for Sloppy {
    fn plan(&self, snapshot: &Snapshot) -> Result<Plan, PlanError> {
        let mut plan = Backfill.plan(snapshot)?;
        let Some(last) = plan.placements.last_mut() else { return Ok(plan) };
        let Some(place) = last.as_mut().filter(|place| place.start > 3.0) else { return Ok(plan) };
        match self.fault {
            0 => place.devices = vec![99],
            1 => place.devices.clear(),
            2 => place.choice = 5,
            3 => (place.start, place.end) = (place.start - 1.0, place.end - 1.0),
            4 => place.end = place.start,
            5 => (place.start, place.end) = (f64::NAN, f64::NAN),
            6 => (place.start, place.end) = (-1.0, 4.0),
            7 => *last = None,
            8 => plan.placements.push(None),
            9 => plan.makespan += 1.0,
            10 => plan.lower_bound = f64::NAN,
            _ => plan.placements.clear(),
        }
        Ok(plan)
    }
}

#[test]
fn what_is_wrong_with_a_plan_is_an_error_and_what_came_before_it_has_run() {
    let tasks = [plain(0.0, "a", 1, 5.0), plain(1.0, "b", 1, 5.0), plain(4.0, "c", 1, 5.0)];
    for fault in 0..=11 {
        for overtaking in [None, Some(0)] {
            let fleet = Fleet { skip_bad: true, overtaking, ..Fleet::new(Cluster::single("H100", 1)) };
            let mut events = vec![];
            let outcome = fleet.run(&Sloppy { fault }, &mut site(&tasks), &mut |event| events.push(event.clone()));
            assert!(matches!(outcome, Err(FleetError::BrokenPlan { .. })), "fault {fault}: {outcome:?}");
            assert_eq!(starts(&events), [(0, 0.0)], "fault {fault}");
        }
    }
}
