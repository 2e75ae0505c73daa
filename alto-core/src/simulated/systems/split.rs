//! Which adapters a device gets.

use super::load::AdapterLoad;

/// Deals adapters out to so many devices: the one of most tokens first, each to the device of fewest tokens yet; ties
/// by index.
pub(super) fn dealt(loads: &[AdapterLoad], devices: usize) -> Vec<Vec<AdapterLoad>> {
    dealt_by(loads, devices, |load| load.tokens)
}

/// The same by something else.
pub(super) fn dealt_by(
    loads: &[AdapterLoad],
    devices: usize,
    size: impl Fn(&AdapterLoad) -> u64,
) -> Vec<Vec<AdapterLoad>> {
    let mut order: Vec<&AdapterLoad> = loads.iter().collect();
    order.sort_by_key(|load| std::cmp::Reverse(size(load)));
    let mut parts = vec![(0, vec![]); devices];
    for load in order {
        let fewest = parts.iter_mut().min_by_key(|(sum, _)| *sum);
        if let Some((sum, part)) = fewest {
            *sum += size(load);
            part.push(*load);
        }
    }
    parts.into_iter().map(|(_, part)| part).collect()
}
