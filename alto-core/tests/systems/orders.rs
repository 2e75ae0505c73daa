//! The order in which ALTO (arXiv:2604.05426) reports systems. No parameter was chosen for it.

use alto_core::simulated::systems::{AdapterLoad, System};

use crate::setup::shipped;

/// Llama-3.2-1B, 32 adapters, as in the paper's figure on kernels, with rows of 256 tokens.
fn kernels(system: System, batch: usize) -> f64 {
    let loads = vec![AdapterLoad::new(16, batch, 256); 32];
    shipped(system, "H100 SXM", "Llama-3.2-1B", 1).step(&loads).expect("a setup with all parameters").seconds()
}

#[test]
fn batching_wins_the_more_the_smaller_the_batch() {
    // The paper: 5.1, 3.7 and 2.5 times one after another at batches of 1, 2 and 4.
    let speedups =
        [1, 2, 4].map(|batch| kernels(System::OneAfterAnother, batch) / kernels(System::AdapterParallel, batch));
    assert!(speedups[0] > speedups[1] && speedups[1] > speedups[2] && speedups[2] > 1.0, "{speedups:?}");
}

#[test]
fn grouped_kernels_are_ahead_of_mlora_which_is_ahead_of_one_after_another() {
    for batch in [1, 2] {
        let [ours, mlora, alone] =
            [System::AdapterParallel, System::MLora, System::OneAfterAnother].map(|system| kernels(system, batch));
        assert!(ours < mlora && mlora < alone, "batch {batch}: {ours} s, {mlora} s, {alone} s");
    }
}

#[test]
fn adapter_parallelism_is_ahead_of_every_system_on_four_devices() {
    // A 70B model on 4 devices, batch 1 to 4, as in the paper's grid.
    let loads: Vec<AdapterLoad> = (0..8).map(|job| AdapterLoad::new(16 << (job % 4), 1 << (job % 3), 512)).collect();
    let seconds = |system| shipped(system, "H100 SXM", "Llama-3.1-70B", 4).step(&loads).unwrap().seconds();
    let ours = seconds(System::AdapterParallel);
    for system in [System::DataParallel, System::Pipeline, System::TensorParallel, System::MLora, System::LoraFusion] {
        assert!(ours < seconds(system), "{system:?}: {} s, ours {ours} s", seconds(system));
    }
}

#[test]
fn fsdp_falls_behind_adapter_parallelism_most_where_workers_idle() {
    let ahead = |rows: usize| {
        let loads = vec![AdapterLoad::new(16, rows, 512); 8];
        let seconds = |system| shipped(system, "H100 SXM", "Qwen2.5-32B", 4).step(&loads).unwrap().seconds();
        seconds(System::DataParallel) / seconds(System::AdapterParallel)
    };
    assert!(ahead(1) > ahead(2) && ahead(2) > ahead(4) && ahead(4) > 1.0, "{} {} {}", ahead(1), ahead(2), ahead(4));
}

#[test]
fn a_faster_memory_never_hurts() {
    for system in System::ALL {
        let loads = vec![AdapterLoad::new(16, 1, 256); 8];
        let seconds = |device| shipped(system, device, "Llama-3.1-8B", 2).step(&loads).unwrap().seconds();
        assert!(seconds("H200 SXM") <= seconds("H100 SXM") && seconds("H100 SXM") < seconds("A100 PCIe 80 GB"));
    }
}

#[test]
fn gathering_a_model_for_few_rows_is_slower_than_leaving_it_in_its_place() {
    let few = vec![AdapterLoad::new(16, 1, 140); 4];
    let seconds =
        |system, loads: &[AdapterLoad]| shipped(system, "H100 SXM", "Llama-3.1-70B", 4).step(loads).unwrap().seconds();
    assert!(seconds(System::TensorParallel, &few) < seconds(System::AdapterParallel, &few));
    let many = vec![AdapterLoad::new(16, 8, 140); 32];
    assert!(seconds(System::TensorParallel, &many) > seconds(System::AdapterParallel, &many));
}
