//! Who waits, who came first, and how often each was overtaken.

use std::collections::VecDeque;

use alto_sched::{Placement, Snapshot, Task};

use super::run::Fleet;

/// The tasks that wait, in the order in which they could have started; of those alike, by number. The first of them are
/// planned.
///
/// A task is overtaken when one that stands behind it starts before it does.
#[derive(Debug)]
pub(super) struct Queue {
    /// What is planned: `waiting[place]` and `previous[place]` are of `line[place]`.
    snapshot: Snapshot,
    line: Vec<Waiting>,
    /// Those behind all of these.
    behind: VecDeque<(Waiting, Task)>,
    /// How many are planned.
    most: usize,
    /// How often each may be overtaken.
    bound: Option<u32>,
}

/// A task that waits.
#[derive(Debug, Clone, Copy)]
struct Waiting {
    task: usize,
    /// When it came, or its release if that is later.
    since: f64,
    overtaken: u32,
}

/// A task that waits no more.
pub(super) struct Left {
    pub(super) task: usize,
    pub(super) name: String,
    pub(super) overtaken: u32,
}

impl Queue {
    /// A queue for this fleet.
    pub(super) fn new(fleet: &Fleet) -> Self {
        let snapshot = Snapshot { cluster: fleet.cluster.clone(), ..Snapshot::default() };
        let most = fleet.planned.unwrap_or(usize::MAX);
        Self { snapshot, line: vec![], behind: VecDeque::new(), most, bound: fleet.overtaking }
    }

    /// How many wait, planned or not.
    pub(super) fn waiting(&self) -> usize {
        self.line.len() + self.behind.len()
    }

    /// How many are planned.
    pub(super) fn len(&self) -> usize {
        self.line.len()
    }

    /// Lets as many as are to be planned come forward, and puts those behind that are too many.
    pub(super) fn advance(&mut self) {
        while self.line.len() > self.most {
            let Snapshot { waiting, previous, .. } = &mut self.snapshot;
            // Where it was is forgotten: by the time that it is planned again, that plan is long gone.
            previous.pop();
            let (Some(last), Some(task)) = (self.line.pop(), waiting.pop()) else { break };
            self.behind.push_front((last, task));
        }
        while self.line.len() < self.most
            && let Some((waiting, task)) = self.behind.pop_front()
        {
            self.line.push(waiting);
            self.snapshot.waiting.push(task);
            self.snapshot.previous.push(None);
        }
    }

    /// Whether fewer than half as many as could be are planned, though more wait.
    pub(super) fn is_short(&self) -> bool {
        self.line.len() < self.most.div_ceil(2) && !self.behind.is_empty()
    }

    /// What is to be planned.
    pub(super) fn snapshot(&mut self) -> &mut Snapshot {
        &mut self.snapshot
    }

    pub(super) fn task(&self, place: usize) -> usize {
        self.line[place].task
    }

    /// Where the plan has the task at this place.
    pub(super) fn planned(&self, place: usize) -> Option<&Placement> {
        self.snapshot.previous[place].as_ref()
    }

    pub(super) fn join(&mut self, task: usize, needs: Task, now: f64) {
        let since = needs.release.max(now);
        let waiting = Waiting { task, since, overtaken: 0 };
        let place = self.line.partition_point(|other| other.since <= since);
        if place == self.line.len() && !self.behind.is_empty() {
            let place = self.behind.partition_point(|other| other.0.since <= since);
            self.behind.insert(place, (waiting, needs));
            return;
        }
        self.line.insert(place, waiting);
        self.snapshot.waiting.insert(place, needs);
        self.snapshot.previous.insert(place, None);
    }

    /// Takes the task at this place, of those that are planned, out of the queue.
    pub(super) fn leave(&mut self, place: usize) -> Left {
        let Waiting { task, overtaken, .. } = self.line.remove(place);
        let name = self.snapshot.waiting.remove(place).name;
        self.snapshot.previous.remove(place);
        Left { task, name, overtaken }
    }

    /// The task that stood at this place has started: those before it were overtaken. Gives those that may be no more,
    /// if somebody stands behind them.
    pub(super) fn overtake(&mut self, place: usize) -> Vec<usize> {
        let (len, bound) = (self.waiting(), self.bound);
        let mut held = vec![];
        for (index, waiting) in self.line[..place].iter_mut().enumerate() {
            waiting.overtaken += 1;
            if bound == Some(waiting.overtaken) && index + 1 < len {
                held.push(waiting.task);
            }
        }
        held
    }

    /// How many of the planned tasks, from the first on, may start in any order: up to the first that may be overtaken no more.
    pub(super) fn free(&self) -> usize {
        let Some(bound) = self.bound else { return self.len() };
        self.line.iter().position(|waiting| waiting.overtaken >= bound).map_or(self.len(), |first| first + 1)
    }

    /// When the next task is planned to start.
    pub(super) fn next_start(&self) -> Option<f64> {
        let placements = self.snapshot.previous.iter().flatten();
        placements.map(|placement| placement.start).min_by(f64::total_cmp)
    }
}
