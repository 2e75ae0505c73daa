//! A site that tells again what an event log says.

use std::collections::VecDeque;
use std::iter::Peekable;

use alto_sched::Placement;

use super::event::{Event, EventKind};
use super::site::{Signal, Site};

/// A site that tells a fleet again what it was told in another run, turn by turn.
///
/// With the same settings and a scheduler that doesn't look at a clock, the same events come out. Anything else is told
/// what happened to somebody else's decisions, and may get [`FleetError::NotRunning`](super::FleetError::NotRunning).
///
/// ```
/// use alto_core::fleet::{Fleet, Replayed, Timeline, Virtual};
/// use alto_sched::{Backfill, Cluster, Task};
///
/// let fleet = Fleet::new(Cluster::single("H100", 2));
/// let mut site = Virtual::default();
/// site.submit(0.0, Task::rigid("a", 2, 100.0), |_| Timeline::lasting(60.0));
/// site.submit(5.0, Task::rigid("b", 1, 100.0), |_| Timeline::lasting(100.0));
/// let mut log = vec![];
/// fleet.run(&Backfill, &mut site, &mut |event| log.push(event.clone()))?;
///
/// let mut again = vec![];
/// fleet.run(&Backfill, &mut Replayed::new(log.clone()), &mut |event| again.push(event.clone()))?;
/// assert_eq!(log, again);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Replayed {
    /// By turn: when it was, and what was told.
    turns: VecDeque<(f64, Vec<Signal>)>,
    now: f64,
}

impl Replayed {
    /// A site that tells what these events say, which are all of a run or the first of them, in order.
    pub fn new(events: impl IntoIterator<Item = Event>) -> Self {
        let mut events = events.into_iter().peekable();
        let (mut turns, mut arrived) = (VecDeque::new(), 0);
        while let Some(first) = events.peek() {
            let (turn, seconds) = (first.turn, first.seconds);
            turns.push_back((seconds, signals_of(&mut events, turn, &mut arrived)));
        }
        Self { turns, now: 0.0 }
    }
}

/// What was told in this turn.
fn signals_of(events: &mut Peekable<impl Iterator<Item = Event>>, turn: u64, arrived: &mut usize) -> Vec<Signal> {
    let mut signals = vec![];
    while let Some(event) = events.next_if(|event| event.turn == turn) {
        signals.push(match event.kind {
            EventKind::Arrived { needs, profile_seconds, .. } => {
                *arrived += 1;
                Signal::Arrived { task: needs, profile_seconds }
            }
            // One that has arrived was refused by the fleet, which will do so again.
            EventKind::Refused { task, name, error } if task == *arrived => {
                *arrived += 1;
                Signal::Refused { name, error }
            }
            EventKind::Expected { task, end } => Signal::Expected { task, end },
            EventKind::Ended { task } => Signal::Ended { task, error: None },
            EventKind::Failed { task, error } => Signal::Ended { task, error: Some(error) },
            _ => continue,
        });
    }
    signals
}

impl Site for Replayed {
    fn now(&self) -> f64 {
        self.now
    }

    fn start(&mut self, _task: usize, _placement: &Placement) {}

    fn next(&mut self, _until: Option<f64>) -> Option<Vec<Signal>> {
        let (seconds, signals) = self.turns.pop_front()?;
        self.now = seconds;
        Some(signals)
    }
}
