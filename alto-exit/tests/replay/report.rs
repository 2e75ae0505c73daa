use alto_exit::replay::{PolicyReport, RecordedRun, Replay, comparison};
use alto_exit::{LossAware, Never, Underperforming};

use crate::runs::{corpus, recorded, run};

fn report(policy: &dyn alto_exit::ExitPolicy, runs: Vec<RecordedRun>) -> PolicyReport {
    Replay::default().report("a policy", policy, &[corpus(runs)]).expect("runs to replay")
}

/// Eight jobs of 10 steps; their losses after the first step, in the middle, and at the end.
fn eight() -> Vec<RecordedRun> {
    let losses = [
        (1.0, 1.0, 1.0),
        (1.1, 0.9, 0.5), // second at the rung, best in the end
        (1.2, 1.3, 1.4),
        (1.3, 1.2, 1.1),
        (1.4, 1.1, 0.6), // fifth at the rung, second in the end
        (1.5, 1.5, 1.5),
        (1.6, 1.6, 1.6),
        (1.7, f64::NAN, f64::INFINITY),
    ];
    losses.map(|(early, middle, late)| run(10, &[(0, 2.0), (1, early), (5, middle), (10, late)])).to_vec()
}

#[test]
fn a_late_bloomer_is_killed_and_the_best_stays() {
    let task = &report(&Underperforming { mark: 0.1, keep: 0.25 }, eight()).tasks[0];
    assert_eq!((task.jobs, task.budget), (8, 80));
    assert_eq!(task.saved, [("underperforming".to_owned(), 6 * 9)].into());
    assert_eq!(task.saved_share(), 54.0 / 80.0);
    assert_eq!((task.best, task.kept, task.regret()), (Some(0.5), Some(0.5), Some(0.0)));
    assert!(task.best_survived());
    // The final top quarter are jobs 1 and 4.
    assert_eq!(task.late_bloomers, 1);
    let [rung] = &task.rungs[..] else { panic!("one rung") };
    assert_eq!((rung.mark, rung.jobs, rung.went_on), (0.1, 8, 2));
    assert_eq!((rung.coverage, rung.best_went_on), (Some(0.5), Some(true)));
    // Final losses are the lowest of each run: 1.0, 0.5, 1.2, 1.1, 0.6, 1.5, 1.6, 1.7, so that the ranks are 3, 1, 5, 4, 2,
    // 6, 7, 8 against 1 to 8 at the rung: differences 2, 1, 2, 0, 3, and five of 28 pairs are turned round.
    let close = |found: Option<f64>, expected: f64| assert!((found.unwrap() - expected).abs() < 1e-12, "{found:?}");
    close(rung.spearman, 1.0 - 6.0 * 18.0 / (8.0 * 63.0));
    close(rung.kendall, (28.0 - 2.0 * 5.0) / 28.0);
}

#[test]
fn regret_is_what_the_best_left_behind_lacks_to_the_best_there_was() {
    let task = &report(&Underperforming { mark: 0.1, keep: 0.125 }, eight()).tasks[0];
    // Only job 0 goes on; job 1 leaves 1.1 behind.
    assert_eq!((task.best, task.kept, task.regret()), (Some(0.5), Some(1.0), Some(0.5)));
    assert!(!task.best_survived());
    let rung = &task.rungs[0];
    assert_eq!((rung.coverage, rung.best_went_on), (Some(0.0), Some(false)));
    // Job 1 was among the first two when it was ended: it was no late bloomer.
    assert_eq!(task.late_bloomers, 1);
}

#[test]
fn a_job_that_is_ended_behind_its_best_costs_nothing() {
    let runs = vec![run(10, &[(0, 2.0), (1, 1.0), (5, 1.6), (6, 1.7), (10, 1.8)])];
    let task = &report(&LossAware::default(), runs).tasks[0];
    assert_eq!(task.saved, [("overfitting".to_owned(), 4)].into());
    assert_eq!((task.regret(), task.best_survived(), task.late_bloomers), (Some(0.0), true, 0));
}

#[test]
fn samples_are_weighed_by_batch_size_and_counted_by_reason() {
    let mut runs = vec![
        RecordedRun { batch: 4, ..run(10, &[(1, 3.0), (10, 3.0)]) },
        run(40, &[(4, 2.0), (8, 2.0), (40, 2.0)]),
        run(40, &[(4, 1.0), (40, 0.9)]),
        run(40, &[(20, 1.0), (40, 0.9)]),
    ];
    runs[3].train_loss[1..4].fill(f64::NAN);
    let report =
        report(&LossAware { underperforming: Underperforming { mark: 0.1, keep: 0.5 }, ..LossAware::default() }, runs);
    let task = &report.tasks[0];
    // The second is at a gap of 1 at steps 4 and 8; the last fails at step 4 and is nobody's peer.
    let expected = [("failed", 36), ("overfitting", 32), ("underperforming", 36)];
    assert_eq!(task.saved, expected.map(|(word, samples)| (word.to_owned(), samples)).into());
    assert_eq!(task.budget, 160);
    let total = report.total();
    assert_eq!((total.saved, total.saved_by["failed"]), (104.0 / 160.0, 36.0 / 160.0));
}

#[test]
fn without_a_finite_loss_there_is_nothing_to_regret() {
    let runs = || vec![run(4, &[(0, 1.0), (2, f64::NAN), (4, f64::INFINITY)]); 2];
    let task = &report(&Never, runs()).tasks[0];
    assert_eq!((task.best, task.kept, task.regret(), task.late_bloomers), (None, None, None, 0));
    let mut late = runs();
    late[0].val_loss[2] = 1.0;
    let task = &report(&LossAware::default(), late).tasks[0];
    assert_eq!((task.regret(), task.best_survived()), (Some(f64::INFINITY), false));
}

#[test]
fn no_exit_saves_nothing_and_costs_nothing() {
    let total = report(&Never, recorded()).total();
    assert_eq!((total.saved, total.regret, total.best_survived, total.late_bloomers), (0.0, Some(0.0), 1, 0));
    assert_eq!((total.spearman, total.coverage, total.best_went_on), (None, None, (0, 0)));
}

#[test]
fn several_tasks_add_up_by_samples_and_average_by_task() {
    let corpora = [corpus(eight()), corpus(eight()[..4].to_vec())];
    let report = Replay::default().report("half", &Underperforming { mark: 0.1, keep: 0.125 }, &corpora).unwrap();
    let total = report.total();
    // 7 of 8 jobs and 3 of 4 are ended after one of 10 steps; regret is 0.5 twice.
    assert_eq!((total.tasks, total.jobs, total.saved), (2, 12, 90.0 / 120.0));
    assert_eq!((total.regret, total.worst_regret, total.best_survived), (Some(0.5), Some(0.5), 0));
    assert_eq!((total.coverage, total.best_went_on), (Some(0.0), (0, 2)));
}

#[test]
fn reports_are_read_back_from_json_and_read_by_people() {
    let report = report(&Underperforming { mark: 0.1, keep: 0.25 }, eight());
    let read: PolicyReport = serde_json::from_str(&serde_json::to_string(&report).unwrap()).unwrap();
    assert_eq!(read, report);
    let expected = "\
a policy, as many slots as jobs
task          jobs  saved  underperforming  best kept  regret  rung  went on  spearman  kendall  top 25%  late killed
made by hand     8  67.5%            67.5%        yes  0.0000   0.1      2/8      0.79     0.64    50.0%            1
together         8  67.5%            67.5%        1/1  0.0000                     0.79     0.64    50.0%            1
";
    assert_eq!(report.table().to_string(), expected);
    let expected = "\
1 tasks together
policy    saved  best kept  regret   worst  spearman  kendall  top 25%  late killed  saved by reason
a policy  67.5%        1/1  0.0000  0.0000      0.79     0.64    50.0%            1  underperforming 67.5%
";
    assert_eq!(comparison(&[report]).to_string(), expected);
}
