//! Many tasks on many devices, with each scheduler.

use std::error::Error;
use std::path::Path;

use alto_core::fleet::{Fleet, Virtual};
use alto_core::sched::{Backfill, Cluster, FirstComeFirstServed, LongestFirst, Makespan, Scheduler, ShortestFirst};
use alto_core::simulated::systems::System;
use alto_core::simulated::workload::{Arrivals, Generator, TraceTask, TuningTask};
use alto_core::study::Trainings;
use cpu_time::ProcessTime;

use crate::Coming;

/// Tasks of the paper's models and spaces that come by chance, at this load.
pub(crate) fn generated(
    trainings: &mut Trainings,
    tasks: usize,
    devices: u32,
    load: f64,
    coming: Coming,
    seed: u64,
) -> Result<(), Box<dyn Error>> {
    let began = ProcessTime::now();
    let all = Generator::paper(seed, tasks, Arrivals::AtOnce).tasks()?;
    let mut seconds = 0.0;
    for (index, task) in all.iter().enumerate() {
        seconds += task.devices as f64 * trainings.of(task, System::AdapterParallel, Some(index))?.seconds();
    }
    let per_hour = 3600.0 * load * f64::from(devices) * tasks as f64 / seconds;
    let arrivals = match coming {
        Coming::Poisson => Arrivals::Poisson { per_hour },
        Coming::Bursty => Arrivals::Bursty { bursts_per_hour: per_hour / 20.0, mean_size: 20.0, spread: 600.0 },
    };
    let all: Vec<TuningTask> = Generator::paper(seed, tasks, arrivals).tasks()?;
    let days = all.last().map_or(0.0, |last| last.release / 86400.0);
    println!("{tasks} tasks, {per_hour:.1} an hour, {coming:?}, over {days:.1} days, on {devices} devices.");
    println!("All kinds of them are trained in {:.1} CPU seconds.", began.elapsed().as_secs_f64());
    compare(trainings, devices, &mut |trainings, site| {
        for (index, task) in all.iter().enumerate() {
            trainings.submit(site, task, System::AdapterParallel, index)?;
        }
        Ok(())
    })
}

/// The tasks of a trace.
pub(crate) fn traced(trainings: &mut Trainings, file: &Path, devices: u32) -> Result<(), Box<dyn Error>> {
    let all = TraceTask::read_file(file)?;
    println!("{} tasks of {} on {devices} devices.", all.len(), file.display());
    compare(trainings, devices, &mut |trainings, site| {
        for (index, task) in all.iter().enumerate() {
            trainings.submit_traced(site, task, System::AdapterParallel, index)?;
        }
        Ok(())
    })
}

type Submit<'a> = &'a mut dyn FnMut(&mut Trainings, &mut Virtual) -> Result<(), Box<dyn Error>>;

fn compare(trainings: &mut Trainings, devices: u32, submit: Submit) -> Result<(), Box<dyn Error>> {
    let makespan = || Makespan { steps: 20, ..Makespan::default() };
    let fleet = Fleet::new(Cluster::default().with(&trainings.device().name, devices, devices.min(8)));
    // A search takes longer the more it has to place: where queues are long, it looks at those first in line.
    let first = Fleet { planned: Some(100), ..fleet.clone() };
    let bounded = Fleet { overtaking: Some(50), ..first.clone() };
    let schedulers: [(&dyn Scheduler, &str, &Fleet); 6] = [
        (&FirstComeFirstServed, "first come, first served", &fleet),
        (&Backfill, "backfill", &fleet),
        (&ShortestFirst, "shortest first", &fleet),
        (&LongestFirst, "longest first", &fleet),
        (&makespan(), "makespan, first 100", &first),
        (&makespan(), "the same, overtaken at most 50 times", &bounded),
    ];
    for (index, (scheduler, name, fleet)) in schedulers.into_iter().enumerate() {
        let mut site = Virtual::default();
        submit(trainings, &mut site)?;
        let began = ProcessTime::now();
        let totals = fleet.run(scheduler, &mut site, &mut |_| {})?.totals;
        if index == 0 {
            println!("\n{:<36} in use  mean wait  longest wait   makespan  planned  CPU seconds", "scheduler");
        }
        print!(
            "{name:<36} {:>5.1}% {:>8.0} s {:>11.0} s",
            100.0 * totals.utilization,
            totals.mean_wait,
            totals.longest_wait
        );
        println!(" {:>8.0} s {:>8} {:>12.1}", totals.makespan, totals.replans, began.elapsed().as_secs_f64());
    }
    Ok(())
}
