//! Computes a maximum matching in a bipartite graph.

/// Pairs as many of the `left` items as possible, each with a different one of the `right` items.
/// `matches` gets the indexes of a left and a right item and returns whether they can be paired.
/// Returns the index of the right item for each left item, or `None` if it has none. Earlier left
/// items are preferred.
pub(crate) fn find_maximum_matching(
    left: usize,
    right: usize,
    matches: impl Fn(usize, usize) -> bool,
) -> Vec<Option<usize>> {
    let mut partners = vec![None; right];
    for item in 0..left {
        find_matching_partner(item, &matches, &mut partners, &mut vec![false; right]);
    }
    let mut paired = vec![None; left];
    for (position, item) in partners.into_iter().enumerate() {
        if let Some(item) = item {
            paired[item] = Some(position);
        }
    }
    paired
}

/// Finds a right item for the left item `item` and enters the pair in `partners`. If the right item
/// is taken, finds another right item for its current partner (augmenting path). Returns `false` if
/// there is no free right item.
fn find_matching_partner(
    item: usize,
    matches: &impl Fn(usize, usize) -> bool,
    partners: &mut [Option<usize>],
    visited: &mut [bool],
) -> bool {
    for position in 0..partners.len() {
        if visited[position] || !matches(item, position) {
            continue;
        }
        visited[position] = true;
        let is_free = partners[position]
            .is_none_or(|other| find_matching_partner(other, matches, partners, visited));
        if is_free {
            partners[position] = Some(item);
            return true;
        }
    }
    false
}
