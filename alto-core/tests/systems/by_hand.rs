//! Each formula on a model so small that it can be followed by hand.
//!
//! The tiny model has 2 blocks of 34 weights, whose seven layers read 15 numbers and write 16; its head has 10 weights.

use alto_core::simulated::systems::{AdapterLoad, Device, Launch, Rates, System};

use crate::setup::{tiny, tiny_setup};

fn close(found: f64, expected: f64) {
    assert!((found - expected).abs() <= 1e-9 * expected, "{found}, expected {expected}");
}

/// Only operations count, one each second.
fn slow(device: &mut Device) {
    device.flops = Rates { f32: Some(1.0), f16: None, bf16: None };
}

/// Only launches count, one second of setup each.
fn heavy(device: &mut Device) {
    device.launch = Launch { send_seconds: 1e-30, setup_seconds: 1.0 };
}

/// Only what is sent counts, a byte each second.
fn far(device: &mut Device) {
    device.link_bandwidth = Some(1.0);
}

/// Only memory counts, a byte each second.
fn narrow(device: &mut Device) {
    device.memory_bandwidth = 1.0;
}

fn pass(system: System, devices: usize, change: impl FnOnce(&mut Device), loads: &[AdapterLoad]) -> f64 {
    tiny_setup(system, devices, change).pass(loads).expect("a setup with all parameters").seconds()
}

fn update(system: System, devices: usize, change: impl FnOnce(&mut Device), loads: &[AdapterLoad]) -> f64 {
    tiny_setup(system, devices, change).update(loads).expect("a setup with all parameters").seconds()
}

/// Rank 1, two rows of 3 tokens.
fn load() -> AdapterLoad {
    AdapterLoad::new(1, 2, 3)
}

/// Operations of a token in the products: 4 * (2 * 34 + 10).
const PRODUCTS: f64 = 312.0;

#[test]
fn the_tiny_model_is_what_these_numbers_say() {
    assert_eq!(tiny().parameters(), 10 + 2 * (34 + 4) + 2);
    assert_eq!(tiny().adapter_parameters(1), 2 * (15 + 16));
}

#[test]
fn operations_are_products_adapters_and_attention() {
    // Attention: 7 * queries (2) * rows (2) * 3 * 3 for each of 2 blocks. Adapter: 6 * 62 numbers for each of 6 tokens.
    let alone = 6.0 * PRODUCTS + 6.0 * 6.0 * 62.0 + 2.0 * 7.0 * 2.0 * 2.0 * 9.0;
    close(pass(System::AdapterParallel, 1, slow, &[load()]), alone);
    close(pass(System::OneAfterAnother, 1, slow, &[load(); 3]), 3.0 * alone);
    close(pass(System::MLora, 1, slow, &[load(); 3]), 3.0 * alone);
}

#[test]
fn bytes_are_weights_activations_and_factors() {
    let per_block = |input_moves: f64, output_moves: f64| {
        let base = 2.0 * 4.0 * (34.0 + 6.0 * 31.0);
        let adapter = 6.0 * 4.0 * (input_moves * 15.0 + output_moves * 16.0) + 12.0 * 31.0;
        let attention = 3.0 * 4.0 * 6.0 * 2.0 * 4.0;
        let elementwise = 4.0 * 6.0 * (30.0 * 2.0 + 4.0 * 4.0 + 8.0 * 3.0);
        base + adapter + attention + elementwise
    };
    let head = 2.0 * 4.0 * 10.0;
    close(pass(System::AdapterParallel, 1, narrow, &[load()]), 2.0 * per_block(4.0, 4.0) + head);
    close(pass(System::OneAfterAnother, 1, narrow, &[load()]), 2.0 * per_block(6.0, 10.0) + head);
    close(update(System::AdapterParallel, 1, narrow, &[load()]), 28.0 * 62.0);
}

#[test]
fn recomputation_makes_the_blocks_forward_once_more() {
    let more = |system, devices, change: fn(&mut Device)| {
        let mut setup = tiny_setup(system, devices, change);
        let kept = setup.pass(&[load()]).expect("a setup").seconds();
        setup.recompute = true;
        setup.pass(&[load()]).expect("a setup").seconds() - kept
    };
    // Two operations for each weight, adapter number and token, two of attention's seven, and no head.
    let operations = 2.0 * (6.0 * 2.0 * 34.0 + 6.0 * 2.0 * 31.0 + 2.0 * 2.0 * 2.0 * 9.0);
    close(more(System::AdapterParallel, 1, slow), operations);
    // Base, down and up of seven layers, or base, down, up, scale and add; and eight of the block.
    close(more(System::AdapterParallel, 1, heavy), 2.0 * (7.0 * 3.0 + 8.0));
    close(more(System::OneAfterAnother, 1, heavy), 2.0 * (7.0 * 5.0 + 8.0));
    close(more(System::MLora, 1, heavy), 2.0 * (7.0 * 11.0 / 3.0 + 8.0));
    close(more(System::LoraFusion, 1, heavy), 2.0 * (7.0 * 2.0 + 8.0));
    // Two more sums of each block's 6 tokens of 2 numbers over two devices, which send half of it twice.
    close(more(System::TensorParallel, 2, far), 2.0 * 2.0 * 6.0 * 2.0 * 4.0);
}

#[test]
fn recomputation_keeps_the_input_of_every_block_and_one_block() {
    let mut setup = tiny_setup(System::AdapterParallel, 1, |_| {});
    // 4 * 2 + 2 * (2 + 2) + 3 * 3 numbers of a block, in f32.
    assert_eq!(setup.bytes_per_token(), 4 * 2 * 25);
    setup.recompute = true;
    assert_eq!(setup.bytes_per_token(), 4 * (2 * 2 + 25));
}

#[test]
fn launches_are_counted_by_layer_and_adapter() {
    let with = |of_linear: f64| 2.0 * (7.0 * of_linear + 20.0) + 5.0;
    for (adapters, unfused) in [(1, 1.0), (4, 4.0)] {
        let loads = vec![load(); adapters];
        close(pass(System::AdapterParallel, 1, heavy, &loads), with(9.0));
        close(pass(System::OneAfterAnother, 1, heavy, &loads), unfused * with(12.0));
        // 3N forward and twice as many backward, beside the base's two.
        close(pass(System::MLora, 1, heavy, &loads), with(2.0 + 9.0 * unfused));
        close(pass(System::LoraFusion, 1, heavy, &loads), with(5.0));
    }
    let sent = |device: &mut Device| device.launch = Launch { send_seconds: 1.0, setup_seconds: 1e-30 };
    close(pass(System::AdapterParallel, 1, sent, &[load()]), with(9.0));
}

#[test]
fn lora_fusion_is_slower_at_the_base_and_widens_ranks() {
    let (narrow, wide) = (AdapterLoad::new(1, 1, 1), AdapterLoad::new(3, 1, 1));
    let base = 2.0 * 4.0 * 34.0 * 2.0 / 0.85;
    let adapters = 2.0 * 6.0 * 3.0 * 62.0;
    let rest = 2.0 * 4.0 * 10.0 + 2.0 * (7.0 * 2.0 * 2.0);
    close(pass(System::LoraFusion, 1, slow, &[narrow, wide]), base + adapters + rest);
}

#[test]
fn data_parallel_workers_without_rows_idle() {
    let setup = tiny_setup(System::DataParallel, 4, slow);
    let busiest = pass(System::OneAfterAnother, 1, slow, &[AdapterLoad::new(1, 1, 3)]);
    for rows in 1..=4 {
        let cost = setup.pass(&[AdapterLoad::new(1, rows, 3)]).unwrap();
        assert_eq!(cost.working, rows);
        close(cost.seconds(), busiest);
    }
    let cost = setup.pass(&[AdapterLoad::new(1, 5, 3)]).unwrap();
    assert_eq!(cost.working, 4);
    assert!(cost.seconds() > 1.9 * busiest);
}

#[test]
fn data_parallel_gathers_the_model_and_sums_gradients() {
    // 88 parameters of 4 bytes, twice, three quarters of them from others; gradients likewise.
    close(pass(System::DataParallel, 4, far, &[load()]), 2.0 * 0.75 * 4.0 * 88.0);
    close(update(System::DataParallel, 4, far, &[load()]), 2.0 * 0.75 * 4.0 * 62.0);
}

#[test]
fn gathering_hides_behind_computing() {
    let both = |device: &mut Device| {
        slow(device);
        far(device);
    };
    let cost = tiny_setup(System::DataParallel, 2, both).pass(&[load()]).unwrap();
    assert!(cost.compute > 352.0);
    assert_eq!(cost.communication, 0.0);
}

#[test]
fn a_pipeline_of_two_waits_once_more_than_it_has_rows() {
    // The last stage has a block and the head.
    let row = |head: f64| 3.0 * 4.0 * (34.0 + head) + 3.0 * 6.0 * 31.0 + 7.0 * 2.0 * 9.0;
    for rows in [1, 2, 8] {
        let loads = [AdapterLoad::new(1, rows, 3)];
        close(pass(System::Pipeline, 2, slow, &loads), (rows as f64 + 1.0) * row(10.0));
        // Handing on: activations and gradients of 3 tokens of 2 numbers for each row, and once more for the bubble.
        close(pass(System::Pipeline, 2, far, &loads), (rows as f64 + 1.0) * 2.0 * 3.0 * 2.0 * 4.0);
    }
}

#[test]
fn adapters_fill_a_pipeline_if_there_are_enough() {
    let loads = |adapters| vec![AdapterLoad::new(1, 1, 3); adapters];
    let group = 3.0 * 4.0 * 44.0 + 3.0 * 6.0 * 31.0 + 7.0 * 2.0 * 9.0;
    close(pass(System::MLora, 2, slow, &loads(1)), 2.0 * group);
    close(pass(System::MLora, 2, slow, &loads(2)), 2.0 * group);
    close(pass(System::MLora, 2, slow, &loads(4)), 4.0 * group);
    assert_eq!(tiny_setup(System::MLora, 2, slow).pass(&loads(1)).unwrap().working, 1);
}

#[test]
fn tensor_parallel_cuts_products_and_sums_activations() {
    let whole = pass(System::OneAfterAnother, 1, slow, &[load()]);
    close(pass(System::TensorParallel, 2, slow, &[load()]), whole / 2.0);
    // Four sums in each of two blocks, of 6 tokens of 2 numbers; half of each goes out twice.
    close(pass(System::TensorParallel, 2, far, &[load()]), 8.0 * 2.0 * 0.5 * 6.0 * 2.0 * 4.0);
}

#[test]
fn adapter_parallel_shares_adapters_out_and_sends_nothing() {
    let loads = [3, 1, 1, 1].map(|rows| AdapterLoad::new(1, rows, 3));
    let on = |loads: &[AdapterLoad]| pass(System::AdapterParallel, 1, slow, loads);
    close(pass(System::AdapterParallel, 2, slow, &loads), on(&loads[..1]).max(on(&loads[1..])));
    assert!(pass(System::AdapterParallel, 2, far, &loads) < 1e-20);
    let setup = tiny_setup(System::AdapterParallel, 4, slow);
    assert_eq!(setup.pass(&loads[1..]).unwrap().working, 3);
}

#[test]
fn a_model_that_fills_a_device_is_cut_and_gathered() {
    let small = |device: &mut Device| {
        far(device);
        device.memory = 4.0 * 88.0;
    };
    close(pass(System::AdapterParallel, 2, small, &[load(); 2]), 2.0 * 0.5 * 4.0 * 88.0);
}

#[test]
fn a_step_is_its_micro_batches_and_one_update() {
    let setup = tiny_setup(System::AdapterParallel, 1, slow);
    let (short, long) = (load(), AdapterLoad { micro_batches: 3, ..load() });
    let seconds = |loads: &[AdapterLoad]| setup.pass(loads).unwrap().seconds();
    let expected = seconds(&[short, long]) + 2.0 * seconds(&[long]) + setup.update(&[short, long]).unwrap().seconds();
    close(setup.step(&[short, long]).unwrap().seconds(), expected);
    assert_eq!(setup.step(&[]).unwrap().seconds(), 0.0);
}

#[test]
fn memory_is_model_adapters_and_activations() {
    let setup = tiny_setup(System::AdapterParallel, 1, |_| {});
    // Per token and block: 4 * 2 + 2 * (2 + 2) + 3 * 3 numbers.
    assert_eq!(setup.bytes_per_token(), 2 * 25 * 4);
    assert_eq!(setup.needed_bytes(&[load(); 2]).unwrap(), 4 * 88 + 2 * (16 * 62 + 6 * 200));
    let setup = tiny_setup(System::OneAfterAnother, 1, |_| {});
    assert_eq!(setup.needed_bytes(&[load(); 2]).unwrap(), 4 * 88 + 16 * 62 + 6 * 200);
    let setup = tiny_setup(System::DataParallel, 2, |_| {});
    assert_eq!(setup.needed_bytes(&[load()]).unwrap(), 2 * 88 + 8 * 62 + 3 * 200);
}
