//! How many devices of a node are free, where nothing starts before what has been placed already.
//!
//! Then devices only become free from the last start on, so that when enough are free, enough stay free.

use super::problem::{Problem, Time};

/// A node's devices by when each is free for good.
#[derive(Debug, Clone)]
pub(crate) struct Front {
    /// From when on how many more are free, in order of time.
    free: Vec<(Time, u32)>,
}

impl Front {
    pub(crate) fn new(problem: &Problem, node: usize) -> Front {
        let busy = &problem.nodes[node].busy;
        let now = problem.capacity_of(node) - busy.iter().map(|busy| busy.1).sum::<u32>();
        let mut free = vec![(0, now)];
        free.extend(busy);
        Front { free }
    }

    /// The earliest time, from this one on, at which so many are free.
    pub(crate) fn earliest(&self, from: Time, width: u32) -> Time {
        let mut free = 0;
        let enough = self.free.iter().find(|more| {
            free += more.1;
            free >= width
        });
        enough.map_or(Time::MAX, |more| more.0.max(from))
    }

    /// Takes so many of the devices that are free by `start` until `end`.
    pub(crate) fn take(&mut self, start: Time, width: u32, end: Time) {
        let past = self.free.partition_point(|more| more.0 <= start);
        let now: u32 = self.free[..past].iter().map(|more| more.1).sum();
        self.free.splice(..past, [(start, now - width)]);
        let place = self.free.partition_point(|more| more.0 <= end);
        self.free.insert(place, (end, width));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::profile::Profile;
    use super::*;
    use crate::{Cluster, Running, Snapshot, Task};

    proptest! {
        #[test]
        fn where_nothing_starts_before_the_last_it_finds_what_the_whole_profile_does(
            running in prop::collection::vec(0..20_u32, 0..6),
            tasks in prop::collection::vec((1..=6_u32, 1..20_u64, 0..3_u64), 1..30),
        ) {
            let held = |(device, until)| Running { name: String::new(), devices: vec![device], until: f64::from(until) };
            let snapshot = Snapshot {
                cluster: Cluster::single("H100", 6),
                running: (0..).zip(running).map(held).collect(),
                // A duration of a microsecond, for which the problem's unit is one.
                waiting: vec![Task::rigid("", 1, 1e-6)],
                ..Snapshot::default()
            };
            let problem = Problem::new(&snapshot).expect("a snapshot that makes sense");
            let (mut front, mut profile, mut last) = (Front::new(&problem, 0), Profile::new(&problem, 0), 0);
            for (width, seconds, later) in tasks {
                let (from, duration) = (last + later * 1_000_000, seconds * 1_000_000);
                let start = front.earliest(from, width);
                prop_assert_eq!(start, profile.earliest(from, width, duration));
                front.take(start, width, start + duration);
                profile.take(start, width, duration);
                last = start;
            }
        }
    }
}
