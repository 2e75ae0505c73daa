//! A run that is over, beside the same decisions taken again and the same tasks on simulated devices.

use std::collections::BTreeMap;

use alto_core::fleet::{Event, Fleet, Replayed, Report, Timeline, Virtual};
use alto_core::sched::Makespan;
use alto_core::trainer::{self, JobReport};
use alto_examples::tell;

use crate::Planned;
use crate::work::Fallible;

/// A run of a fleet that is over.
pub(crate) struct Ran<'a> {
    pub(crate) fleet: &'a Fleet,
    pub(crate) tasks: &'a [Planned],
    pub(crate) log: &'a [Event],
    pub(crate) report: &'a Report,
    /// What the tasks' jobs came to, by the task's name.
    pub(crate) reports: BTreeMap<String, trainer::Report>,
}

impl Ran<'_> {
    /// Whether the same decisions follow once more from what the fleet was told.
    pub(crate) fn replay(&self) -> Fallible<bool> {
        let (mut again, mut site) = (vec![], Replayed::new(self.log.to_vec()));
        self.fleet.run(&Makespan::default(), &mut site, &mut |event| again.push(event.clone()))?;
        match self.log.iter().zip(&again).find(|(first, second)| first != second) {
            None if again.len() == self.log.len() => {
                tell(format_args!("Replayed: the same {} events.", again.len()));
                Ok(true)
            }
            differs => {
                let count = (self.log.len(), again.len());
                tell(format_args!("error: the replay differs, {} events and {}: {differs:?}", count.0, count.1));
                Ok(false)
            }
        }
    }

    /// The same tasks on a virtual clock, on devices that are as fast as the profiles say, with the losses that the real
    /// ones had; beside what really happened.
    pub(crate) fn simulate(&self) -> Fallible<String> {
        let mut site = Virtual::default();
        for Planned { work, task, profile, profile_seconds } in self.tasks {
            let timeline = match self.reports.get(&work.name) {
                Some(report) => work.simulate(profile, report.jobs.iter().map(JobReport::to_run).collect())?,
                None => Timeline::failing(0.0, "it didn't begin to train"),
            };
            site.submit_profiled(work.after, task.clone(), *profile_seconds, |_| timeline);
        }
        let simulated = self.fleet.run(&Makespan::default(), &mut site, &mut |_| {})?;
        let mut text = format!("{:<12} {:>9} {:>11}\n", "task", "ended", "simulated");
        for (real, simulated) in self.report.tasks.iter().zip(&simulated.tasks) {
            let seconds = |time: Option<f64>| time.map_or_else(|| "-".to_owned(), |time| format!("{time:.1} s"));
            text += &format!("{:<12} {:>9} {:>11}\n", real.name, seconds(real.ended), seconds(simulated.ended));
        }
        let (real, simulated_makespan) = (self.report.totals.makespan, simulated.totals.makespan);
        let order = if ends(self.report) == ends(&simulated) { "the same" } else { "another" };
        text += &format!(
            "Simulated, the last ends after {simulated_makespan:.1} s, in truth after {real:.1} s: {:+.1}%, and they end in \
             {order} order.",
            100.0 * (simulated_makespan / real - 1.0)
        );
        Ok(text)
    }
}

/// The tasks in the order in which they ended.
fn ends(report: &Report) -> Vec<usize> {
    let end = |index: &usize| report.tasks[*index].ended.unwrap_or(f64::INFINITY);
    let mut order: Vec<usize> = (0..report.tasks.len()).collect();
    order.sort_by(|a, b| end(a).total_cmp(&end(b)));
    order
}
