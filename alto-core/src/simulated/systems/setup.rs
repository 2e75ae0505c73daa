//! A system on devices with a model, and what a step costs it.

use serde::{Deserialize, Serialize};

use super::cost::StepCost;
use super::device::Device;
use super::error::{CostError, positive};
use super::load::AdapterLoad;
use super::model_shape::ModelShape;
use super::optimizer::Optimizer;
use super::{adapter_parallel, data_parallel, fused, one_after_another, per_adapter, pipeline, tensor_parallel};
use crate::dtype::Dtype;

/// A way to train many adapters of one frozen model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum System {
    /// Each adapter by itself on one device, as with PEFT; several devices train several at a time.
    OneAfterAnother,
    /// All adapters together with grouped kernels, each device a share of them: this repository, and ALTO.
    AdapterParallel,
    /// mLoRA (arXiv:2312.02515): a base product for all, then adapter by adapter; several devices are a pipeline that
    /// adapters fill.
    MLora,
    /// LoRAFusion (arXiv:2510.00206): kernels fused around the base product; several devices are a pipeline likewise.
    LoraFusion,
    /// One adapter after another, its rows spread over devices that share the frozen weights (PyTorch FSDP, Zhao et
    /// al., 2023).
    DataParallel,
    /// One adapter after another, blocks spread over devices, rows following one another (GPipe, Huang et al., 2019).
    Pipeline,
    /// One adapter after another, each product spread over all devices (Megatron-LM, Shoeybi et al., 2019).
    TensorParallel,
}

impl System {
    /// All of them.
    pub const ALL: [System; 7] = [
        System::OneAfterAnother,
        System::AdapterParallel,
        System::MLora,
        System::LoraFusion,
        System::DataParallel,
        System::Pipeline,
        System::TensorParallel,
    ];

    /// What it is called in tables.
    pub fn name(self) -> &'static str {
        match self {
            System::OneAfterAnother => "one after another",
            System::AdapterParallel => "adapter parallel",
            System::MLora => "mLoRA",
            System::LoraFusion => "LoRAFusion",
            System::DataParallel => "data parallel (FSDP)",
            System::Pipeline => "pipeline",
            System::TensorParallel => "tensor parallel",
        }
    }

    /// How many adapters it trains at a time on so many devices; `None` where memory alone decides.
    pub fn slots(self, devices: usize) -> Option<usize> {
        match self {
            System::OneAfterAnother => Some(devices),
            System::DataParallel | System::Pipeline | System::TensorParallel => Some(1),
            System::AdapterParallel | System::MLora | System::LoraFusion => None,
        }
    }
}

/// A system that trains adapters of a model on devices of one kind.
///
/// Costs are pure formulas, each in the documentation of its system's file; they take every kernel for as good as the
/// device's roofline allows, so that what tells systems apart is what they launch, move, pad, wait for and send.
///
/// ```
/// use alto_core::dtype::Dtype;
/// use alto_core::simulated::systems::{AdapterLoad, Device, ModelShape, Optimizer, Setup, System};
///
/// let setup = |system| -> Result<Setup, alto_core::simulated::systems::CostError> {
///     let (device, model) = (Device::named("H100 SXM")?, ModelShape::named("Llama-3.2-1B")?);
///     Ok(Setup { system, device, model, dtype: Dtype::Bf16, devices: 1, optimizer: Optimizer::AdamW, recompute: false })
/// };
/// // 32 adapters of rank 16, one row of 256 tokens each.
/// let loads = vec![AdapterLoad::new(16, 1, 256); 32];
/// let alone = setup(System::OneAfterAnother)?.step(&loads)?.seconds();
/// let together = setup(System::AdapterParallel)?.step(&loads)?.seconds();
/// assert!(alone > 3.0 * together);
/// # Ok::<(), alto_core::simulated::systems::CostError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Setup {
    /// How adapters are trained.
    pub system: System,
    /// On what.
    pub device: Device,
    /// Adapters of what.
    pub model: ModelShape,
    /// In which numbers the model computes; adapters and their optimizer are f32.
    pub dtype: Dtype,
    /// On how many devices.
    pub devices: usize,
    /// How adapters are updated.
    #[serde(default)]
    pub optimizer: Optimizer,
    /// Whether only each block's input is kept from forward to backward, and backward computes the rest of it anew: less
    /// memory for one more forward of every block. Chen et al., *Training deep nets with sublinear memory cost*, 2016.
    #[serde(default)]
    pub recompute: bool,
}

impl Setup {
    /// Checks that every parameter that these systems need is there and over 0.
    ///
    /// # Errors
    /// Names the device or model and the parameter.
    pub fn check(&self) -> Result<(), CostError> {
        self.device.check()?;
        self.model.check()?;
        positive(self.system.name(), "devices", self.devices as f64)?;
        self.device.rate(self.dtype)?;
        if self.devices > 1 && self.system != System::OneAfterAnother {
            self.device.link()?;
        }
        let is_cut = matches!(self.system, System::MLora | System::LoraFusion | System::Pipeline);
        match is_cut && self.devices > self.model.layers {
            true => Err(CostError::TooManyStages {
                model: self.model.name.clone(),
                layers: self.model.layers,
                devices: self.devices,
            }),
            false => Ok(()),
        }
    }

    /// An optimizer step of every adapter: as many passes as the most micro-batches, of those that have one left, and
    /// the update of all.
    ///
    /// # Errors
    /// As [`check`](Self::check).
    pub fn step(&self, loads: &[AdapterLoad]) -> Result<StepCost, CostError> {
        let calls = loads.iter().map(|load| load.micro_batches).max().unwrap_or(0);
        let mut cost = self.update(loads)?;
        let mut call = 0;
        while call < calls {
            let active: Vec<AdapterLoad> = loads.iter().copied().filter(|load| load.micro_batches > call).collect();
            // All calls up to where the next adapter has had its last are alike.
            let next = active.iter().map(|load| load.micro_batches).min().unwrap_or(calls);
            cost = cost.then(self.pass(&active)?.times((next - call) as f64));
            call = next;
        }
        Ok(cost)
    }

    /// Forward and backward of one micro-batch of every adapter.
    ///
    /// # Errors
    /// As [`check`](Self::check).
    pub fn pass(&self, loads: &[AdapterLoad]) -> Result<StepCost, CostError> {
        self.check()?;
        match self.system {
            System::OneAfterAnother => one_after_another::pass(self, loads),
            System::AdapterParallel => adapter_parallel::pass(self, loads),
            System::MLora => per_adapter::pass(self, loads),
            System::LoraFusion => fused::pass(self, loads),
            System::DataParallel => data_parallel::pass(self, loads),
            System::Pipeline => pipeline::pass(self, loads),
            System::TensorParallel => tensor_parallel::pass(self, loads),
        }
    }

    /// The optimizer's update of every adapter, with what must be known of gradients elsewhere.
    ///
    /// # Errors
    /// As [`check`](Self::check).
    pub fn update(&self, loads: &[AdapterLoad]) -> Result<StepCost, CostError> {
        self.check()?;
        match self.system {
            System::OneAfterAnother => one_after_another::update(self, loads),
            System::AdapterParallel => adapter_parallel::update(self, loads),
            System::DataParallel => data_parallel::update(self, loads),
            // Factors are where their part of the model is.
            System::MLora | System::LoraFusion | System::Pipeline | System::TensorParallel => {
                let cost = super::work::update(self, loads, loads.len(), self.devices);
                Ok(StepCost { working: cost.working * self.devices, ..cost })
            }
        }
    }

    /// Seconds in which a device sends so many bytes.
    pub(super) fn sent(&self, bytes: f64) -> Result<f64, CostError> {
        if self.devices < 2 { Ok(0.0) } else { Ok(bytes / self.device.link()?) }
    }

    /// Bytes that each device sends to give the others its part of so many: all but one of the parts go through it
    /// (ring).
    pub(super) fn gathered(&self, bytes: f64) -> f64 {
        bytes * (self.devices as f64 - 1.0) / self.devices as f64
    }

    /// Bytes of the frozen model.
    pub(super) fn model_bytes(&self) -> f64 {
        self.model.parameters() as f64 * self.dtype.bytes() as f64
    }
}
