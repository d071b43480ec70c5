//! Computes a maximum matching in a bipartite graph.

/// Pairs as many left items as possible, each with a different right item. Returns the right item
/// of each left item. Earlier left items are preferred.
pub(crate) fn find_maximum_matching(
    left: usize,
    right: usize,
    matches: impl Fn(usize, usize) -> bool,
) -> Vec<Option<usize>> {
    let mut partners = vec![None; right];
    for item in 0..left {
        find_partner(item, &matches, &mut partners, &mut vec![false; right]);
    }
    let mut paired = vec![None; left];
    for (position, item) in partners.into_iter().enumerate() {
        if let Some(item) = item {
            paired[item] = Some(position);
        }
    }
    paired
}

/// Finds a partner for an item. If necessary, moves the current item of this partner to another one
/// (augmenting path).
fn find_partner(
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
        let is_free =
            partners[position].is_none_or(|other| find_partner(other, matches, partners, visited));
        if is_free {
            partners[position] = Some(item);
            return true;
        }
    }
    false
}
