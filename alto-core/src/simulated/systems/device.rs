//! What a device can do at most: its roofline.

use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::error::{CostError, positive};
use crate::dtype::Dtype;

/// The version of the files that are read.
const VERSION: u32 = 1;

/// The files that come with this crate; `devices/README.md` says where each number is from.
const SHIPPED: [&str; 5] = [
    include_str!("../devices/h100-sxm.toml"),
    include_str!("../devices/h200-sxm.toml"),
    include_str!("../devices/a100-pcie-40gb.toml"),
    include_str!("../devices/a100-pcie-80gb.toml"),
    include_str!("../devices/amd-epyc-2-threads.toml"),
];

/// The roofline parameters of a device (Williams, Waterman and Patterson, 2009): a kernel takes as long as its
/// operations at the peak rate or its bytes at the memory's bandwidth, whichever is longer.
///
/// ```
/// use alto_core::simulated::systems::Device;
///
/// let h100 = Device::named("H100 SXM")?;
/// assert_eq!(h100.flops.bf16, Some(989.5e12));
/// # Ok::<(), alto_core::simulated::systems::CostError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Device {
    /// Version of this format: 1.
    pub version: u32,
    /// What it is called.
    pub name: String,
    /// Where the numbers are from.
    pub source: String,
    /// Peak rates.
    pub flops: Rates,
    /// Bytes per second of its memory.
    pub memory_bandwidth: f64,
    /// Bytes per second that it sends to other devices in one direction, while it receives as much; `None` if there
    /// are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link_bandwidth: Option<f64>,
    /// Bytes of its memory.
    pub memory: f64,
    /// What a kernel costs beside what it computes.
    pub launch: Launch,
}

/// Floating-point operations per second of dense products, a multiply-add being two; `None` where the device has none.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Rates {
    /// In f32.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub f32: Option<f64>,
    /// In f16, with sums in f32.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub f16: Option<f64>,
    /// In bf16, with sums in f32.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bf16: Option<f64>,
}

/// Seconds that each kernel costs whatever it computes.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Launch {
    /// What the host takes to send it; the device works meanwhile.
    pub send_seconds: f64,
    /// What the device takes to begin it.
    pub setup_seconds: f64,
}

impl Device {
    /// The devices that this crate has parameters of: H100 SXM, H200 SXM, A100 PCIe 40 GB and 80 GB, and the two
    /// threads of an AMD EPYC that this repository's benchmarks were recorded on.
    pub fn shipped() -> Vec<Device> {
        let parse = |text| Device::from_toml(text).expect("shipped files are checked by a test");
        SHIPPED.into_iter().map(parse).collect()
    }

    /// The shipped device of this name.
    ///
    /// # Errors
    /// None has it; the error lists those there are.
    pub fn named(name: &str) -> Result<Device, CostError> {
        let shipped = Device::shipped();
        let known = shipped.iter().map(|device| device.name.as_str()).collect::<Vec<_>>().join(", ");
        let found = shipped.into_iter().find(|device| device.name == name);
        found.ok_or_else(|| CostError::Unknown { what: "device", name: name.to_owned(), known })
    }

    /// Reads a device from a TOML file and checks it.
    ///
    /// # Errors
    /// Names the file and the parameter that is missing, unknown or not over 0.
    pub fn read(path: &Path) -> Result<Device, CostError> {
        let text = fs::read_to_string(path).map_err(|source| CostError::Open { path: path.into(), source })?;
        let device = Device::parse(&text, &path.display().to_string())?;
        device.check().map_err(|source| CostError::InFile { path: path.into(), source: Box::new(source) })?;
        Ok(device)
    }

    /// Takes a device from TOML and checks it.
    ///
    /// # Errors
    /// Names the parameter that is missing, unknown or not over 0.
    pub fn from_toml(text: &str) -> Result<Device, CostError> {
        let device = Device::parse(text, "the text")?;
        device.check()?;
        Ok(device)
    }

    fn parse(text: &str, path: &str) -> Result<Device, CostError> {
        let expected = "the roofline parameters of a device";
        let wrong = |source| CostError::Toml { path: path.to_owned(), expected, source: Box::new(source) };
        toml::from_str(text).map_err(wrong)
    }

    /// Checks that every parameter that is given is a finite number over 0.
    ///
    /// # Errors
    /// Names the first that isn't.
    pub fn check(&self) -> Result<(), CostError> {
        let name = || self.name.clone();
        if self.version != VERSION {
            return Err(CostError::Version { name: name(), found: self.version, expected: VERSION });
        }
        let Rates { f32, f16, bf16 } = self.flops;
        let given = [
            ("flops.f32", f32),
            ("flops.f16", f16),
            ("flops.bf16", bf16),
            ("memory_bandwidth", Some(self.memory_bandwidth)),
            ("link_bandwidth", self.link_bandwidth),
            ("memory", Some(self.memory)),
            ("launch.send_seconds", Some(self.launch.send_seconds)),
            ("launch.setup_seconds", Some(self.launch.setup_seconds)),
        ];
        for (parameter, value) in given {
            if let Some(value) = value {
                positive(&self.name, parameter, value)?;
            }
        }
        Ok(())
    }

    /// Floating-point operations per second of products in this dtype.
    pub(super) fn rate(&self, dtype: Dtype) -> Result<f64, CostError> {
        let rate = match dtype {
            Dtype::F32 => self.flops.f32,
            Dtype::F16 => self.flops.f16,
            Dtype::Bf16 => self.flops.bf16,
        };
        rate.ok_or_else(|| CostError::NoRate { name: self.name.clone(), dtype })
    }

    /// Bytes per second between devices.
    pub(super) fn link(&self) -> Result<f64, CostError> {
        let why = "a system on more than one device";
        let missing = || CostError::Missing { name: self.name.clone(), parameter: "link_bandwidth", why };
        self.link_bandwidth.ok_or_else(missing)
    }
}
