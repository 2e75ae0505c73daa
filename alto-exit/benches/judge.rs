//! Milliseconds for one verdict on each of 1,000 jobs with 1,000 evaluations and 1,000 training losses, by policy.
//!
//! Every policy's verdicts are checked against those of [`judge`](alto_exit::ExitPolicy::judge) on some of the jobs, and
//! for having both outcomes where it can, before it is timed.
//!
//! Times are the least of many runs: a machine that has other things to do makes a run longer, never shorter. An argument
//! picks the policies whose names contain it.

use std::hint::black_box;
use std::time::{Duration, Instant};

use alto_exit::{
    AdaptiveRung, Asha, AtLeastPeers, Curve, Diverging, EvaluationPoint, ExitPolicy, Extrapolation, Hyperband,
    LossAware, MedianStopping, Never, NotBefore, Overfitting, Patience, Patient, SuccessiveHalving, TrainPoint,
    Underperforming, Verdict, WorseThanUntrained,
};

const JOBS: usize = 1000;
const EVALUATIONS: u64 = 1000;

/// Everybody has come half of the way, and stands at a mark of each policy that has marks.
const HERE: f64 = 0.5;

fn main() {
    let together = cohort(|_| HERE);
    // Batch sizes differ: no two jobs are equally far.
    let apart = cohort(|job| HERE * (1.0 - job as f64 / (2 * JOBS) as f64));
    let jobs: Vec<usize> = (0..JOBS).collect();
    // Cargo passes options of its own.
    let picked = std::env::args().skip(1).find(|argument| !argument.starts_with('-')).unwrap_or_default();
    println!("{:<28}  {:>8}  {:>8}", "ms for 1,000 verdicts", "together", "apart");
    for (name, policy) in policies().into_iter().filter(|(name, _)| name.contains(&picked)) {
        check(name, &*policy, &jobs, &together, name != "never");
        check(name, &*policy, &jobs, &apart, false);
        let [together, apart] = [&together, &apart].map(|cohort| {
            least(|| {
                black_box(policy.judge_all(black_box(&jobs), black_box(cohort)));
            })
        });
        println!("{name:<28}  {together:>8.3}  {apart:>8.3}");
    }
}

/// Milliseconds of the fastest run of half a second's worth, 30 at least.
fn least(mut run: impl FnMut()) -> f64 {
    let started = Instant::now();
    let mut least = f64::INFINITY;
    let mut runs = 0;
    while runs < 30 || started.elapsed() < Duration::from_millis(500) {
        let run_started = Instant::now();
        run();
        least = least.min(run_started.elapsed().as_secs_f64() * 1e3);
        runs += 1;
    }
    least
}

fn policies() -> Vec<(&'static str, Box<dyn ExitPolicy>)> {
    let halving = SuccessiveHalving { first: HERE / 16.0, eta: 2 };
    let underperforming = Underperforming { mark: HERE, keep: 0.25 };
    // A hair under, whichever way the product is rounded.
    let fifteenth_is_here = AdaptiveRung { first: HERE * (1.0 - 1e-12) / 1.25_f64.powi(14), ..AdaptiveRung::default() };
    vec![
        ("never", Box::new(Never)),
        ("diverging", Box::new(Diverging::default())),
        ("overfitting", Box::new(Overfitting::default())),
        ("underperforming", Box::new(underperforming.clone())),
        ("loss_aware", Box::new(LossAware { underperforming, ..LossAware::default() })),
        ("adaptive_rung", Box::new(fifteenth_is_here)),
        ("worse_than_untrained", Box::new(WorseThanUntrained::default())),
        ("patience/stalled", Box::new(Patience::default())),
        ("patience/generalization_loss", Box::new(Patience::GeneralizationLoss { alpha: 5.0 })),
        ("patience/quotient", Box::new(Patience::Quotient { alpha: 3.0, strip: 5 })),
        ("patience/rising", Box::new(Patience::Rising { strips: 2, strip: 5 })),
        ("median_stopping", Box::new(MedianStopping::default())),
        ("hyperband", Box::new(Hyperband { first: halving.first, eta: halving.eta })),
        ("asha", Box::new(Asha { first: halving.first, eta: halving.eta })),
        ("successive_halving", Box::new(halving)),
        ("extrapolation", Box::new(Extrapolation::default())),
        ("patient/overfitting", Box::new(Patient { evaluations: 3, policy: Overfitting::default() })),
        ("not_before/overfitting", Box::new(NotBefore { progress: 0.25, policy: Overfitting::default() })),
        ("at_least_peers/overfitting", Box::new(AtLeastPeers { peers: 5, policy: Overfitting::default() })),
    ]
}

/// Most jobs fall, each to another level; of the others a tenth each rises, overfits, and explodes and creeps down.
fn cohort(progress: impl Fn(usize) -> f64) -> Vec<Curve> {
    let curve = |job: usize| {
        let level = 1.0 + (job * 619 % JOBS) as f64 / JOBS as f64;
        let fall = |step: u64| level + (step as f64 / 100.0 + 1.0).recip() + 1e-3 * noise(job as u64, step);
        let late = |step: u64| (step as f64 - 900.0).max(0.0);
        let losses = |step: u64| match job % 10 {
            7 => (fall(step) + 0.01 * late(step), fall(step) + 0.01 * late(step)),
            8 => (fall(step), fall(step) * 1.5 + 0.01 * late(step)),
            9 => (50.0 + fall(step), 50.0 + fall(step)),
            _ => (fall(step), fall(step)),
        };
        let at = |step: u64| progress(job) * step as f64 / EVALUATIONS as f64;
        let untrained = EvaluationPoint { step: 0, progress: 0.0, loss: 3.0 };
        let evaluation = |step| EvaluationPoint { step, progress: at(step), loss: losses(step).1 };
        Curve {
            train: (1..=EVALUATIONS)
                .map(|step| TrainPoint { step, progress: at(step), loss: losses(step).0, grad_norm: Some(1.0) })
                .collect(),
            evaluations: [untrained].into_iter().chain((1..=EVALUATIONS).map(evaluation)).collect(),
            end: None,
        }
    };
    (0..JOBS).map(curve).collect()
}

/// From -1 to 1, by a hash.
fn noise(job: u64, step: u64) -> f64 {
    let mixed = (job << 32 | step).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let mixed = (mixed ^ (mixed >> 29)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    (mixed >> 11) as f64 / (1_u64 << 52) as f64 - 1.0
}

fn check(name: &str, policy: &dyn ExitPolicy, jobs: &[usize], cohort: &[Curve], has_both: bool) {
    let verdicts = policy.judge_all(jobs, cohort);
    for &job in jobs.iter().step_by(97) {
        assert_eq!(verdicts[job], policy.judge(job, cohort), "{name}: job {job}");
    }
    let kept = verdicts.iter().filter(|verdict| **verdict == Verdict::Keep).count();
    assert!(!has_both || (1..JOBS).contains(&kept), "{name} keeps {kept} of {JOBS}");
}
