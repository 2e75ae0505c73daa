//! What the trainer is told to fit does fit.

use alto_core::exit::Never;
use alto_core::sched::Load;
use alto_core::simulated::systems::{AdapterLoad, Setup, System};
use alto_core::simulated::workload::{ModelShare, Space, TaskJob, TuningTask};
use alto_core::study::train;
use proptest::prelude::*;

use crate::setup::{job, run, setup, task};

/// The setup of one of the paper's models, and the jobs of its space.
fn paper(model: usize, system: System) -> (Setup, Vec<AdapterLoad>) {
    let ModelShare { model, devices, .. } = ModelShare::paper().swap_remove(model);
    let mut task = task(Space::paper(devices).jobs(1));
    (task.model, task.devices) = (model, devices);
    (setup(&task, system), task.jobs.iter().map(|job| job.load(140)).collect())
}

fn is_admitted(setup: &Setup, all: &[AdapterLoad], chosen: &[AdapterLoad]) -> bool {
    let model = setup.memory_model(all).expect("a setup with all parameters");
    let bytes = |load: &AdapterLoad| setup.optimizer.bytes() * setup.model.adapter_parameters(load.rank);
    let load = Load {
        adapter_bytes: chosen.iter().map(bytes).sum(),
        tokens: chosen.iter().map(|load| load.tokens).sum(),
        squared_tokens: 0,
    };
    model.reserve(&load) as f64 <= setup.devices as f64 * setup.device.memory
}

proptest! {
    #[test]
    fn whatever_is_admitted_fits(
        model in 0_usize..4,
        system in 0_usize..3,
        chosen in prop::collection::vec(0_usize..60, 1..40),
    ) {
        let system = [System::AdapterParallel, System::MLora, System::LoraFusion][system];
        let (setup, all) = paper(model, system);
        // As many of them as are admitted.
        let mut together = vec![];
        for index in chosen {
            together.push(all[index]);
            if !is_admitted(&setup, &all, &together) {
                together.pop();
            }
        }
        prop_assert!(setup.fits(&together).expect("a setup"), "{:?} of {}", together, setup.model.name);
    }
}

fn sizes() -> impl Strategy<Value = TaskJob> {
    let rank = prop_oneof![1_usize..64, Just(256), Just(2048)];
    let batch = prop_oneof![1_usize..8, Just(33), Just(256)];
    (rank, batch, 1_u64..300).prop_map(|(rank, batch, samples)| job(rank, batch, samples))
}

/// Jobs of very different sizes, on any number of devices.
fn uneven() -> impl Strategy<Value = TuningTask> {
    let model = prop_oneof![Just("Llama-3.2-1B"), Just("Llama-3.1-8B"), Just("Qwen2.5-32B"), Just("Llama-3.1-70B")];
    let row_tokens = prop_oneof![1_u64..200, Just(2048)];
    (model, 1_usize..=9, row_tokens, prop::collection::vec(sizes(), 1..14)).prop_map(
        |(model, devices, row_tokens, jobs)| TuningTask { model: model.to_owned(), devices, row_tokens, ..task(jobs) },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_fits_alone_is_trained(
        mut task in uneven(), system in 0..System::ALL.len(), recompute: bool, rows in 1_usize..300,
    ) {
        let setup = Setup { recompute, ..setup(&task, System::ALL[system]) };
        let (row_tokens, all) = (task.row_tokens, task.jobs.clone());
        task.jobs.retain(|job| setup.fits(&[job.load(row_tokens)]).expect("a setup"));
        prop_assume!(!task.jobs.is_empty());
        let trained = train(&task, &setup, &[run()], &Never, rows);
        let trained = trained.unwrap_or_else(|error| panic!("{error:?} of {all:?}"));
        prop_assert!(trained.seconds() > 0.0 && trained.seconds().is_finite());
        prop_assert_eq!(trained.samples, trained.samples_budgeted);
    }

    #[test]
    fn what_is_admitted_of_uneven_jobs_fits(task in uneven(), system in 0_usize..3, recompute: bool) {
        let system = [System::AdapterParallel, System::MLora, System::LoraFusion][system];
        let setup = Setup { recompute, ..setup(&task, system) };
        let loads = task.jobs.iter().map(|job| job.load(task.row_tokens));
        let all: Vec<AdapterLoad> = loads.filter(|load| setup.fits(&[*load]).expect("a setup")).collect();
        let mut together = vec![];
        for load in &all {
            together.push(*load);
            if !is_admitted(&setup, &all, &together) {
                together.pop();
            }
        }
        prop_assert!(together.is_empty() || setup.fits(&together).expect("a setup"), "{:?}", together);
    }
}

#[test]
fn on_one_device_what_fits_is_admitted() {
    let (setup, all) = paper(0, System::AdapterParallel);
    for count in 1..=all.len() {
        let together = &all[..count];
        assert_eq!(is_admitted(&setup, &all, together), setup.fits(together).unwrap(), "{count}");
    }
}
