//! The device by its name on the command line, and what it says of itself.

use std::fmt;
use std::panic;
use std::process::Command;
use std::str::FromStr;
use std::sync::{Arc, Mutex, PoisonError};

use alto_core::dtype::Dtype;
use burn::tensor::{DType, Device, Tensor};

use crate::record::message;

/// Where to compute.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// Burn's CPU backend.
    Flex,
    /// CubeCL's CPU runtime, which is there to test kernels.
    Cpu,
    /// The best adapter of WebGPU.
    Wgpu,
    /// An NVIDIA GPU by its index.
    Cuda(usize),
}

impl FromStr for Place {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        match name {
            "flex" => Ok(Self::Flex),
            "cpu" => Ok(Self::Cpu),
            "wgpu" => Ok(Self::Wgpu),
            "cuda" => Ok(Self::Cuda(0)),
            _ => {
                let index = name.strip_prefix("cuda:").and_then(|index| index.parse().ok());
                index.map(Self::Cuda).ok_or_else(|| "expected flex, cpu, wgpu, cuda or cuda:N".to_owned())
            }
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flex => f.write_str("flex"),
            Self::Cpu => f.write_str("cpu"),
            Self::Wgpu => f.write_str("wgpu"),
            Self::Cuda(index) => write!(f, "cuda:{index}"),
        }
    }
}

impl Place {
    /// The device, once it has added two numbers.
    ///
    /// # Errors
    /// When this build lacks it or it isn't there.
    pub(crate) fn open(self) -> Result<Device, String> {
        // A device has threads of its own, and the first panic of all is the cause of the others.
        let said = Arc::new(Mutex::new(None));
        let listener = Arc::clone(&said);
        let hook = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            let mut said = listener.lock().unwrap_or_else(PoisonError::into_inner);
            said.get_or_insert_with(|| message(info.payload()));
        }));
        let probed = panic::catch_unwind(|| {
            let device = self.device()?;
            let sum = Tensor::<1>::ones([2], (&device, DType::F32)).add_scalar(1.0).try_into_data();
            let right = sum.is_ok_and(|sum| sum.iter::<f32>().eq([2.0, 2.0]));
            if right { Ok(device) } else { Err(format!("{self} can't add one and one")) }
        });
        panic::set_hook(hook);
        let said = said.lock().unwrap_or_else(PoisonError::into_inner).take().unwrap_or_default();
        // What follows is a list of every name that a library was looked for by.
        let start: String = said.chars().take(160).collect();
        probed.unwrap_or_else(|_| Err(format!("{self} isn't there, or its driver isn't: {start}")))
    }

    fn device(self) -> Result<Device, String> {
        match self {
            Self::Flex => Ok(Device::flex()),
            #[cfg(feature = "cpu")]
            Self::Cpu => Ok(Device::cpu()),
            #[cfg(feature = "wgpu")]
            Self::Wgpu => Ok(Device::wgpu(burn::tensor::DeviceKind::DefaultDevice)),
            #[cfg(feature = "cuda")]
            Self::Cuda(index) => Ok(Device::cuda(index)),
            #[cfg(not(feature = "cpu"))]
            Self::Cpu => Err(built_without("cpu")),
            #[cfg(not(feature = "wgpu"))]
            Self::Wgpu => Err(built_without("wgpu")),
            #[cfg(not(feature = "cuda"))]
            Self::Cuda(_) => Err(built_without("cuda")),
        }
    }

    /// The dtypes that kernels run in on it.
    pub(crate) fn dtypes(self, device: &Device) -> Vec<DType> {
        match self {
            // Flex has the others, but the kernels on it compute in f32 alone.
            Self::Flex => vec![DType::F32],
            _ => [DType::F32, DType::F16, DType::BF16]
                .into_iter()
                .filter(|&dtype| device.supports_dtype(dtype))
                .collect(),
        }
    }

    /// Whether Burn's own operations can be timed on it: where there is no card behind a device of CubeCL's, their first
    /// use is tuned for minutes.
    pub(crate) fn tunes_quickly(self, device: &Device) -> bool {
        self == Self::Flex || has_card(device)
    }
}

#[cfg(not(all(feature = "cpu", feature = "wgpu", feature = "cuda")))]
fn built_without(feature: &str) -> String {
    format!("this program was built without {feature}: build it with --features {feature}")
}

#[cfg(feature = "cubecl")]
fn has_card(device: &Device) -> bool {
    device.identity().is_some_and(|identity| identity.physical.is_some())
}

#[cfg(not(feature = "cubecl"))]
fn has_card(_: &Device) -> bool {
    false
}

/// The device's name, and what drives it.
pub(crate) fn facts(place: Place, device: &Device) -> [String; 2] {
    if let Place::Cuda(index) = place {
        let query = ["--query-gpu=name,driver_version", "--format=csv,noheader", "-i", &index.to_string()];
        let output = Command::new("nvidia-smi").args(query).output().ok().filter(|output| output.status.success());
        let line = output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
        if let Some((name, driver)) = line.as_deref().and_then(|line| line.split_once(", ")) {
            return [name.to_owned(), format!("NVIDIA driver {driver}")];
        }
    }
    identity(device).unwrap_or_else(|| [processor(), "no driver".to_owned()])
}

#[cfg(feature = "cubecl")]
fn identity(device: &Device) -> Option<[String; 2]> {
    let identity = device.identity()?;
    Some([identity.name, format!("compiles for {}", identity.fingerprint)])
}

#[cfg(not(feature = "cubecl"))]
fn identity(_: &Device) -> Option<[String; 2]> {
    None
}

fn processor() -> String {
    let processors = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let mut fields = processors.lines().filter_map(|line| line.split_once(':'));
    let name = fields.find(|(field, _)| field.trim() == "model name").map(|(_, name)| name.trim().to_owned());
    name.unwrap_or_else(|| std::env::consts::ARCH.to_owned())
}

/// The trainer's name for Burn's dtype.
pub(crate) fn named(dtype: DType) -> Dtype {
    match dtype {
        DType::F16 => Dtype::F16,
        DType::BF16 => Dtype::Bf16,
        _ => Dtype::F32,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_named_as_they_print() {
        for name in ["flex", "cpu", "wgpu", "cuda:3"] {
            assert_eq!(name.parse::<Place>().map(|place| place.to_string()), Ok(name.to_owned()));
        }
        assert_eq!("cuda".parse(), Ok(Place::Cuda(0)));
        for wrong in ["gpu", "cuda:", "cuda:x", "flex:0"] {
            assert!(wrong.parse::<Place>().is_err(), "{wrong}");
        }
    }
}
