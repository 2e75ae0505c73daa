//! What must hold of every system's cost, whatever the load.

use alto_core::simulated::systems::{AdapterLoad, System};
use proptest::prelude::*;

use crate::setup::shipped;

/// What computes behind a gathering that takes longer is subtracted and added again.
const ROUNDING: f64 = 1.0 + 1e-12;

fn loads() -> impl Strategy<Value = Vec<AdapterLoad>> {
    let load = (1_usize..=128, 1_usize..=8, 1_u64..=2048, 1_usize..=3).prop_map(|(rank, rows, row, micro_batches)| {
        AdapterLoad { micro_batches, ..AdapterLoad::new(rank, rows, row) }
    });
    prop::collection::vec(load, 1..12)
}

proptest! {
    #[test]
    fn longer_rows_are_never_faster(loads in loads(), devices in 1_usize..=8, factor in 2_u64..5) {
        let longer: Vec<_> = loads.iter().map(|l| AdapterLoad { tokens: factor * l.tokens, ..*l }).collect();
        for system in System::ALL {
            let setup = shipped(system, "H100 SXM", "Llama-3.1-8B", devices);
            let (short, long) = (setup.step(&loads).unwrap().seconds(), setup.step(&longer).unwrap().seconds());
            prop_assert!(short > 0.0 && short <= long * ROUNDING, "{system:?}: {short} s, then {long} s");
        }
    }

    #[test]
    fn more_tokens_of_one_adapter_are_never_faster(loads in loads(), more in 1_u64..5000) {
        let mut longer = loads.clone();
        longer[0].tokens += more;
        for system in System::ALL {
            let setup = shipped(system, "A100 PCIe 40 GB", "Llama-3.2-1B", 1);
            let (short, long) = (setup.step(&loads).unwrap().seconds(), setup.step(&longer).unwrap().seconds());
            prop_assert!(short <= long * ROUNDING, "{system:?}: {short} s, then {long} s");
        }
    }

    #[test]
    fn more_devices_are_never_slower_in_adapter_parallelism(loads in loads(), devices in 1_usize..8) {
        let on = |devices| shipped(System::AdapterParallel, "H100 SXM", "Llama-3.1-8B", devices);
        // Where too few have no memory, more may be slower than what can't be.
        let (few, more) = (on(devices).pass(&loads).unwrap(), on(devices + 1).pass(&loads).unwrap());
        prop_assert!(!on(devices).fits(&loads).unwrap() || more.seconds() <= few.seconds() * ROUNDING);
    }

    #[test]
    fn one_device_has_nobody_to_send_to(loads in loads()) {
        for system in System::ALL {
            let cost = shipped(system, "H200 SXM", "Qwen2.5-7B", 1).step(&loads).unwrap();
            prop_assert_eq!((cost.communication, cost.working), (0.0, 1));
        }
    }

    #[test]
    fn grouped_kernels_never_launch_more_than_one_adapter_after_another(loads in loads()) {
        let launches = |system| shipped(system, "H100 SXM", "Llama-3.2-1B", 1).pass(&loads).unwrap().launches;
        let grouped = launches(System::AdapterParallel);
        prop_assert!(grouped < launches(System::OneAfterAnother));
        prop_assert!(grouped < launches(System::MLora));
        let fewer = shipped(System::AdapterParallel, "H100 SXM", "Llama-3.2-1B", 1).pass(&loads[..1]).unwrap().launches;
        prop_assert_eq!(grouped, fewer);
    }
}
