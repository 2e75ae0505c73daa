//! Seconds that a device takes for a call.

use std::time::Instant;

use burn::tensor::Device;

use crate::sizes::Sizes;

/// Times calls on a device: from the first to the end of what the last one queued, over their number.
#[derive(Debug)]
pub(crate) struct Clock {
    device: Device,
    samples: usize,
    sample_seconds: f64,
}

impl Clock {
    /// Samples as often and as long as these sizes say.
    pub(crate) fn new(device: &Device, sizes: &Sizes) -> Self {
        Self { device: device.clone(), samples: sizes.samples, sample_seconds: sizes.sample_seconds }
    }

    /// The median over the samples of the seconds per call. The first calls compile and tune, and don't count.
    ///
    /// # Panics
    /// If the device fails.
    pub(crate) fn time(&self, mut call: impl FnMut()) -> f64 {
        self.sample(1, &mut call);
        self.sample(1, &mut call);
        let once = self.sample(1, &mut call).max(1e-6);
        let calls = (self.sample_seconds / once).ceil().clamp(1.0, 1_000.0) as usize;
        let mut samples: Vec<f64> = (0..self.samples).map(|_| self.sample(calls, &mut call)).collect();
        samples.sort_by(f64::total_cmp);
        samples[samples.len() / 2]
    }

    /// Waits for all that was queued.
    ///
    /// # Panics
    /// If some of it failed.
    pub(crate) fn sync(&self) {
        self.device.sync().unwrap_or_else(|error| panic!("the device failed: {error:?}"));
    }

    fn sample(&self, calls: usize, call: &mut impl FnMut()) -> f64 {
        self.sync();
        let start = Instant::now();
        (0..calls).for_each(|_| call());
        self.sync();
        start.elapsed().as_secs_f64() / calls as f64
    }
}
