//! How long a replay takes: 24 runs of 100 to 400 steps with 50 evaluations each, on 4 slots.
//!
//! `cargo bench -p alto-exit --bench replay`

use alto_exit::replay::{RecordedRun, Replay};
use alto_exit::{End, ExitPolicy, LossAware, Never, Underperforming};
use criterion::{Criterion, criterion_group, criterion_main};

/// Runs that fall towards levels of their own, some of which turn up again.
fn runs() -> Vec<RecordedRun> {
    let run = |job: u64| {
        let steps = [100, 200, 400][job as usize % 3];
        let loss = |step: u64, turn: f64| {
            let progress = step as f64 / steps as f64;
            let level = 1.0 + job as f64 / 24.0;
            level + (-(8.0 - job as f64 / 4.0) * progress).exp() + turn * (job % 4) as f64 * progress * progress
        };
        let eval_step: Vec<u64> = (0..=50).map(|fiftieth| fiftieth * steps / 50).collect();
        RecordedRun {
            name: None,
            seed: None,
            rank: 8,
            alpha: 16.0,
            lr: 1e-3,
            batch: 400 / steps as usize,
            steps,
            train_loss: (1..=steps).map(|step| loss(step, 0.0)).collect(),
            grad_norm: vec![],
            lr_at: vec![],
            val_loss: eval_step.iter().map(|&step| loss(step, 0.5)).collect(),
            eval_step,
            seconds: 0.0,
        }
    };
    (0..24).map(run).collect()
}

fn replay(criterion: &mut Criterion) {
    let runs = runs();
    let policies: [(&str, Box<dyn ExitPolicy>); 3] = [
        ("never", Box::new(Never)),
        ("underperforming", Box::new(Underperforming::default())),
        ("loss aware", Box::new(LossAware::default())),
    ];
    let replay = Replay { slots: Some(4), ..Replay::default() };
    for (name, policy) in &policies {
        // Six of 24 stay at the rung, and no slot changes who does.
        let finished = |replay: Replay| {
            let curves = replay.run(&runs, &**policy).expect("runs to replay");
            curves.iter().filter(|curve| curve.end == Some(End::Finished)).count()
        };
        assert_eq!(finished(replay), finished(Replay::default()), "{name}");
        assert!(if *name == "never" { finished(replay) == 24 } else { finished(replay) <= 6 }, "{name}");
        criterion.bench_function(name, |bencher| bencher.iter(|| replay.run(&runs, policy)));
    }
}

criterion_group!(benches, replay);
criterion_main!(benches);
