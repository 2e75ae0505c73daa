//! Random sweeps: whatever the policy, the places and the failures, every job ends, and always alike.

use std::collections::BTreeMap;

use alto_core::job::Job;
use alto_core::simulated::{CostModel, RecordedRun};
use alto_core::trainer::{TrainError, Trainer};
use alto_exit::{AnyOf, Curve, ExitPolicy, Reason, Underperforming, Verdict};
use proptest::prelude::*;

use super::follow::follow;
use super::setup::{job, priced, recorded, run_on};

/// Rungs and exits at random, yet the same for the same curve.
#[derive(Debug, Clone)]
pub(crate) struct Whims {
    pub(crate) marks: Vec<Vec<f64>>,
    pub(crate) salt: u64,
    /// Of 100 verdicts, how many are exits.
    pub(crate) exits: u64,
}

impl ExitPolicy for Whims {
    fn rungs(&self, job: usize) -> Vec<f64> {
        self.marks[job].clone()
    }

    fn judge(&self, job: usize, cohort: &[Curve]) -> Verdict {
        let evaluations = cohort[job].evaluations.len() as u64;
        let mut hash = self.salt ^ (job as u64) << 32 ^ evaluations;
        for _ in 0..3 {
            hash = (hash ^ hash >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        }
        match hash >> 32 {
            x if x % 100 < self.exits => {
                Verdict::Exit(Reason::Custom { policy: "whims".into(), numbers: BTreeMap::new() })
            }
            _ => Verdict::Keep,
        }
    }
}

/// A loss out of a step and a number, some of them not finite.
fn loss(number: u64, step: u64, broken: u64) -> f64 {
    let x = number.wrapping_mul(step + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
    if x % 100 < broken { f64::NAN } else { 1.0 + (x % 1000) as f64 / 1000.0 }
}

/// What a job is made from.
#[derive(Debug, Clone)]
pub(crate) struct Drawn {
    steps: u64,
    batch: usize,
    accumulation: usize,
    /// Its losses follow from this.
    number: u64,
    /// Of 100 steps, how many are not finite.
    broken: u64,
    pub(crate) marks: Vec<f64>,
}

pub(crate) fn any_job() -> impl Strategy<Value = Drawn> {
    let marks = prop::collection::vec(prop::sample::select(vec![0.0, 0.05, 0.1, 0.12, 0.3, 0.5, 0.9, 1.0]), 0..4);
    let numbers = (1..30_u64, 1..4_usize, 1..3_usize, any::<u64>(), prop::sample::select(vec![0, 0, 30, 80]), marks);
    numbers.prop_map(|(steps, batch, accumulation, number, broken, marks)| Drawn {
        steps,
        batch,
        accumulation,
        number,
        broken,
        marks,
    })
}

pub(crate) fn jobs(drawn: &[Drawn]) -> Vec<(Job, RecordedRun)> {
    let build = |(index, drawn): (usize, &Drawn)| {
        let &Drawn { steps, batch, accumulation, number, broken, .. } = drawn;
        let job = Job { batch, accumulation, ..job(&index.to_string(), steps) };
        let train = (1..=steps).map(|step| loss(number, step, broken)).collect();
        let validation: Vec<(u64, f64)> = (0..=steps).map(|step| (step, loss(!number, step, broken / 4))).collect();
        (job, recorded(train, &validation))
    };
    drawn.iter().enumerate().map(build).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn all_jobs_end_and_no_verdict_depends_on_the_number_of_slots(
        drawn in prop::collection::vec(any_job(), 1..9),
        (slots, budget) in (1..9_usize, 1300..2800_u64),
        interval in prop::sample::select(vec![0.01, 0.07, 0.25, 1.0]),
        (salt, exits) in (any::<u64>(), prop::sample::select(vec![0, 2, 20])),
        (mark, keep) in (prop::sample::select(vec![0.05, 0.11, 0.3]), prop::sample::select(vec![0.25, 0.5, 1.0])),
    ) {
        let jobs = jobs(&drawn);
        let marks = drawn.iter().map(|job| job.marks.clone()).collect();
        let policy = AnyOf(vec![Box::new(Whims { marks, salt, exits }), Box::new(Underperforming { mark, keep })]);
        let verdicts = |slots, budget| {
            // The simulated device refuses what is over its budget, so that admitting too much is an error.
            let cost = CostModel { fixed_bytes: 1000, adapter_bytes_per_rank: 10, bytes_per_token: 10, budget, ..CostModel::default() };
            let trainer = Trainer { slots, interval, ..Trainer::default() };
            let (outcome, events) = run_on(&trainer, &mut priced(&jobs, cost), &jobs, &policy);
            let outcome = match outcome {
                Err(TrainError::NeverFits { .. }) => return None,
                other => other.expect("a run without faults"),
            };
            follow(&events, jobs.len(), slots);
            // A skipped step has no loss, so that what is not finite stands as text.
            let jobs = outcome.report.jobs.iter();
            Some(jobs.map(|job| format!("{:?} {:?} {}", job.ended, job.curve, job.steps)).collect::<Vec<_>>())
        };
        let expected = verdicts(None, None);
        prop_assert_eq!(&verdicts(Some(slots), None), &expected);
        if let Some(found) = verdicts(Some(slots), Some(budget)) {
            prop_assert_eq!(Some(found), expected);
        }
    }
}
