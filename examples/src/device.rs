//! The device that a recipe computes on, by name.

use std::panic::{self, AssertUnwindSafe};
use std::str::FromStr;
use std::sync::{Arc, Mutex, PoisonError};

use burn::tensor::{DType, Device, Tensor};

/// A device as people name it on the command line: `flex`, `cpu`, `wgpu`, `cuda` or `cuda:N`.
///
/// Other devices than `flex` are there only in builds with the feature of their name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeviceName {
    /// Burn's Flex, pure Rust on the CPU.
    Flex,
    /// CubeCL's CPU runtime: the kernels of GPUs, for tests.
    Cpu,
    /// The GPU that WebGPU prefers.
    Wgpu,
    /// An NVIDIA GPU, by its number.
    Cuda(usize),
}

impl FromStr for DeviceName {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        match name {
            "flex" => Ok(Self::Flex),
            "cpu" => Ok(Self::Cpu),
            "wgpu" => Ok(Self::Wgpu),
            "cuda" => Ok(Self::Cuda(0)),
            _ => {
                let number = name.strip_prefix("cuda:").and_then(|number| number.parse().ok());
                number.map(Self::Cuda).ok_or_else(|| "expected flex, cpu, wgpu, cuda or cuda:N".to_owned())
            }
        }
    }
}

impl DeviceName {
    /// The device, once it has computed something.
    ///
    /// # Errors
    /// When this build lacks the device's feature, or the machine the device or its driver.
    pub fn open(self) -> Result<Device, String> {
        match self {
            Self::Flex => Ok(Device::flex()),
            #[cfg(feature = "cpu")]
            Self::Cpu => probed("cpu", Device::cpu),
            #[cfg(not(feature = "cpu"))]
            Self::Cpu => Err(missing("cpu")),
            #[cfg(feature = "wgpu")]
            Self::Wgpu => probed("wgpu", || Device::wgpu(burn::tensor::DeviceKind::DefaultDevice)),
            #[cfg(not(feature = "wgpu"))]
            Self::Wgpu => Err(missing("wgpu")),
            #[cfg(feature = "cuda")]
            Self::Cuda(number) => probed(&format!("cuda:{number}"), || Device::cuda(number)),
            #[cfg(not(feature = "cuda"))]
            Self::Cuda(_) => Err(missing("cuda")),
        }
    }
}

#[cfg(not(all(feature = "cpu", feature = "cuda", feature = "wgpu")))]
fn missing(feature: &str) -> String {
    format!("this was built without the device {feature}: build it with --features {feature}")
}

/// Opens a device and computes on it; whatever panics where a device or its driver is missing becomes an error.
#[cfg_attr(
    not(any(test, feature = "cpu", feature = "cuda", feature = "wgpu")),
    expect(dead_code, reason = "Flex is always there")
)]
fn probed(name: &str, open: impl FnOnce() -> Device) -> Result<Device, String> {
    // Devices have threads of their own, so what a panic says is known for sure only to the hook; the first is the cause.
    let said = Arc::new(Mutex::new(None));
    let listener = Arc::clone(&said);
    let hook = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        let mut said = listener.lock().unwrap_or_else(PoisonError::into_inner);
        said.get_or_insert_with(|| info.payload_as_str().unwrap_or("it panicked").to_owned());
    }));
    let computed = panic::catch_unwind(AssertUnwindSafe(|| {
        let device = open();
        let two = Tensor::<1>::ones([2], (&device, DType::F32)) + 1.0;
        let right = two.try_into_data().is_ok_and(|data| data.iter::<f32>().eq([2.0, 2.0]));
        right.then_some(device)
    }));
    panic::set_hook(hook);
    let said = said.lock().unwrap_or_else(PoisonError::into_inner).take();
    match computed {
        Ok(Some(device)) if said.is_none() => Ok(device),
        _ => {
            let said = said.unwrap_or_else(|| "it can't add".to_owned());
            // The rest is a list of every name that was tried.
            let start: String = said.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(160).collect();
            Err(format!("the device {name} is not there, or not its driver: {start}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_help() {
        for (name, device) in [
            ("flex", DeviceName::Flex),
            ("cpu", DeviceName::Cpu),
            ("wgpu", DeviceName::Wgpu),
            ("cuda", DeviceName::Cuda(0)),
            ("cuda:3", DeviceName::Cuda(3)),
        ] {
            assert_eq!(name.parse(), Ok(device));
        }
        for name in ["", "gpu", "cuda:", "cuda:x", "cuda:-1", "Flex", "flex:0"] {
            assert!(name.parse::<DeviceName>().is_err(), "{name}");
        }
    }

    #[test]
    fn flex_is_always_there() {
        assert_eq!(DeviceName::Flex.open(), Ok(Device::flex()));
    }

    #[test]
    fn what_a_missing_device_says_is_the_error() {
        let error = probed("imagined", || panic!("no such driver")).unwrap_err();
        assert_eq!(error, "the device imagined is not there, or not its driver: no such driver");
    }
}
