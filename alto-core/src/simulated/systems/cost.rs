//! What a step comes to.

/// The time of an optimizer step or of a part of it.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct StepCost {
    /// Seconds in which the busiest device computes, begins kernels, waits for their launches or, in a pipeline, for
    /// its turn.
    pub compute: f64,
    /// Seconds of communication that no computation hides.
    pub communication: f64,
    /// Kernels that the busiest device runs.
    pub launches: f64,
    /// Devices that have something to compute, at most.
    pub working: usize,
}

impl StepCost {
    /// How long it takes, in seconds.
    pub fn seconds(&self) -> f64 {
        self.compute + self.communication
    }

    /// One after the other, on the same devices.
    pub(super) fn then(self, next: StepCost) -> StepCost {
        StepCost {
            compute: self.compute + next.compute,
            communication: self.communication + next.communication,
            launches: self.launches + next.launches,
            working: self.working.max(next.working),
        }
    }

    /// All at once on as many devices: what the slowest takes.
    pub(super) fn slowest(devices: impl IntoIterator<Item = StepCost>) -> StepCost {
        let mut slowest = StepCost::default();
        let mut working = 0;
        for device in devices {
            working += device.working;
            if device.seconds() > slowest.seconds() {
                slowest = device;
            }
        }
        StepCost { working, ..slowest }
    }

    /// The same `times` times.
    pub(super) fn times(self, times: f64) -> StepCost {
        StepCost {
            compute: times * self.compute,
            communication: times * self.communication,
            launches: times * self.launches,
            working: self.working,
        }
    }
}
