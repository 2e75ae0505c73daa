//! Setups that tests share.

use alto_core::dtype::Dtype;
use alto_core::simulated::systems::{Device, Launch, ModelShape, Optimizer, Rates, Setup, System};

/// A model of which every number can be had by hand: 2 blocks of 4 + 4 + 4 + 4 + 6 + 6 + 6 weights.
pub(crate) fn tiny() -> ModelShape {
    ModelShape {
        name: "tiny".to_owned(),
        layers: 2,
        hidden: 2,
        heads: 1,
        kv_heads: 1,
        head_dim: 2,
        intermediate: 3,
        vocabulary: 5,
        tied: true,
        qkv_bias: false,
    }
}

/// A device that has to wait for nothing but what a test sets.
pub(crate) fn endless() -> Device {
    Device {
        version: 1,
        name: "endless".to_owned(),
        source: "made up".to_owned(),
        flops: Rates { f32: Some(1e30), f16: None, bf16: Some(1e30) },
        memory_bandwidth: 1e30,
        link_bandwidth: Some(1e30),
        memory: 1e12,
        launch: Launch { send_seconds: 1e-30, setup_seconds: 1e-30 },
    }
}

/// So many endless devices with the tiny model in f32.
pub(crate) fn tiny_setup(system: System, devices: usize, change: impl FnOnce(&mut Device)) -> Setup {
    let mut device = endless();
    change(&mut device);
    Setup { system, device, model: tiny(), dtype: Dtype::F32, devices, optimizer: Optimizer::AdamW, recompute: false }
}

/// A shipped device and model in bf16.
pub(crate) fn shipped(system: System, device: &str, model: &str, devices: usize) -> Setup {
    let device = Device::named(device).expect("a shipped device");
    let model = ModelShape::named(model).expect("a shipped model");
    let dtype = if device.flops.bf16.is_some() { Dtype::Bf16 } else { Dtype::F32 };
    Setup { system, device, model, dtype, devices, optimizer: Optimizer::AdamW, recompute: false }
}
