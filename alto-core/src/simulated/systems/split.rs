//! Which adapters a device gets.

use super::load::AdapterLoad;

/// Deals adapters out to so many devices: the one of most tokens first, each to the device of fewest tokens yet; ties
/// by index.
pub(super) fn dealt(loads: &[AdapterLoad], devices: usize) -> Vec<Vec<AdapterLoad>> {
    let mut order: Vec<&AdapterLoad> = loads.iter().collect();
    order.sort_by_key(|load| std::cmp::Reverse(load.tokens));
    let mut parts = vec![(0, vec![]); devices];
    for load in order {
        let fewest = parts.iter_mut().min_by_key(|(tokens, _)| *tokens);
        if let Some((tokens, part)) = fewest {
            *tokens += load.tokens;
            part.push(*load);
        }
    }
    parts.into_iter().map(|(_, part)| part).collect()
}
