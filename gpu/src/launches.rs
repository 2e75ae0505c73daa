//! The kernels that a call launches, each with the time it took on the device.

use std::collections::BTreeMap;

/// The kernel's place in its crate, such as `lora::down`, and its seconds on the device if they were taken down.
pub(crate) type Launch = (String, Option<f64>);

/// Launches and seconds of each kernel.
pub(crate) fn by_kernel(launches: &[Launch]) -> BTreeMap<&str, (usize, f64)> {
    let mut sums = BTreeMap::new();
    for (kernel, seconds) in launches {
        let (count, sum) = sums.entry(kernel.as_str()).or_insert((0, 0.0));
        *count += 1;
        *sum += seconds.unwrap_or(f64::NAN);
    }
    sums
}

#[cfg(feature = "cubecl")]
mod observed {
    use std::sync::{Arc, Mutex, PoisonError};

    use cubecl_runtime::logging::{
        Duration, LaunchObservation, LaunchObserver, ProfileDuration, TimingMethod, TimingRequest,
    };

    use super::{Launch, place_in_crate};

    /// Measurements in the order of their launches, to be read when all is done: reading earlier would keep kernels apart.
    #[derive(Default)]
    struct Kept(Mutex<Vec<(&'static str, Option<Measured>)>>);

    enum Measured {
        Unread(ProfileDuration),
        Read(Duration),
    }

    impl Kept {
        fn set(&self, kernel: &'static str, measured: Measured) {
            let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            // It follows its launch.
            if let Some((_, slot)) = kept.iter_mut().rev().find(|(name, slot)| *name == kernel && slot.is_none()) {
                *slot = Some(measured);
            }
        }
    }

    impl LaunchObserver for Kept {
        fn launched(&self, kernel: &'static str) {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).push((kernel, None));
        }

        fn timing(&self) -> TimingRequest {
            TimingRequest::Deferred
        }

        fn profiled(&self, kernel: &'static str, profile: ProfileDuration) {
            self.set(kernel, Measured::Unread(profile));
        }

        fn timed(&self, kernel: &'static str, duration: Duration, _: TimingMethod) {
            self.set(kernel, Measured::Read(duration));
        }
    }

    /// What a call launches, in order.
    pub(crate) fn of(call: impl FnOnce()) -> Vec<Launch> {
        let kept = Arc::new(Kept::default());
        let watching = LaunchObservation::new(kept.clone());
        call();
        drop(watching);
        let kept = std::mem::take(&mut *kept.0.lock().unwrap_or_else(PoisonError::into_inner));
        let launch = |(kernel, measured): (&'static str, Option<Measured>)| {
            let duration = measured.and_then(|measured| match measured {
                Measured::Unread(profile) => cubecl::future::block_on(profile.resolve()).map(|ticks| ticks.duration()),
                Measured::Read(duration) => Some(duration),
            });
            (place_in_crate(kernel), duration.map(|duration| duration.as_secs_f64()))
        };
        kept.into_iter().map(launch).collect()
    }
}

#[cfg(feature = "cubecl")]
pub(crate) use observed::of;

/// Nothing: devices outside of CubeCL launch no kernels.
#[cfg(not(feature = "cubecl"))]
pub(crate) fn of(call: impl FnOnce()) -> Vec<Launch> {
    call();
    Vec::new()
}

/// Of a kernel's type, such as `alto_kernels::cube::lora::down::down::Down<R>`: what tells it from others.
#[cfg(any(feature = "cubecl", test))]
fn place_in_crate(type_name: &str) -> String {
    let path = type_name.split('<').next().unwrap_or(type_name);
    let mut parts: Vec<&str> = path.split("::").collect();
    // The type is named for the function, which is the module around it.
    if parts.len() > 1 {
        parts.pop();
    }
    parts.dedup();
    match parts.iter().position(|&part| part == "cube") {
        Some(cube) if parts[0] == "alto_kernels" => parts[cube + 1..].join("::"),
        _ => parts.join("::"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_are_told_apart_by_their_functions() {
        let ours = "alto_kernels::cube::lora::down::down::Down<cubecl_core::Runtime>";
        assert_eq!(place_in_crate(ours), "lora::down");
        assert_eq!(place_in_crate("alto_kernels::cube::norm::forward::Forward"), "norm::forward");
        assert_eq!(place_in_crate("cubek_matmul::routine::Matmul<A, B<C>>"), "cubek_matmul::routine");
    }

    #[test]
    fn launches_of_one_kernel_are_summed() {
        let launches = [("a", Some(1.0)), ("b", None), ("a", Some(2.0))];
        let launches = launches.map(|(kernel, seconds)| (kernel.to_owned(), seconds));
        let sums = by_kernel(&launches);
        assert_eq!(sums["a"], (2, 3.0));
        assert!(sums["b"].1.is_nan());
    }
}
