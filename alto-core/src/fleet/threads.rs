//! A site of threads and real time.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::fmt;
use std::iter;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use alto_sched::{Placement, Task};

use super::estimate::Estimate;
use super::failure;
use super::site::{Signal, Site};
use crate::job::Job;
use crate::trainer::Event;

/// How many messages are told together at most: somebody may send them faster than they are read.
const AT_ONCE: usize = 10_000;

/// A site where each task runs on a thread of its own, in real time; tasks are submitted from anywhere through a
/// [`Submitter`].
///
/// What devices a thread uses is up to its work, which is told its placement: which GPU, or how many threads. A panic
/// is a failure of that task alone. The site ends when all that was submitted has ended and every submitter is gone.
/// Dropping it before that waits for nobody: what runs then runs on, unheard.
///
/// ```
/// use alto_core::fleet::{Fleet, Threads};
/// use alto_sched::{Cluster, Makespan, Task};
///
/// let (mut site, submitter) = Threads::new();
/// submitter.submit(Task::rigid("sum", 1, 0.01), |placement, _| {
///     println!("on device {:?}: {}", placement.devices, (0..1000).sum::<u64>());
///     Ok(())
/// });
/// submitter.submit(Task::rigid("none", 1, 0.01), |_, _| Err("there is nothing to do".into()));
/// drop(submitter); // or keep it, and submit more while the fleet runs
///
/// let report = Fleet::new(Cluster::single("CPU", 2)).run(&Makespan::default(), &mut site, &mut |_| {})?;
/// assert_eq!((report.totals.finished, report.totals.failed), (1, 1));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Threads {
    began: Instant,
    inbox: Receiver<Message>,
    /// For the threads; while the site is there, the channel stays open.
    outbox: Sender<Message>,
    /// Whether somebody may submit more.
    open: bool,
    arrived: usize,
    running: BTreeSet<usize>,
    /// Of the tasks that wait.
    work: BTreeMap<usize, Work>,
}

type Work = Box<dyn FnOnce(&Placement, &Watch) -> Result<(), Box<dyn Error + Send + Sync>> + Send>;

enum Message {
    Submitted { task: Task, profile_seconds: f64, work: Work },
    Told(Signal),
    Closed,
}

impl Threads {
    /// A site without tasks, of which the clock begins now, and the handle to submit tasks with.
    pub fn new() -> (Threads, Submitter) {
        let (outbox, inbox) = channel();
        let submitter = Submitter { door: Arc::new(Door(outbox.clone())) };
        let (began, work) = (Instant::now(), BTreeMap::new());
        (Threads { began, inbox, outbox, open: true, arrived: 0, running: BTreeSet::new(), work }, submitter)
    }

    fn read(&mut self, message: Message) -> Option<Signal> {
        match message {
            Message::Submitted { task, profile_seconds, work } => {
                self.work.insert(self.arrived, work);
                self.arrived += 1;
                Some(Signal::Arrived { task, profile_seconds })
            }
            Message::Told(signal) => {
                let is_told = match &signal {
                    Signal::Refused { .. } => true,
                    Signal::Ended { task, .. } => self.running.remove(task),
                    // A watch may outlive its task.
                    Signal::Expected { task, .. } => self.running.contains(task),
                    Signal::Arrived { .. } => false,
                };
                self.arrived += usize::from(matches!(signal, Signal::Refused { .. }));
                is_told.then_some(signal)
            }
            Message::Closed => {
                self.open = false;
                None
            }
        }
    }
}

impl Site for Threads {
    fn now(&self) -> f64 {
        self.began.elapsed().as_secs_f64()
    }

    fn start(&mut self, task: usize, placement: &Placement) {
        self.running.insert(task);
        let watch = Watch { task, began: self.began, outbox: self.outbox.clone() };
        let work = self.work.remove(&task);
        let placement = placement.clone();
        let body = move || {
            // The words too: whatever panics here, the fleet must hear of an end.
            let result = failure::guarded(|| match work {
                Some(work) => work(&placement, &watch).map_err(|error| failure::words(&*error)),
                None => Err("it never came here, or has started before".into()),
            });
            watch.end(result.flatten());
        };
        if let Err(error) = thread::Builder::new().name(format!("task {task}")).spawn(body) {
            let error = Some(format!("no thread for it: {error}"));
            // The site has the other end of the channel.
            let _ = self.outbox.send(Message::Told(Signal::Ended { task, error }));
        }
    }

    fn next(&mut self, until: Option<f64>) -> Option<Vec<Signal>> {
        if until.is_none() {
            // Nobody waits, so these were refused; among what they hold may be submitters.
            self.work.clear();
        }
        let first = match until {
            None if !self.open && self.running.is_empty() => return None,
            None => self.inbox.recv().ok()?,
            Some(until) => {
                let left = Duration::try_from_secs_f64((until - self.now()).max(0.0)).unwrap_or(Duration::MAX);
                match self.inbox.recv_timeout(left) {
                    Ok(message) => message,
                    Err(_) => return Some(vec![]),
                }
            }
        };
        let mut signals: Vec<Signal> = self.read(first).into_iter().collect();
        for message in iter::from_fn(|| self.inbox.try_recv().ok()).take(AT_ONCE).collect::<Vec<_>>() {
            signals.extend(self.read(message));
        }
        Some(signals)
    }
}

impl fmt::Debug for Threads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { open, arrived, running, work, .. } = self;
        write!(f, "Threads {{ open: {open}, arrived: {arrived}, running: {}, waiting: {} }}", running.len(), work.len())
    }
}

/// Submits tasks to a site of [`Threads`], from any thread.
#[derive(Debug, Clone)]
pub struct Submitter {
    door: Arc<Door>,
}

/// Tells the site when nobody is left to submit anything.
#[derive(Debug)]
struct Door(Sender<Message>);

impl Drop for Door {
    fn drop(&mut self) {
        // A site that is gone needn't know.
        let _ = self.0.send(Message::Closed);
    }
}

impl Submitter {
    /// Submits a task; its work runs on a thread once the fleet starts it. Without effect when the site is gone.
    pub fn submit(
        &self,
        task: Task,
        work: impl FnOnce(&Placement, &Watch) -> Result<(), Box<dyn Error + Send + Sync>> + Send + 'static,
    ) {
        self.submit_profiled(task, 0.0, work);
    }

    /// The same for a task of which it took so many seconds to measure how long it takes.
    pub fn submit_profiled(
        &self,
        task: Task,
        profile_seconds: f64,
        work: impl FnOnce(&Placement, &Watch) -> Result<(), Box<dyn Error + Send + Sync>> + Send + 'static,
    ) {
        self.send(Message::Submitted { task, profile_seconds, work: Box::new(work) });
    }

    /// Lets the fleet know of a task that can't run, so that it stands in the report.
    pub fn refuse(&self, name: &str, error: &(dyn Error + 'static)) {
        self.send(Message::Told(Signal::Refused { name: name.to_owned(), error: failure::words(error) }));
    }

    fn send(&self, message: Message) {
        // Who waits for a site that is gone finds out from it.
        let _ = self.door.0.send(message);
    }
}

/// Tells the fleet how a running task gets on.
#[derive(Debug, Clone)]
pub struct Watch {
    task: usize,
    began: Instant,
    outbox: Sender<Message>,
}

impl Watch {
    /// Tells that the task is expected to end in so many seconds.
    pub fn expect(&self, seconds: f64) {
        let end = self.began.elapsed().as_secs_f64() + seconds;
        self.tell(Signal::Expected { task: self.task, end });
    }

    /// A listener for [`Trainer::run`](crate::trainer::Trainer::run) that tells the end that is expected by an
    /// [`Estimate`] for these jobs, whenever it moves.
    pub fn follow(&self, jobs: &[Job]) -> impl FnMut(&Event) + use<> {
        let (mut estimate, watch) = (Estimate::new(jobs), self.clone());
        move |event| {
            if let Some(end) = estimate.observe(event.seconds, &event.kind) {
                watch.expect(end - event.seconds);
            }
        }
    }

    fn end(self, result: Result<(), String>) {
        self.tell(Signal::Ended { task: self.task, error: result.err() });
    }

    fn tell(&self, signal: Signal) {
        // Nobody listens any more when the fleet has stopped.
        let _ = self.outbox.send(Message::Told(signal));
    }
}
