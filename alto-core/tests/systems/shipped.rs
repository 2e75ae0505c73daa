//! Models and devices that come with the crate.

use alto_core::model::ModelConfig;
use alto_core::simulated::systems::{AdapterLoad, Device, ModelShape, System};

use crate::setup::shipped;

/// As published with each model (safetensors' count).
const PUBLISHED: [(&str, u64); 6] = [
    ("Llama-3.1-8B", 8_030_261_248),
    ("Llama-3.2-1B", 1_235_814_400),
    ("Qwen2.5-7B", 7_615_616_512),
    ("Qwen2.5-32B", 32_763_876_352),
    ("Llama-3.1-70B", 70_553_706_496),
    ("SmolLM2-135M", 134_515_008),
];

#[test]
fn parameters_are_as_many_as_published() {
    for (name, parameters) in PUBLISHED {
        assert_eq!(ModelShape::named(name).unwrap().parameters(), parameters, "{name}");
    }
    assert_eq!(ModelShape::shipped().len(), PUBLISHED.len());
}

#[test]
fn a_token_costs_two_operations_for_each_parameter_it_meets() {
    for model in ModelShape::shipped() {
        // An untied embedding is looked up, not multiplied with; norms and biases are hardly anything.
        let looked_up = if model.tied { 0 } else { model.vocabulary * model.hidden };
        let met = (model.parameters() - looked_up as u64) as f64;
        let short = model.forward_flop_per_token(0) / (2.0 * met);
        assert!((0.999..=1.0).contains(&short), "{}: {short}", model.name);
    }
    // Attention of a full row of 2048: 2 operations for each of 32 blocks, 4096 widths and 2048 tokens.
    let model = ModelShape::named("Llama-3.1-8B").unwrap();
    let attention = model.forward_flop_per_token(2048) - model.forward_flop_per_token(0);
    assert_eq!(attention, 2.0 * 32.0 * 4096.0 * 2048.0);
}

#[test]
fn an_adapter_has_as_many_numbers_as_peft_says() {
    // print_trainable_parameters of rank 16 on all seven modules.
    let model = ModelShape::named("Llama-3.1-8B").unwrap();
    assert_eq!(model.adapter_parameters(16), 41_943_040);
}

#[test]
fn the_sizes_of_a_configuration_that_was_read_are_its_own() {
    let dir = concat!(env!("CARGO_MANIFEST_DIR"), "/../testdata/quickstart/gsm-nano");
    let config = ModelConfig::read(std::path::Path::new(dir)).unwrap();
    // As the quick start's README counts them.
    assert_eq!(ModelShape::of("gsm-nano", &config).parameters(), 869_504);
}

#[test]
fn every_shipped_device_has_its_source_and_positive_parameters() {
    let names: Vec<String> = Device::shipped().into_iter().map(|device| device.name).collect();
    let expected = ["H100 SXM", "H200 SXM", "A100 PCIe 40 GB", "A100 PCIe 80 GB", "AMD EPYC, 2 threads"];
    assert_eq!(names, expected);
    for device in Device::shipped() {
        device.check().unwrap();
        assert!(!device.source.is_empty(), "{}", device.name);
        let again = toml::to_string(&device).unwrap();
        assert_eq!(Device::from_toml(&again).unwrap(), device);
    }
}

#[test]
fn the_measured_cpu_takes_about_as_long_as_was_recorded() {
    // benches/record: whole steps of a model of two blocks, 16 adapters of rank 8 with four rows of 128 tokens each,
    // made 54,373 tokens a second. Parameters are of a product, a line and a triad, not of this.
    let mut setup = shipped(System::AdapterParallel, "AMD EPYC, 2 threads", "SmolLM2-135M", 1);
    setup.model = ModelShape {
        name: "bench".to_owned(),
        layers: 2,
        hidden: 128,
        heads: 4,
        kv_heads: 2,
        head_dim: 32,
        intermediate: 384,
        vocabulary: 4096,
        tied: true,
        qkv_bias: false,
    };
    let loads = vec![AdapterLoad::new(8, 4, 128); 16];
    let recorded = 16.0 * 512.0 / 54_373.0;
    let ratio = setup.step(&loads).unwrap().seconds() / recorded;
    assert!((0.5..2.0).contains(&ratio), "{ratio}");
}
