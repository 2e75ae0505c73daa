//! Runs several searches on the devices of this machine, and holds what happened against a replay and a simulation.
//!
//! Without arguments it runs the five tasks of `examples/fleet.toml` on two devices, each of which is half of this
//! machine's threads; under a minute on two cores. Two come while others run, one loses its device and fails alone, and
//! exits end the others long before they might have. For each task `OUT/TASK` has its best adapter and its report, and
//! `OUT/events.jsonl` all that the fleet was told and decided.
//!
//! ```text
//! fleet [FILE.toml] [--dry-run] [--out DIR] [--profiles FILE]
//! ```
//!
//! Exit code 0 if all tasks ended as they should (those that a file makes lose their device by failing), 1 if not, 2 if
//! nothing ran because something is wrong with the input.

mod compare;
mod events;
mod file;
mod lost;
mod work;

use std::io::Write;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::Duration;

use alto_core::fleet::{DryRun, Event, EventKind, Fleet, Profile, Profiles, Submitter, Threads, Watch};
use alto_core::sched::{Cluster, Makespan, Task};
use alto_core::trainer::{Report, TrainError};
use alto_examples::{chain, check_outputs, fresh, save_adapter, tell, write_new};
use clap::Parser;
use compare::Ran;
use events::Events;
use file::FleetFile;
use work::{Fallible, Work};

/// What the fleet was told and decided, in the output directory.
const EVENTS: &str = "events.jsonl";
/// What it came to, beside it.
const REPORT: &str = "report.json";

#[derive(Debug, Parser)]
#[command(
    about = "Runs several searches on the devices of this machine; without arguments, five on the quick start's model"
)]
struct Arguments {
    /// The tasks, in TOML.
    file: Option<PathBuf>,
    /// Only shows the plan.
    #[arg(long)]
    dry_run: bool,
    /// Where adapters, reports and events go; must not exist.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Where it is kept how fast the backend was, so that it needn't be measured again.
    #[arg(long, value_name = "FILE")]
    profiles: Option<PathBuf>,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let prepared = match Prepared::new(&arguments) {
        Ok(prepared) => prepared,
        Err(error) => {
            tell(format_args!("error: {}", chain(&*error)));
            return ExitCode::from(2);
        }
    };
    if arguments.dry_run {
        print(&prepared.plan.to_string());
        return ExitCode::SUCCESS;
    }
    match prepared.run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            tell(format_args!("error: {}", chain(&*error)));
            ExitCode::FAILURE
        }
    }
}

/// A task, what it needs and how that is known.
#[derive(Debug, Clone)]
struct Planned {
    work: Arc<Work>,
    task: Task,
    profile: Profile,
    profile_seconds: f64,
}

/// All that is known before anything runs.
#[derive(Debug)]
struct Prepared {
    fleet: Fleet,
    /// In the order in which they come, by which the fleet numbers them.
    tasks: Vec<Planned>,
    plan: DryRun,
    out: PathBuf,
}

impl Prepared {
    /// Reads and checks everything, and finds out how long each task takes.
    fn new(arguments: &Arguments) -> Fallible<Self> {
        let file = FleetFile::read(arguments.file.as_deref())?;
        let out = arguments.out.clone().unwrap_or_else(|| fresh("out/fleet"));
        check_outputs(&out, &out.join(EVENTS))?;
        for task in &file.tasks {
            let own = out.join(&task.name);
            check_outputs(&own, &own.join(REPORT))?;
        }
        let fleet = Fleet { overtaking: file.overtaking, ..Fleet::new(Cluster::single("CPU", file.devices)) };
        let tasks = plan(file, arguments.profiles.as_deref())?;
        let known = tasks.iter().map(|planned| Task { release: planned.work.after, ..planned.task.clone() }).collect();
        let plan = fleet.dry_run(&Makespan::default(), known)?;
        Ok(Self { fleet, tasks, plan, out })
    }

    /// Runs the tasks; whether all ended as they should, and the same decisions follow from the log.
    fn run(self) -> Fallible<bool> {
        let Self { fleet, tasks, out, .. } = self;
        let mut events = Events::create(&out)?;
        let (mut site, submitter) = Threads::new();
        let (tell_report, reports) = channel();
        let submitting = submit(submitter, tasks.clone(), &out, tell_report);
        let report = fleet.run(&Makespan::default(), &mut site, &mut |event| {
            show(event);
            events.note(event);
        })?;
        submitting.join().map_err(|_| "the tasks were not submitted")?;
        print(&report.table().to_string());
        let log = events.close()?;
        write_new(&out.join(REPORT), &serde_json::to_vec_pretty(&report)?)?;

        let ran = Ran { fleet: &fleet, tasks: &tasks, log: &log, report: &report, reports: reports.iter().collect() };
        let replays = ran.replay()?;
        print(&ran.simulate()?);
        let mut ended = tasks.iter().zip(&report.tasks);
        Ok(replays && ended.all(|(planned, task)| planned.work.is_to_fail() == task.failure.is_some()))
    }
}

/// Reads all tasks and finds out how long each takes.
fn plan(file: FleetFile, profiles: Option<&Path>) -> Fallible<Vec<Planned>> {
    let share = thread::available_parallelism().map_or(1, NonZeroUsize::get) / file.devices as usize;
    let mut known = profiles.map(Profiles::read).transpose()?.unwrap_or_default();
    let mut tasks = vec![];
    for task in file.tasks {
        let name = task.name.clone();
        let planned = || -> Fallible<Planned> {
            let work = Arc::new(Work::read(task, share.max(1))?);
            let (task, profile_seconds, profile) = work.plan(&mut known)?;
            Ok(Planned { work, task, profile, profile_seconds })
        };
        tasks.push(planned().map_err(|error| format!("task {name}: {}", chain(&*error)))?);
    }
    if let Some(path) = profiles {
        known.write(path)?;
    }
    tasks.sort_by(|a, b| a.work.after.total_cmp(&b.work.after));
    Ok(tasks)
}

/// Submits each task when its time has come.
fn submit(
    submitter: Submitter,
    tasks: Vec<Planned>,
    out: &Path,
    reports: Sender<(String, Report)>,
) -> thread::JoinHandle<()> {
    let out = out.to_owned();
    thread::spawn(move || {
        let mut now = 0.0;
        for Planned { work, task, profile_seconds, .. } in tasks {
            thread::sleep(Duration::from_secs_f64(work.after - now));
            now = work.after;
            let (out, reports) = (out.join(&work.name), reports.clone());
            submitter.submit_profiled(task, profile_seconds, move |_, watch| train(&work, watch, &out, &reports));
        }
    })
}

/// Trains a task and saves what has come of it, also where it fails.
fn train(work: &Work, watch: &Watch, out: &Path, reports: &Sender<(String, Report)>) -> Fallible<()> {
    let trained = work.train(watch)?;
    let outcome = match &trained {
        Ok(outcome) => outcome,
        Err(TrainError::Interrupted { outcome, .. }) => outcome,
        Err(_) => return Ok(trained.map(drop)?),
    };
    reports.send((work.name.clone(), outcome.report.clone()))?;
    let saved = save_adapter(outcome, &work.model, out).map_err(|error| chain(&*error));
    write_new(&out.join(REPORT), &serde_json::to_vec_pretty(&outcome.report)?)?;
    trained?;
    Ok(saved.map(drop)?)
}

fn show(event: &Event) {
    // How long each has left is told several times a second.
    if !matches!(event.kind, EventKind::Expected { .. }) {
        tell(format_args!("{:>6.1} s  {}", event.seconds, event.kind));
    }
}

fn print(text: &str) {
    // A closed pipe is no failure.
    let _ = writeln!(std::io::stdout(), "{text}");
}
