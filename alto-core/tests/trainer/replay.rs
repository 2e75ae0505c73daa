//! The replay of `alto-exit` against the trainer itself, on the same recorded runs.

use std::collections::BTreeMap;
use std::path::Path;

use alto_core::batch::Example;
use alto_core::data::Dataset;
use alto_core::job::Job;
use alto_core::simulated::{RecordedRun, read_corpus};
use alto_core::trainer::{Outcome, Trainer};
use alto_exit::replay::Replay;
use alto_exit::{
    AnyOf, Curve, Diverging, End, ExitPolicy, LossAware, Never, Overfitting, Reason, Underperforming, Verdict,
};
use proptest::prelude::*;

use super::random::{Whims, any_job, jobs};
use super::setup::{backend, candidates, job, recorded_sweep, rows};

/// Ends whoever is worse than the mean of what the others have by now: who ends depends on who trains beside whom.
#[derive(Debug)]
struct BehindTheOthers;

impl ExitPolicy for BehindTheOthers {
    fn judge(&self, job: usize, cohort: &[Curve]) -> Verdict {
        let latest = |curve: &Curve| curve.trained().last().map(|evaluation| evaluation.loss);
        let others = cohort.iter().enumerate().filter(|(other, _)| *other != job);
        let others: Vec<f64> = others.filter_map(|(_, curve)| latest(curve)).collect();
        let mean = others.iter().sum::<f64>() / others.len() as f64;
        match latest(&cohort[job]) {
            Some(own) if others.len() > 2 && own > mean => Verdict::Exit(Reason::Custom {
                policy: "behind the others".into(),
                numbers: BTreeMap::from([("mean".into(), mean)]),
            }),
            _ => Verdict::Keep,
        }
    }
}

/// The policy's rungs without its verdicts.
#[derive(Debug)]
struct RungsOf<'a>(&'a dyn ExitPolicy);

impl ExitPolicy for RungsOf<'_> {
    fn rungs(&self, job: usize) -> Vec<f64> {
        self.0.rungs(job)
    }

    fn judge(&self, _: usize, _: &[Curve]) -> Verdict {
        Verdict::Keep
    }
}

fn train(trainer: &Trainer, jobs: &[(Job, RecordedRun)], policy: &dyn ExitPolicy) -> Outcome {
    // Four tokens: their mean is exact.
    let row = Example { tokens: vec![0; 4], targets: vec![Some(0); 4] };
    let validation = Dataset::from_examples(vec![row]).expect("a row with labels");
    let outcome = trainer.run(&mut backend(jobs), &rows(8), &validation, candidates(jobs), policy, &mut |_| ());
    outcome.expect("a run without faults")
}

/// The runs as they would have been recorded at the steps at which the trainer evaluates.
fn recorded_there(trainer: &Trainer, jobs: &[(Job, RecordedRun)], policy: &dyn ExitPolicy) -> Vec<(Job, RecordedRun)> {
    let patient = Trainer { skips: u64::MAX, ..trainer.clone() };
    let evaluated = train(&patient, jobs, &RungsOf(policy)).report.jobs;
    let record = |((job, run), report): (&(Job, RecordedRun), &alto_core::trainer::JobReport)| {
        let eval_step: Vec<u64> = report.curve.evaluations.iter().map(|evaluation| evaluation.step).collect();
        let val_loss = eval_step.iter().map(|&step| run.val_loss(step, run.steps)).collect();
        (job.clone(), RecordedRun { eval_step, val_loss, batch: job.batch, ..run.clone() })
    };
    jobs.iter().zip(&evaluated).map(record).collect()
}

/// What must be alike: losses, and how and where it ended. The words for a failure are each one's own.
fn course(curve: &Curve) -> String {
    let train: Vec<(u64, f64)> = curve.train.iter().map(|point| (point.step, point.loss)).collect();
    let end = match &curve.end {
        Some(End::Failed { step, .. }) => format!("failed at {step}"),
        other => format!("{other:?}"),
    };
    format!("{end} {:?} {train:?}", curve.evaluations)
}

fn courses<'a>(curves: impl IntoIterator<Item = &'a Curve>) -> Vec<String> {
    curves.into_iter().map(course).collect()
}

/// Checks that replay and trainer agree on these jobs, recorded where this trainer evaluates.
fn agree(trainer: &Trainer, jobs: &[(Job, RecordedRun)], policy: &dyn ExitPolicy) -> Vec<Curve> {
    let slots = trainer.slots;
    let trained = train(trainer, jobs, policy);
    let runs: Vec<&RecordedRun> = jobs.iter().map(|(_, run)| run).collect();
    let replayed = Replay { slots, ..Replay::default() }.run(&runs, policy).expect("runs to replay");
    let expected = courses(trained.report.jobs.iter().map(|job| &job.curve));
    assert_eq!(courses(&replayed), expected, "{slots:?} slots, {policy:?}");
    replayed
}

/// The recorded sweeps, each with the progress between its evaluations.
fn sweeps() -> Vec<(f64, Vec<(Job, RecordedRun)>)> {
    let mut sweeps = vec![(0.25, recorded_sweep()), (0.05, recorded_sweep())];
    // Uneven batch sizes and budgets: waiting jobs are no longer admitted by index.
    for (index, (job, run)) in sweeps[1].1.iter_mut().enumerate() {
        job.batch = [2, 1, 4][index % 3];
        job.steps = [32, 16, 31][index % 3];
        run.steps = job.steps;
        run.train_loss.truncate(run.steps as usize);
        let evaluations = run.eval_step.partition_point(|&step| step <= run.steps);
        run.eval_step.truncate(evaluations);
        run.val_loss.truncate(evaluations);
        (run.grad_norm, run.lr_at) = (vec![], vec![]);
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata/curves/gsm-nano");
    let mut files: Vec<_> =
        std::fs::read_dir(folder).expect("testdata").map(|entry| entry.expect("a file").path()).collect();
    // One of the two seeds of each task.
    files.retain(|path| path.to_string_lossy().ends_with("-s0.json"));
    files.sort();
    for path in files {
        let corpus = read_corpus(path).expect("a corpus");
        let named = |(index, run): (usize, &RecordedRun)| {
            let mut job = job(&corpus.name(index), run.steps);
            job.batch = run.batch;
            (job, run.clone())
        };
        sweeps.push((0.02, corpus.runs.iter().enumerate().map(named).collect()));
    }
    sweeps
}

#[test]
fn recorded_sweeps_end_alike_replayed_and_trained() {
    let rising = Overfitting { require_rise: true, ..Overfitting::default() };
    let policies: [&dyn ExitPolicy; 6] = [
        &Never,
        &LossAware::default(),
        &LossAware { overfitting: rising, ..LossAware::default() },
        &Underperforming { mark: 0.2, keep: 0.5 },
        &BehindTheOthers,
        &AnyOf(vec![
            Box::new(Underperforming { mark: 0.1, keep: 0.75 }),
            Box::new(Underperforming { mark: 0.4, keep: 0.5 }),
            Box::new(Diverging::default()),
        ]),
    ];
    let mut by_slots = 0;
    for (interval, jobs) in sweeps() {
        for policy in policies {
            let trainer = Trainer { interval, ..Trainer::default() };
            let jobs = recorded_there(&trainer, &jobs, policy);
            let curves =
                [Some(1), Some(3), None].map(|slots| agree(&Trainer { slots, ..trainer.clone() }, &jobs, policy));
            by_slots += usize::from(courses(&curves[0]) != courses(&curves[2]));
        }
    }
    assert!(by_slots > 0, "the order of the jobs matters nowhere, so that the test doesn't show that it is the same");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_sweeps_end_alike_replayed_and_trained(
        drawn in prop::collection::vec(any_job(), 1..9),
        slots in prop::option::of(1..9_usize),
        interval in prop::sample::select(vec![0.01, 0.07, 0.25, 1.0]),
        (salt, exits) in (any::<u64>(), prop::sample::select(vec![0, 2, 20])),
        (mark, keep) in (prop::sample::select(vec![0.05, 0.11, 0.3]), prop::sample::select(vec![0.25, 0.5, 1.0])),
    ) {
        let jobs = jobs(&drawn);
        let marks = drawn.iter().map(|job| job.marks.clone()).collect();
        let whims = Whims { marks, salt, exits };
        let lags = Underperforming { mark, keep };
        let policy = AnyOf(vec![Box::new(whims), Box::new(lags), Box::new(BehindTheOthers)]);
        let trainer = Trainer { interval, slots, ..Trainer::default() };
        agree(&trainer, &recorded_there(&trainer, &jobs, &policy), &policy);
    }
}
