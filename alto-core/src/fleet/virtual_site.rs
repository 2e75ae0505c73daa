//! A site of which time is a number.

use std::collections::BTreeMap;
use std::fmt;

use alto_sched::{Placement, Task};

use super::clock::{micros, seconds};
use super::failure;
use super::site::{Signal, Site};
use super::timeline::Timeline;

/// A site with a virtual clock: a week takes as long as it takes to decide what happens in it.
///
/// Started work runs at once, and gives the [`Timeline`] that is then played on the clock. The same submissions give the
/// same run.
///
/// ```
/// use alto_core::fleet::{Fleet, Timeline, Virtual};
/// use alto_sched::{Cluster, Makespan, Task};
///
/// let mut site = Virtual::default();
/// site.submit(0.0, Task::rigid("a", 2, 100.0), |_| Timeline::lasting(60.0)); // sooner than expected
/// site.submit(0.0, Task::rigid("b", 1, 100.0), |_| Timeline::failing(5.0, "out of memory"));
/// site.submit(10.0, Task::rigid("c", 2, 30.0), |_| Timeline::lasting(30.0));
///
/// let report = Fleet::new(Cluster::single("H100", 2)).run(&Makespan::default(), &mut site, &mut |_| {})?;
/// assert_eq!(report.totals.makespan, 95.0);
/// assert_eq!(report.tasks[1].failure.as_deref(), Some("out of memory"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Default)]
pub struct Virtual<'a> {
    /// Microseconds.
    now: u64,
    /// What is to happen, by time and then in the order in which it became known.
    agenda: BTreeMap<(u64, u64), Happening<'a>>,
    /// How much has become known.
    known: u64,
    /// How many tasks have come.
    arrived: usize,
    /// Of the tasks that wait.
    work: BTreeMap<usize, Work<'a>>,
}

type Work<'a> = Box<dyn FnOnce(&Placement) -> Timeline + 'a>;

enum Happening<'a> {
    Arrival { task: Task, profile_seconds: f64, work: Work<'a> },
    Told(Signal),
}

impl<'a> Virtual<'a> {
    /// Has this task come at this time, in seconds. When it starts, `work` says what becomes of it at its place.
    ///
    /// # Panics
    /// If the time is negative or not finite.
    pub fn submit(&mut self, at: f64, task: Task, work: impl FnOnce(&Placement) -> Timeline + 'a) {
        self.submit_profiled(at, task, 0.0, work);
    }

    /// The same for a task of which it took so many seconds to measure how long it takes.
    ///
    /// # Panics
    /// If the time is negative or not finite.
    pub fn submit_profiled(
        &mut self,
        at: f64,
        task: Task,
        profile_seconds: f64,
        work: impl FnOnce(&Placement) -> Timeline + 'a,
    ) {
        assert!(
            at.is_finite() && at >= 0.0,
            "task {:?} comes at {at} s, expected a finite time of at least 0",
            task.name
        );
        self.put(micros(at), Happening::Arrival { task, profile_seconds, work: Box::new(work) });
    }

    fn put(&mut self, at: u64, happening: Happening<'a>) {
        self.agenda.insert((at, self.known), happening);
        self.known += 1;
    }
}

impl Site for Virtual<'_> {
    fn now(&self) -> f64 {
        seconds(self.now)
    }

    fn start(&mut self, task: usize, placement: &Placement) {
        let begin = self.now;
        let Timeline { expected, end, error } = match self.work.remove(&task) {
            Some(work) => failure::guarded(|| work(placement)).unwrap_or_else(|panic| Timeline::failing(0.0, &panic)),
            None => Timeline::failing(0.0, "it never came here, or has started before"),
        };
        let end = micros(end);
        for (at, to) in expected.into_iter().filter(|(at, to)| micros(*at) < end && to.is_finite()) {
            let end = seconds(begin + micros(to));
            self.put(begin + micros(at), Happening::Told(Signal::Expected { task, end }));
        }
        self.put(begin + end, Happening::Told(Signal::Ended { task, error }));
    }

    fn next(&mut self, until: Option<f64>) -> Option<Vec<Signal>> {
        let until = until.map(micros);
        let first = self.agenda.keys().next().map(|key| key.0);
        self.now = match (first, until) {
            (Some(first), until) if until.is_none_or(|until| first <= until) => first,
            (_, Some(until)) => until.max(self.now),
            (_, None) => return None,
        };
        let mut signals = vec![];
        while let Some(entry) = self.agenda.first_entry().filter(|entry| entry.key().0 <= self.now) {
            signals.push(match entry.remove() {
                Happening::Told(signal) => signal,
                Happening::Arrival { task, profile_seconds, work } => {
                    self.work.insert(self.arrived, work);
                    self.arrived += 1;
                    Signal::Arrived { task, profile_seconds }
                }
            });
        }
        Some(signals)
    }
}

impl fmt::Debug for Virtual<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { now, agenda, arrived, .. } = self;
        write!(f, "Virtual {{ now: {} s, arrived: {arrived}, to happen: {} }}", seconds(*now), agenda.len())
    }
}
