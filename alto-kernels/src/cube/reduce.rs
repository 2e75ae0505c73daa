//! Sums and maxima over all units of a cube.

use cubecl::prelude::*;

/// The sum of every unit's value, known to all; always added in the same order. `units` is a power of two, and `scratch`
/// holds as many.
#[cube]
pub(super) fn sum(value: f32, scratch: &mut [f32], #[comptime] units: usize) -> f32 {
    let unit = UNIT_POS as usize;
    // Whoever read the last result may not be through.
    sync_cube();
    scratch[unit] = value;
    sync_cube();
    #[unroll]
    for level in 0..comptime!(units.ilog2()) {
        let half = comptime!(units >> (level + 1));
        if unit < half {
            scratch[unit] += scratch[unit + half];
        }
        sync_cube();
    }
    scratch[0]
}

/// The largest of every unit's values, known to all; `units` and `scratch` as for [`sum`].
#[cube]
pub(super) fn max<T: Numeric>(value: T, scratch: &mut [T], #[comptime] units: usize) -> T {
    let unit = UNIT_POS as usize;
    // Whoever read the last result may not be through.
    sync_cube();
    scratch[unit] = value;
    sync_cube();
    #[unroll]
    for level in 0..comptime!(units.ilog2()) {
        let half = comptime!(units >> (level + 1));
        if unit < half {
            let other = scratch[unit + half];
            if other > scratch[unit] {
                scratch[unit] = other;
            }
        }
        sync_cube();
    }
    scratch[0]
}
