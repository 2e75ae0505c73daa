//! Every policy on twelve recorded runs: SmolLM2-135M on GSM8K, rank by learning rate, each trained to the end.

use std::fmt::Write;
use std::path::Path;

use alto_exit::{
    Curve, Diverging, End, EvaluationPoint, ExitPolicy, LossAware, Never, Overfitting, Reason, TrainPoint,
    Underperforming, Verdict,
};
use serde::Deserialize;

use crate::curves::prefix;

const RUNS: [&str; 12] = [
    "r4_lr1e-05_b2",
    "r16_lr1e-05_b2",
    "r4_lr0.0001_b2",
    "r16_lr0.0001_b2",
    "r4_lr0.0005_b2",
    "r16_lr0.0005_b2",
    "r4_lr0.002_b2",
    "r16_lr0.002_b2",
    "r4_lr0.01_b2",
    "r16_lr0.01_b2",
    "r4_lr0.05_b2",
    "r16_lr0.05_b2",
];

/// A recorded run, as far as it matters here.
#[derive(Deserialize)]
struct Run {
    steps: u64,
    train_loss: Vec<f64>,
    grad_norm: Vec<f64>,
    eval_step: Vec<u64>,
    val_loss: Vec<f64>,
}

impl Run {
    fn curve(self) -> Curve {
        let progress = |step| step as f64 / self.steps as f64;
        let train = (1..).zip(self.train_loss.iter().zip(&self.grad_norm));
        let evaluations = self.eval_step.iter().zip(&self.val_loss);
        Curve {
            train: train
                .map(|(step, (&loss, &norm))| TrainPoint {
                    step,
                    progress: progress(step),
                    loss,
                    grad_norm: Some(norm),
                })
                .collect(),
            evaluations: evaluations
                .map(|(&step, &loss)| EvaluationPoint { step, progress: progress(step), loss })
                .collect(),
            end: Some(End::Finished),
        }
    }
}

fn recorded() -> Vec<Curve> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata/curves");
    let read = |name: &str| {
        let path = directory.join(name).with_added_extension("json");
        let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let run: Run = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        run.curve()
    };
    RUNS.into_iter().map(read).collect()
}

/// Plays the runs side by side, evaluation by evaluation; a job that exits records nothing more.
fn played(policy: &dyn ExitPolicy, runs: &[Curve]) -> Vec<Curve> {
    let mut cohort = vec![Curve::default(); runs.len()];
    for evaluations in 1..=6 {
        for (curve, run) in cohort.iter_mut().zip(runs).filter(|(curve, _)| curve.end.is_none()) {
            *curve = prefix(run, evaluations);
        }
        let verdicts: Vec<Verdict> = (0..cohort.len()).map(|job| policy.judge(job, &cohort)).collect();
        for (curve, verdict) in cohort.iter_mut().zip(verdicts).filter(|(curve, _)| curve.end.is_none()) {
            if let Verdict::Exit(reason) = verdict {
                curve.end = Some(End::Exited(reason));
            }
        }
    }
    cohort
}

fn exit(curve: &Curve) -> Option<&Reason> {
    match &curve.end {
        Some(End::Exited(reason)) => Some(reason),
        _ => None,
    }
}

fn cell(curve: &Curve) -> String {
    match exit(curve) {
        None => "-".into(),
        Some(Reason::Underperforming { step, place, .. }) => format!("step {step}, place {place}"),
        Some(Reason::Diverging { step, .. } | Reason::Overfitting { step, .. }) => format!("step {step}"),
        Some(other) => panic!("no recorded run ends so: {other}"),
    }
}

fn table(runs: &[Curve]) -> String {
    let policies: [(&str, Box<dyn ExitPolicy>); 6] = [
        ("never", Box::new(Never)),
        ("diverging", Box::new(Diverging::default())),
        ("overfitting", Box::new(Overfitting::default())),
        ("and rising", Box::new(Overfitting { require_rise: true, ..Overfitting::default() })),
        ("underperforming", Box::new(Underperforming::default())),
        ("loss aware", Box::new(LossAware::default())),
    ];
    let mut out = format!("{:<16}  {:>9}  {:>15}  {:>8}", "run", "untrained", "best", "last");
    for (name, _) in &policies {
        write!(out, "  {name:<16}").expect("a String takes all");
    }
    let outcomes: Vec<Vec<Curve>> = policies.iter().map(|(_, policy)| played(&**policy, runs)).collect();
    for (job, run) in runs.iter().enumerate() {
        let untrained = run.untrained().expect("evaluated before the first step").loss;
        let best = run.best().expect("evaluated");
        let last = run.evaluations.last().expect("evaluated").loss;
        let at = format!("{:.4} at {:>2}", best.loss, best.step);
        write!(out, "\n{:<16}  {untrained:>9.4}  {at:>15}  {last:>8.4}", RUNS[job]).expect("a String takes all");
        for outcome in &outcomes {
            write!(out, "  {:<16}", cell(&outcome[job])).expect("a String takes all");
        }
    }
    out.push_str("\n\nwhy the loss-aware policy ends them\n");
    for (name, curve) in RUNS.iter().zip(&outcomes[5]) {
        let reason = exit(curve).map_or("goes on to the end".into(), Reason::to_string);
        writeln!(out, "{name:<16}  {reason}").expect("a String takes all");
    }
    let lines: Vec<&str> = out.lines().map(str::trim_end).collect();
    lines.join("\n") + "\n"
}

#[test]
fn the_verdicts_on_recorded_runs_are_those_in_the_table() {
    let found = table(&recorded());
    let expected = include_str!("../recorded_curves.txt");
    assert!(found == expected, "tests/recorded_curves.txt says\n{expected}\nbut found\n{found}");
}

#[test]
fn a_run_that_explodes_at_once_and_stays_high_is_a_blind_spot_of_both_slopes_and_gap() {
    let runs = recorded();
    let exploded = &runs[11];
    let losses: Vec<f64> = exploded.trained().map(|evaluation| evaluation.loss).collect();
    assert!(
        losses.iter().all(|&loss| loss > 5.0 * exploded.untrained().expect("evaluated before the first step").loss)
    );
    // It falls from its second evaluation on, and its training loss is as high: neither policy has anything to see.
    assert!(losses[1..].is_sorted_by(|a, b| a > b));
    for policy in [&Diverging::default() as &dyn ExitPolicy, &Overfitting::default()] {
        assert_eq!(exit(&played(policy, &runs)[11]), None);
    }
    // Only the comparison with the others ends it: the last place of twelve.
    let ended = played(&Underperforming::default(), &runs);
    assert!(matches!(exit(&ended[11]), Some(Reason::Underperforming { place: 12, of: 12, .. })));
    // Alone in its cohort, it trains to the end.
    let alone = played(&LossAware::default(), &runs[11..]);
    assert_eq!(exit(&alone[0]), None);
}

#[test]
fn the_early_ranking_cuts_the_run_that_ends_best_and_keeps_the_one_with_the_best_checkpoint() {
    let runs = recorded();
    let last = |job: &usize| runs[*job].evaluations.last().expect("evaluated").loss;
    let best = |job: &usize| runs[*job].best().expect("evaluated").loss;
    let first_by =
        |loss: &dyn Fn(&usize) -> f64| (0..runs.len()).min_by(|a, b| loss(a).total_cmp(&loss(b))).map(|job| RUNS[job]);
    assert_eq!(first_by(&last), Some("r4_lr0.0005_b2"));
    assert_eq!(first_by(&best), Some("r16_lr0.0005_b2"));
    let ended = played(&LossAware::default(), &runs);
    assert!(matches!(exit(&ended[4]), Some(Reason::Underperforming { place: 5, kept: 3, .. })));
    assert_eq!(ended[5].best(), runs[5].best());
    assert!(matches!(exit(&ended[5]), Some(Reason::Overfitting { step: 24, .. })));
}
