//! What the trainer is told to fit does fit.

use alto_core::sched::Load;
use alto_core::simulated::systems::{AdapterLoad, Setup, System};
use alto_core::simulated::workload::{ModelShare, Space};
use proptest::prelude::*;

use crate::setup::{setup, task};

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

#[test]
fn on_one_device_what_fits_is_admitted() {
    let (setup, all) = paper(0, System::AdapterParallel);
    for count in 1..=all.len() {
        let together = &all[..count];
        assert_eq!(is_admitted(&setup, &all, together), setup.fits(together).unwrap(), "{count}");
    }
}
