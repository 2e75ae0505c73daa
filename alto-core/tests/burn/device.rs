//! The device that the tests train on.
//!
//! It is Flex, or what the environment says: `ALTO_DEVICE` is `flex`, `cpu`, `wgpu` or `cuda`, as far as the features of
//! those names are on.

use std::env;

use burn::tensor::Device;

/// The device under test.
pub(crate) fn device() -> Device {
    match env::var("ALTO_DEVICE").as_deref().unwrap_or("flex") {
        "flex" => Device::flex(),
        #[cfg(feature = "cpu")]
        "cpu" => Device::cpu(),
        #[cfg(feature = "wgpu")]
        "wgpu" => Device::wgpu(burn::tensor::DeviceKind::DefaultDevice),
        #[cfg(feature = "cuda")]
        "cuda" => Device::cuda(0),
        other => panic!("ALTO_DEVICE is {other}, which isn't among the features that this was built with"),
    }
}

/// The device under test if CubeCL's kernels run on it, else one where they do.
#[cfg(any(feature = "cpu", feature = "wgpu", feature = "cuda"))]
pub(crate) fn cubecl_device() -> Device {
    match device() {
        #[cfg(feature = "cpu")]
        device if device == Device::flex() => Device::cpu(),
        #[cfg(all(feature = "wgpu", not(feature = "cpu")))]
        device if device == Device::flex() => Device::wgpu(burn::tensor::DeviceKind::DefaultDevice),
        #[cfg(all(feature = "cuda", not(any(feature = "cpu", feature = "wgpu"))))]
        device if device == Device::flex() => Device::cuda(0),
        device => device,
    }
}
