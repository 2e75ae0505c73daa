//! The adaptive rung on sweeps drawn from the recorded ones: whether it keeps its promise, and what it is good for.

use alto_exit::AdaptiveRung;
use alto_exit::replay::{RecordedRun, Replay, TaskReport};
use rand::SeedableRng;
use rand::seq::index::sample;
use rand_chacha::ChaCha8Rng;

use crate::runs::sweeps;

const RESAMPLED: usize = 40;

#[test]
fn the_best_is_lost_no_more_often_than_promised_and_a_third_is_saved() {
    let corpora = sweeps();
    let tasks = ["answer", "ask", "cram", "solve"];
    for risk in [0.01, 0.1] {
        let policy = AdaptiveRung { risk, ..AdaptiveRung::default() };
        let (mut lost, mut saved, mut swept) = (0, 0.0, 0);
        for task in tasks {
            let of_task: Vec<_> = corpora.iter().filter(|corpus| corpus.task == task).collect();
            let mut random = ChaCha8Rng::seed_from_u64(7);
            for sweep in 0..RESAMPLED {
                let runs = &of_task[sweep % of_task.len()].runs;
                let drawn: Vec<&RecordedRun> =
                    sample(&mut random, runs.len(), 16).into_iter().map(|run| &runs[run]).collect();
                let curves = Replay::default().run(&drawn, &policy).unwrap();
                let report = TaskReport::new("", &drawn, &curves, &policy);
                lost += usize::from(!report.best_survived());
                saved += report.saved_share();
                swept += 1;
            }
        }
        assert_eq!(swept, tasks.len() * RESAMPLED);
        let n = swept as f64;
        // What a true rate of `risk` exceeds about once in a thousand times.
        let most = risk * n + 3.0 * (risk * (1.0 - risk) * n).sqrt();
        assert!(lost as f64 <= most, "the best was lost in {lost} of {swept} sweeps, at a risk of {risk}");
        assert!(saved / n >= 0.35, "{} saved at a risk of {risk}", saved / n);
    }
}
