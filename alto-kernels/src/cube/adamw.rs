//! The grouped AdamW on CubeCL: three launches, whatever the groups.
//!
//! 1. For each chunk of a span its largest entry, and the sum of squares of its entries over that.
//! 2. For each group the norm `top sqrt(sum)`, the first span that isn't finite, and what to scale its gradient by.
//! 3. For each chunk the update, in place.
//!
//! Parameters, moments, gradient: `[entries]`, f32. `chunks`: `[chunks, 4]`: group, span, first entry, entries.
//! `groups`: `[groups, 2]`: first chunk, chunks. Squares are taken relative to the largest entry, so that they neither
//! overflow nor vanish. A chunk lies within one span and counts from its start, and its entries are added in one order: so
//! a group is the same, bit for bit, whatever stands beside it.

use burn::backend::tensor::FloatTensor;
use burn::tensor::{DType, Shape};
use burn_cubecl::CubeBackend;
use burn_cubecl::kernel::into_contiguous;
use burn_cubecl::tensor::CubeTensor;
use cubecl::prelude::*;

use super::hardware::{cubes, units};
use super::reduce::{max, sum};
use super::table::Table;
use super::tensor::empty;
use crate::adamw::{AdamWExtension, AdamWGroup};

/// Entries that a cube takes at a time.
const CHUNK: usize = 8192;
/// Entries that a unit adds up before it adds them to the others.
const STRETCH: usize = 64;
/// Words of a chunk in its table.
const CHUNK_WORDS: usize = 4;
/// Words of a group in its table.
const GROUP_WORDS: usize = 2;
/// Numbers of a group in [`factors`].
const FACTORS: usize = 8;
/// Where a number's sign is taken off.
const MAGNITUDE: u32 = 0x7fff_ffff;
/// The first magnitude that isn't finite. Magnitudes are ordered as their bits are, and infinity and NaN come last.
const NOT_FINITE: u32 = 0x7f80_0000;
/// The smallest normal magnitude. Below it all counts as 0, as devices may have it.
const NORMAL: u32 = 0x0080_0000;
/// A span's index where there is none.
const NO_SPAN: u32 = u32::MAX;

/// `tops`: `[chunks]`, bits of each chunk's largest magnitude; `squares`: `[chunks]`.
#[cube(launch_unchecked, create_dummy_kernel)]
pub(super) fn measure(
    gradient: &[f32],
    chunks: &[u32],
    tops: &mut [u32],
    squares: &mut [f32],
    count: u32,
    #[comptime] units: usize,
) {
    let unit = UNIT_POS as usize;
    let mut scratch = Shared::<[f32]>::new_slice(units);
    let mut marks = Shared::<[u32]>::new_slice(units);
    for chunk in range_stepped(CUBE_POS_X as usize, count as usize, CUBE_COUNT_X as usize) {
        let first = chunks[chunk * CHUNK_WORDS + 2] as usize;
        let end = first + chunks[chunk * CHUNK_WORDS + 3] as usize;
        let mut top = 0u32;
        for i in range_stepped(first + unit, end, units) {
            top = top.max(u32::reinterpret(gradient[i]) & MAGNITUDE);
        }
        let top = max(top, &mut marks, units);
        let mut squares_here = 0.0f32;
        if is_usable(top) {
            // A stretch at a time: where there are few units, one long sum would lose digits.
            for start in range_stepped(first + unit, end, units * STRETCH) {
                let mut stretch = f32::new(0.0f32);
                for i in range_stepped(start, end.min(start + units * STRETCH), units) {
                    let relative = gradient[i] / f32::reinterpret(top);
                    stretch += relative * relative;
                }
                squares_here += stretch;
            }
        }
        let squares_here = sum(squares_here, &mut scratch, units);
        if unit == 0 {
            tops[chunk] = top;
            squares[chunk] = squares_here;
        }
    }
}

/// Whether entries can be divided by this magnitude.
#[cube]
fn is_usable(magnitude: u32) -> bool {
    let finite = magnitude < NOT_FINITE;
    finite && magnitude >= NORMAL
}

/// `factors`: `[groups, 8]`; `report`: `[groups, 2]`, norm and first span that isn't finite, or -1; `scales`: `[groups]`,
/// what a gradient is multiplied with, or -1 where the group is left alone.
#[cube(launch_unchecked, create_dummy_kernel)]
pub(super) fn clip(
    tops: &[u32],
    squares: &[f32],
    chunks: &[u32],
    groups: &[u32],
    factors: &[f32],
    report: &mut [f32],
    scales: &mut [f32],
    count: u32,
    #[comptime] units: usize,
) {
    let unit = UNIT_POS as usize;
    let mut scratch = Shared::<[f32]>::new_slice(units);
    let mut marks = Shared::<[u32]>::new_slice(units);
    for group in range_stepped(CUBE_POS_X as usize, count as usize, CUBE_COUNT_X as usize) {
        let first = groups[group * GROUP_WORDS] as usize;
        let end = first + groups[group * GROUP_WORDS + 1] as usize;
        // The span is counted from the end, so that the first is the largest.
        let mut top = 0u32;
        let mut bad = 0u32;
        for chunk in range_stepped(first + unit, end, units) {
            top = top.max(tops[chunk]);
            if tops[chunk] >= NOT_FINITE {
                bad = bad.max(NO_SPAN - chunks[chunk * CHUNK_WORDS + 1]);
            }
        }
        let top = max(top, &mut marks, units);
        let bad_span = NO_SPAN - max(bad, &mut marks, units);
        let largest = f32::reinterpret(top);
        let mut squares_here = 0.0f32;
        if is_usable(top) {
            for chunk in range_stepped(first + unit, end, units) {
                let relative = f32::reinterpret(tops[chunk]) / largest;
                squares_here += squares[chunk] * relative * relative;
            }
        }
        let root = sum(squares_here, &mut scratch, units).sqrt();
        if unit == 0 {
            // Infinite or NaN if an entry is.
            let mut norm = largest;
            let mut position = f32::new(-1.0f32);
            let mut scale = f32::new(-1.0f32);
            if bad_span == NO_SPAN {
                let clip = factors[group * FACTORS];
                norm = largest * root;
                scale = 1.0f32;
                if clip >= 0.0f32 {
                    // The entries are finite, but their norm may not be.
                    let overflows = u32::reinterpret(norm) >= NOT_FINITE;
                    let wanted = if overflows { clip / largest / root } else { clip / (norm + 1e-6f32) };
                    scale = wanted.min(1.0f32);
                }
            } else {
                position = f32::cast_from(bad_span);
            }
            report[group * 2] = norm;
            report[group * 2 + 1] = position;
            scales[group] = scale;
        }
    }
}

#[cube(launch_unchecked, create_dummy_kernel)]
pub(super) fn update(
    parameters: &mut [f32],
    first_moments: &mut [f32],
    second_moments: &mut [f32],
    gradient: &[f32],
    chunks: &[u32],
    factors: &[f32],
    scales: &[f32],
    count: u32,
    #[comptime] units: usize,
) {
    for chunk in range_stepped(CUBE_POS_X as usize, count as usize, CUBE_COUNT_X as usize) {
        let group = chunks[chunk * CHUNK_WORDS] as usize;
        let first = chunks[chunk * CHUNK_WORDS + 2] as usize;
        let end = first + chunks[chunk * CHUNK_WORDS + 3] as usize;
        let (scale, at) = (scales[group], group * FACTORS);
        let (keep, fresh1) = (factors[at + 1], factors[at + 2]);
        let (beta2, fresh2) = (factors[at + 3], factors[at + 4]);
        let (step, second_root, epsilon) = (factors[at + 5], factors[at + 6], factors[at + 7]);
        if scale >= 0.0f32 {
            for i in range_stepped(first + UNIT_POS as usize, end, units) {
                let g = gradient[i] * scale;
                let m = first_moments[i] + (g - first_moments[i]) * fresh1;
                let v = second_moments[i] * beta2 + g * g * fresh2;
                first_moments[i] = m;
                second_moments[i] = v;
                parameters[i] = parameters[i] * keep - step * m / (v.sqrt() / second_root + epsilon);
            }
        }
    }
}

/// What [`clip`] and [`update`] need of a group, taken in f64, in f32 as PyTorch computes it.
fn factors(group: &AdamWGroup) -> [f32; FACTORS] {
    let (beta1, beta2) = group.betas;
    let power = |beta: f64| beta.powf(group.step as f64);
    [
        group.clip.map_or(-1.0, |clip| clip as f32),
        (1.0 - group.learning_rate * group.weight_decay) as f32,
        (1.0 - beta1) as f32,
        beta2 as f32,
        (1.0 - beta2) as f32,
        (group.learning_rate / (1.0 - power(beta1))) as f32,
        (1.0 - power(beta2)).sqrt() as f32,
        group.epsilon as f32,
    ]
}

/// The tables of chunks and groups.
fn tables(groups: &[AdamWGroup]) -> (Vec<u32>, Vec<u32>) {
    let (mut chunks, mut of_groups) = (Vec::new(), Vec::new());
    for (index, group) in groups.iter().enumerate() {
        let before = chunks.len() / CHUNK_WORDS;
        for (span, entries) in group.spans.iter().enumerate() {
            for first in entries.clone().step_by(CHUNK) {
                let length = CHUNK.min(entries.end - first);
                chunks.extend([index, span, first, length].map(|word| word as u32));
            }
        }
        let own = chunks.len() / CHUNK_WORDS - before;
        of_groups.extend([before as u32, own as u32]);
    }
    (chunks, of_groups)
}

/// The tensor itself if nothing else holds its memory, else a copy.
fn owned(tensor: CubeTensor) -> CubeTensor {
    let tensor = into_contiguous(tensor);
    if tensor.can_mut() { tensor } else { tensor.copy() }
}

impl AdamWExtension for CubeBackend {
    fn grouped_adamw(
        parameters: FloatTensor<Self>,
        first: FloatTensor<Self>,
        second: FloatTensor<Self>,
        gradient: FloatTensor<Self>,
        groups: Vec<AdamWGroup>,
    ) -> (FloatTensor<Self>, FloatTensor<Self>, FloatTensor<Self>, FloatTensor<Self>) {
        for (what, tensor) in [
            ("parameters", &parameters),
            ("first moments", &first),
            ("second moments", &second),
            ("gradient", &gradient),
        ] {
            assert_eq!(tensor.dtype, DType::F32, "the optimizer computes in f32, got {what} of {:?}", tensor.dtype);
        }
        let gradient = into_contiguous(gradient);
        let report = empty(&gradient, Shape::new([groups.len(), 2]), DType::F32);
        if groups.is_empty() {
            return (parameters, first, second, report);
        }
        let client = gradient.client.clone();
        let (chunks, of_groups) = tables(&groups);
        let (chunks, of_groups) =
            (Table::new(&gradient, &chunks, CHUNK_WORDS), Table::new(&gradient, &of_groups, GROUP_WORDS));
        // As bits, since tables hold words.
        let factors: Vec<u32> = groups.iter().flat_map(factors).map(f32::to_bits).collect();
        let factors = Table::new(&gradient, &factors, FACTORS);
        let count = chunks.entries();
        let units = units(&client, CHUNK);
        let tops = empty(&gradient, Shape::new([count]), DType::U32);
        let squares = empty(&gradient, Shape::new([count]), DType::F32);
        if count > 0 {
            // SAFETY: a chunk lies within the entries, as was checked of its span; tops and squares have a place for each.
            unsafe {
                measure::launch_unchecked(
                    &client,
                    cubes(&client, count),
                    CubeDim::new_1d(units as u32),
                    gradient.clone().into_buffer_arg(),
                    chunks.arg(),
                    tops.clone().into_buffer_arg(),
                    squares.clone().into_buffer_arg(),
                    count as u32,
                    units,
                );
            }
        }
        let scales = empty(&gradient, Shape::new([groups.len()]), DType::F32);
        // SAFETY: a group's chunks lie within their table; factors, report and scales have places for every group.
        unsafe {
            clip::launch_unchecked(
                &client,
                cubes(&client, groups.len()),
                CubeDim::new_1d(units as u32),
                tops.into_buffer_arg(),
                squares.into_buffer_arg(),
                chunks.arg(),
                of_groups.arg(),
                factors.arg(),
                report.clone().into_buffer_arg(),
                scales.clone().into_buffer_arg(),
                groups.len() as u32,
                units,
            );
        }
        if count == 0 {
            return (parameters, first, second, report);
        }
        let [parameters, first, second] = [parameters, first, second].map(owned);
        // SAFETY: as measure; the three are written by nothing else, and chunks share no entries.
        unsafe {
            update::launch_unchecked(
                &client,
                cubes(&client, count),
                CubeDim::new_1d(units as u32),
                parameters.clone().into_buffer_arg(),
                first.clone().into_buffer_arg(),
                second.clone().into_buffer_arg(),
                gradient.into_buffer_arg(),
                chunks.arg(),
                factors.arg(),
                scales.into_buffer_arg(),
                count as u32,
                units,
            );
        }
        (parameters, first, second, report)
    }
}

#[cfg(all(test, feature = "cpu"))]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::thread::{self, ThreadId};

    use burn::backend::ops::FloatTensorOps;
    use burn::tensor::TensorData;
    use burn_cubecl::CubeDevice;
    use cubecl::logging::{LaunchObservation, LaunchObserver};

    use super::*;

    /// Counts the launches of one thread.
    struct Launches(ThreadId, AtomicUsize);

    impl LaunchObserver for Launches {
        fn launched(&self, _: &'static str) {
            if thread::current().id() == self.0 {
                self.1.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    #[test]
    fn a_step_is_three_launches_whatever_the_groups_and_more_only_to_spare_what_is_used_elsewhere() {
        let device = CubeDevice::cpu().expect("built in");
        let zeros = || CubeBackend::float_from_data(TensorData::new(vec![0.0f32; 640], [640]), &device);
        let launches = |groups: usize, keep: usize| {
            let group = |i: usize| AdamWGroup {
                spans: vec![i * 10..i * 10 + 4, i * 10 + 4..i * 10 + 10],
                learning_rate: 0.1,
                weight_decay: 0.0,
                betas: (0.9, 0.999),
                epsilon: 1e-8,
                clip: Some(1.0),
                step: 1,
            };
            let (state, gradient) = ([zeros(), zeros(), zeros()], zeros());
            let kept = state[..keep].to_vec();
            let [parameters, first, second] = state;
            let counter = Arc::new(Launches(thread::current().id(), AtomicUsize::new(0)));
            let observation = LaunchObservation::new(counter.clone());
            CubeBackend::grouped_adamw(parameters, first, second, gradient, (0..groups).map(group).collect());
            drop((observation, kept));
            counter.1.load(Ordering::Relaxed)
        };
        assert_eq!([launches(2, 0), launches(64, 0)], [3, 3]);
        assert_eq!(launches(2, 2), 5);
        assert_eq!(launches(0, 0), 0);
    }
}
