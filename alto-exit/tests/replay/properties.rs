use alto_exit::replay::{RecordedRun, Replay};
use alto_exit::{AnyOf, Diverging, End, Overfitting, Underperforming};
use proptest::collection::{btree_set, vec};
use proptest::prelude::*;

use crate::runs::{corpus, run};

/// Losses, some of them equal, some not finite.
fn loss() -> impl Strategy<Value = f64> {
    prop_oneof![9 => (1_u32..9).prop_map(|loss| f64::from(loss) / 4.0), 1 => proptest::num::f64::ANY]
}

fn any_run() -> impl Strategy<Value = RecordedRun> {
    (1_u64..30, 1_usize..4).prop_flat_map(|(steps, batch)| {
        let evaluations = btree_set(0..=steps, 1..=steps as usize + 1);
        (vec(loss(), steps as usize), evaluations, vec(loss(), steps as usize + 1)).prop_map(
            move |(train_loss, eval_step, losses)| {
                let points: Vec<(u64, f64)> = eval_step.into_iter().zip(losses).collect();
                RecordedRun { train_loss, batch, ..run(steps, &points) }
            },
        )
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_job_ends_with_a_prefix_of_its_record_and_the_report_adds_up(
        runs in vec(any_run(), 0..9),
        (slots, skips) in (prop::option::of(1_usize..9), 1_u64..4),
        (low, high, keep) in (0.01_f64..0.5, 0.01..0.99, 0.1..=1.0),
    ) {
        let policy = AnyOf(vec![
            Box::new(Underperforming { mark: low, keep }),
            Box::new(Underperforming { mark: high, keep }),
            Box::new(Diverging::default()),
            Box::new(Overfitting::default()),
        ]);
        let replay = Replay { slots, skips };
        let curves = replay.run(&runs, &policy).unwrap();
        for (run, curve) in runs.iter().zip(&curves) {
            let evaluations: Vec<_> = run.evaluations().take(curve.evaluations.len()).collect();
            prop_assert_eq!(format!("{:?}", &curve.evaluations), format!("{evaluations:?}"));
            let finite = (1..=run.steps).map(|step| run.train_point(step)).filter(|point| point.loss.is_finite());
            prop_assert!(curve.train.iter().copied().eq(finite.take(curve.train.len())));
            match curve.end.as_ref().expect("it ended") {
                End::Finished => prop_assert_eq!(evaluations.len(), run.eval_step.len()),
                End::Exited(_) => prop_assert!(evaluations.last().is_some_and(|last| last.step < run.steps)),
                other => {
                    let within = matches!(other, End::Failed { step, .. } if *step <= run.steps);
                    prop_assert!(within, "{other:?}");
                }
            }
        }
        let task = replay.report("all", &policy, &[corpus(runs)]).unwrap().tasks.remove(0);
        prop_assert!((0.0..=1.0).contains(&task.saved_share()), "{}", task.saved_share());
        prop_assert!(task.regret().is_none_or(|regret| regret >= 0.0));
        prop_assert_eq!(task.best_survived(), task.regret().unwrap_or(0.0) == 0.0);
        for rung in &task.rungs {
            prop_assert!(rung.went_on <= rung.jobs);
            prop_assert!(rung.spearman.is_none_or(|rho| rho.abs() < 1.0 + 1e-9));
            prop_assert!(rung.kendall.is_none_or(|tau| tau.abs() < 1.0 + 1e-9));
        }
    }
}
