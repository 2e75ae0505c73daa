//! Why a study can't be made.

use crate::data::DataError;
use crate::fleet::FleetError;
use crate::simulated::SimulationError;
use crate::simulated::systems::CostError;
use crate::simulated::workload::WorkloadError;
use crate::trainer::TrainError;

/// Why tasks can't be trained or run on a virtual clock.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StudyError {
    /// A task or setting that makes no sense.
    #[error(transparent)]
    Workload(#[from] WorkloadError),
    /// A job that doesn't fit even alone.
    #[error("task {task}: rank {rank} and batch {batch} need {needed} bytes on a device, but {device} has {memory}")]
    NeverFits {
        /// The task.
        task: String,
        /// The job's rank.
        rank: usize,
        /// Its batch.
        batch: usize,
        /// Bytes needed on the fullest device.
        needed: u64,
        /// The device.
        device: String,
        /// Bytes that it has.
        memory: u64,
    },
    /// A task whose model isn't shipped, or a device that lacks a parameter.
    #[error("task {task} can't be trained on this device")]
    Setup {
        /// The task.
        task: String,
        /// Why not.
        #[source]
        source: CostError,
    },
    /// A system's cost.
    #[error(transparent)]
    Cost(#[from] CostError),
    /// Rows that are no data.
    #[error(transparent)]
    Data(#[from] DataError),
    /// Recorded runs that can't be replayed.
    #[error("the simulated device can't be made")]
    Simulation(#[from] SimulationError),
    /// Jobs that the trainer refuses.
    #[error("the task can't be trained")]
    Train(#[from] TrainError),
    /// Tasks that the fleet refuses.
    #[error("the tasks can't be run")]
    Fleet(#[from] FleetError),
}
