//! How many devices of a node are free, from now to the end of time.

use super::problem::{Problem, Time};

/// A step function: from each point's time on, so many are free, up to the next point.
#[derive(Debug, Clone, Default)]
pub(crate) struct Profile {
    /// By time, the first at 0.
    points: Vec<(Time, u32)>,
}

impl Profile {
    pub(crate) fn new(problem: &Problem, node: usize) -> Profile {
        let mut profile = Profile::default();
        profile.reset(problem, node);
        profile
    }

    /// As nothing but the running tasks is there.
    pub(crate) fn reset(&mut self, problem: &Problem, node: usize) {
        let busy = &problem.nodes[node].busy;
        let mut free = problem.capacity_of(node) - busy.iter().map(|busy| busy.1).sum::<u32>();
        self.points.clear();
        self.points.push((0, free));
        for &(until, width) in busy {
            free += width;
            self.points.push((until, free));
        }
    }

    /// The earliest start at `from` or later at which so many are free for so long. They are at some time, since
    /// nothing runs for ever.
    pub(crate) fn earliest(&self, from: Time, width: u32, duration: Time) -> Time {
        let mut start = from;
        for (index, &(time, free)) in self.points.iter().enumerate().skip(self.at(from)) {
            if time >= start.saturating_add(duration) {
                break;
            }
            if free < width {
                start = self.points.get(index + 1).map_or(Time::MAX, |next| next.0);
            }
        }
        start
    }

    /// Whether so many are free over this time.
    pub(crate) fn fits(&self, start: Time, width: u32, duration: Time) -> bool {
        let within = self.points[self.at(start)..].iter().take_while(|point| point.0 < start.saturating_add(duration));
        within.into_iter().all(|point| point.1 >= width)
    }

    pub(crate) fn take(&mut self, start: Time, width: u32, duration: Time) {
        let (first, last) = (self.split(start), self.split(start + duration));
        self.points[first..last].iter_mut().for_each(|point| point.1 -= width);
    }

    pub(crate) fn give(&mut self, start: Time, width: u32, duration: Time) {
        let (first, last) = (self.split(start), self.split(start + duration));
        self.points[first..last].iter_mut().for_each(|point| point.1 += width);
    }

    /// Index of the point in force at this time.
    fn at(&self, time: Time) -> usize {
        self.points.partition_point(|point| point.0 <= time).saturating_sub(1)
    }

    /// Index of the point at this time, made if there is none.
    fn split(&mut self, time: Time) -> usize {
        let at = self.at(time);
        if self.points[at].0 == time {
            return at;
        }
        self.points.insert(at + 1, (time, self.points[at].1));
        at + 1
    }
}
