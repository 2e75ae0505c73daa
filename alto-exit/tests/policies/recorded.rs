//! Every policy on twelve recorded runs: SmolLM2-135M on GSM8K, rank by learning rate, each trained to the end.

use std::fmt::Write;
use std::path::Path;

use alto_exit::{
    AdaptiveRung, AnyOf, Asha, AtLeastPeers, Curve, Diverging, End, EvaluationPoint, ExitPolicy, Extrapolation,
    Hyperband, LossAware, MedianStopping, Never, NotBefore, Overfitting, Patience, Patient, Reason, Standing,
    SuccessiveHalving, TrainPoint, Underperforming, Verdict, WorseThanUntrained,
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
        Some(
            Reason::Underperforming { step, place, .. }
            | Reason::Outpaced { step, place, .. }
            | Reason::SuccessiveHalving(Standing { step, place, .. })
            | Reason::Hyperband { standing: Standing { step, place, .. }, .. }
            | Reason::Asha(Standing { step, place, .. }),
        ) => format!("step {step}, place {place}"),
        Some(
            Reason::Diverging { step, .. }
            | Reason::Overfitting { step, .. }
            | Reason::WorseThanUntrained { step, .. }
            | Reason::Stalled { step, .. }
            | Reason::GeneralizationLoss { step, .. }
            | Reason::Quotient { step, .. }
            | Reason::Rising { step, .. }
            | Reason::MedianStopping { step, .. },
        ) => format!("step {step}"),
        Some(Reason::Extrapolation { step, chance, .. }) => format!("step {step}, {:.1}%", 100.0 * chance),
        Some(other) => panic!("no recorded run ends so: {other}"),
    }
}

type Named = (&'static str, Box<dyn ExitPolicy>);

/// The paper's policies, by themselves and together.
fn papers() -> Vec<Named> {
    vec![
        ("never", Box::new(Never)),
        ("diverging", Box::new(Diverging::default())),
        ("overfitting", Box::new(Overfitting::default())),
        ("and rising", Box::new(Overfitting { require_rise: true, ..Overfitting::default() })),
        ("underperforming", Box::new(Underperforming::default())),
        ("loss aware", Box::new(LossAware::default())),
    ]
}

/// Those that look at one curve; six evaluations are too few for some of the defaults.
fn single() -> Vec<Named> {
    let rising = Patience::Rising { strips: 2, strip: 1 };
    vec![
        ("untrained", Box::new(WorseThanUntrained::default())),
        ("and at once", Box::new(WorseThanUntrained { patience: 1, after: 0.0, ..WorseThanUntrained::default() })),
        ("stalled for 2", Box::new(Patience::Stalled { evaluations: 2, gain: 0.0 })),
        ("GL 5", Box::new(Patience::GeneralizationLoss { alpha: 5.0 })),
        ("PQ 0.5 by 2", Box::new(Patience::Quotient { alpha: 0.5, strip: 2 })),
        ("UP 2 by 1", Box::new(rising)),
    ]
}

/// Those that compare.
fn comparing() -> Vec<Named> {
    vec![
        ("adaptive 1%", Box::new(AdaptiveRung::default())),
        ("adaptive 30%", Box::new(AdaptiveRung { risk: 0.3, ..AdaptiveRung::default() })),
        ("median", Box::new(MedianStopping::default())),
        ("halving", Box::new(SuccessiveHalving { first: 0.05, eta: 3 })),
        ("hyperband", Box::new(Hyperband { first: 0.05, eta: 3 })),
        ("asha", Box::new(Asha { first: 0.05, eta: 3 })),
        ("extrapolation 4", Box::new(Extrapolation { evaluations: 4, ..Extrapolation::default() })),
    ]
}

fn decorated() -> Vec<Named> {
    let overfitting = Overfitting::default;
    let untrained = WorseThanUntrained::default;
    vec![
        ("patient for 2", Box::new(Patient { evaluations: 2, policy: overfitting() })),
        ("not before 0.8", Box::new(NotBefore { progress: 0.8, policy: overfitting() })),
        ("12 peers", Box::new(AtLeastPeers { peers: 12, policy: overfitting() })),
        ("with untrained", Box::new(AnyOf(vec![Box::new(LossAware::default()), Box::new(untrained())]))),
    ]
}

fn table(runs: &[Curve]) -> String {
    let mut out = String::new();
    for (title, policies) in [
        ("the paper's policies", papers()),
        ("policies that look at one curve", single()),
        ("policies that compare", comparing()),
        ("decorated: overfitting, and loss aware", decorated()),
    ] {
        write!(out, "{title}\n{:<16}  {:>9}  {:>15}  {:>8}", "run", "untrained", "best", "last")
            .expect("a String takes all");
        for (name, _) in &policies {
            write!(out, "  {name:<17}").expect("a String takes all");
        }
        let outcomes: Vec<Vec<Curve>> = policies.iter().map(|(_, policy)| played(&**policy, runs)).collect();
        for (job, run) in runs.iter().enumerate() {
            let untrained = run.untrained().expect("evaluated before the first step").loss;
            let best = run.best().expect("evaluated");
            let last = run.evaluations.last().expect("evaluated").loss;
            let at = format!("{:.4} at {:>2}", best.loss, best.step);
            write!(out, "\n{:<16}  {untrained:>9.4}  {at:>15}  {last:>8.4}", RUNS[job]).expect("a String takes all");
            for outcome in &outcomes {
                write!(out, "  {:<17}", cell(&outcome[job])).expect("a String takes all");
            }
        }
        out.push_str("\n\n");
    }
    out.push_str("why they end");
    for (name, policy) in papers().into_iter().chain(single()).chain(comparing()).skip(5) {
        write!(out, "\n\n{name}\n").expect("a String takes all");
        for (run, curve) in RUNS.iter().zip(played(&*policy, runs)) {
            let reason = exit(&curve).map_or("goes on to the end".into(), Reason::to_string);
            writeln!(out, "{run:<16}  {reason}").expect("a String takes all");
        }
        out.pop();
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
    // Alone in its cohort, it trains to the end, but for the comparison with the untrained adapter.
    let alone = played(&LossAware::default(), &runs[11..]);
    assert_eq!(exit(&alone[0]), None);
    let caught = played(&WorseThanUntrained::default(), &runs[11..]);
    assert!(matches!(exit(&caught[0]), Some(Reason::WorseThanUntrained { step: 24, .. })), "{:?}", exit(&caught[0]));
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
