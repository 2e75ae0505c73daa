//! A simulated backend takes the time that a system would.

use alto_core::backend::Backend;
use alto_core::batch::{Batch, Example, Lane, Objective};
use alto_core::job::{AdamW, AdapterConfig, Decay, Job, Schedule};
use alto_core::simulated::systems::{AdapterLoad, Setup, System};
use alto_core::simulated::{RecordedRun, SimulatedBackend};

use crate::setup::shipped;

fn job(name: &str, rank: usize) -> Job {
    Job {
        name: name.to_owned(),
        adapter: AdapterConfig { rank, alpha: 8.0, rank_stabilized: false, targets: ["q_proj".to_owned()].into() },
        optimizer: AdamW::new(1e-3),
        schedule: Schedule { decay: Decay::Constant, warmup_steps: 0 },
        batch: 1,
        accumulation: 1,
        accumulation_mode: Default::default(),
        steps: 2,
        seed: 0,
    }
}

fn backend(setup: &Setup) -> SimulatedBackend {
    let run = r#"{"rank": 4, "alpha": 8, "lr": 0.001, "batch": 1, "steps": 2,
        "train_loss": [2, 1], "eval_step": [0, 2], "val_loss": [2, 1]}"#;
    let run: RecordedRun = serde_json::from_str(run).expect("a recorded run");
    let cost = setup.cost_model(&[AdapterLoad::new(8, 1, 64)]).expect("a setup with all parameters");
    let runs = ["a", "b"].map(|name| (name.to_owned(), run.clone()));
    SimulatedBackend::new(runs, cost).expect("runs that can be replayed").timed_by(setup.clone()).expect("a setup")
}

#[test]
fn every_call_takes_what_its_lanes_would() {
    for system in System::ALL {
        let setup = shipped(system, "H100 SXM", "Llama-3.1-8B", 2);
        let mut backend = backend(&setup);
        let slots = [("a", 4), ("b", 16)].map(|(name, rank)| backend.attach(&job(name, rank), None).unwrap());
        let row = Example { tokens: vec![1; 64], targets: vec![Some(1); 64] };
        let mut batch = Batch::default();
        for (slot, rows, last) in [(slots[0], 1, false), (slots[1], 3, true)] {
            let objective = Objective::NegativeLogLikelihood;
            let lane = Lane { slot: Some(slot), rows, objective, divisor: 1.0, last };
            batch.push(lane, std::iter::repeat_n(&row, rows));
        }
        let loads = [AdapterLoad::new(4, 1, 64), AdapterLoad::new(16, 3, 64)];
        let pass = setup.pass(&loads).unwrap().seconds();
        let step = pass + setup.update(&loads[1..]).unwrap().seconds();
        backend.step(&batch).unwrap();
        assert!((backend.elapsed().as_secs_f64() - step).abs() < 1e-8, "{system:?}");
        backend.evaluate(&batch).unwrap();
        assert!((backend.elapsed().as_secs_f64() - step - pass / 2.0).abs() < 1e-8, "{system:?}");
    }
}

#[test]
fn an_evaluation_recomputes_nothing() {
    let kept = shipped(System::AdapterParallel, "H100 SXM", "Llama-3.1-8B", 1);
    let elapsed = |setup: &Setup| {
        let mut backend = backend(setup);
        let slot = backend.attach(&job("a", 4), None).unwrap();
        let row = Example { tokens: vec![1; 64], targets: vec![Some(1); 64] };
        let mut batch = Batch::default();
        let objective = Objective::NegativeLogLikelihood;
        batch.push(Lane { slot: Some(slot), rows: 1, objective, divisor: 1.0, last: true }, [&row]);
        backend.step(&batch).unwrap();
        let step = backend.elapsed();
        backend.evaluate(&batch).unwrap();
        (step, backend.elapsed() - step)
    };
    let (step, evaluation) = elapsed(&kept);
    let recomputed = elapsed(&Setup { recompute: true, ..kept });
    assert!(recomputed.0 > step);
    assert!(recomputed.1.abs_diff(evaluation).as_nanos() < 10, "{:?}, {evaluation:?}", recomputed.1);
}

#[test]
fn the_linear_model_agrees_where_it_was_made() {
    let setup = shipped(System::AdapterParallel, "H100 SXM", "Llama-3.1-8B", 1);
    let loads = [AdapterLoad::new(16, 4, 256), AdapterLoad::new(64, 8, 256)];
    let cost = setup.cost_model(&loads).unwrap();
    let tokens = 12.0 * 256.0;
    let linear = cost.launch_seconds + cost.seconds_per_token * tokens;
    assert!((linear / setup.step(&loads).unwrap().seconds() - 1.0).abs() < 1e-9);
    assert_eq!(cost.fixed_bytes, 2 * 8_030_261_248);
    assert_eq!(cost.bytes_per_token, setup.bytes_per_token());
    assert_eq!(cost.budget, Some(80_000_000_000));
    let adapter = 7 * 16 * cost.adapter_bytes_per_rank;
    assert!(adapter.abs_diff(16 * setup.model.adapter_parameters(16)) <= 7 * 16);
}
