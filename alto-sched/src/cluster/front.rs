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
