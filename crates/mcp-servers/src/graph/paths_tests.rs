use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;
use crate::graph::model::{EdgeData, NodeData};

fn network(size: usize, pairs: &[(usize, usize)]) -> Network {
    let nodes = (0..size).map(|index| Node {
        id: format!("n{index}"),
        label: None,
        kind: None,
        data: NodeData::default(),
    });
    let edges = pairs.iter().map(|(source, target)| Edge {
        id: Some(format!("{source}-{target}")),
        source: format!("n{source}"),
        target: format!("n{target}"),
        label: "affects".to_owned(),
        data: EdgeData::default(),
    });
    Network::new(nodes.collect(), edges.collect())
}

#[test]
fn the_shortest_paths_come_first_and_the_length_is_bounded() {
    // 0 → 1 → 2 → 3, a shortcut 0 → 2, and a way around over 4.
    let network = network(5, &[(0, 1), (1, 2), (2, 3), (0, 2), (0, 4), (4, 3)]);
    let found = network.paths(0, 3, 3, false, 10);
    assert!(found.complete);
    assert_eq!(
        found.paths,
        [vec![0, 2, 3], vec![0, 4, 3], vec![0, 1, 2, 3]]
    );
    assert_eq!(
        network.paths(0, 3, 2, false, 10).paths,
        [vec![0, 2, 3], vec![0, 4, 3]]
    );
    assert_eq!(network.paths(0, 3, 1, false, 10).paths.len(), 0);
}

#[test]
fn a_limit_that_cuts_paths_off_is_told() {
    let network = network(4, &[(0, 1), (1, 3), (0, 2), (2, 3)]);
    assert_eq!(
        network.paths(0, 3, 3, false, 1),
        Paths {
            paths: vec![vec![0, 1, 3]],
            complete: false
        }
    );
    // As many as there are: nothing was cut off.
    assert!(network.paths(0, 3, 3, false, 2).complete);
}

#[test]
fn directed_paths_follow_the_edges_only() {
    let network = network(3, &[(0, 1), (2, 1), (0, 0)]);
    assert_eq!(network.paths(0, 2, 4, false, 10).paths, [vec![0, 1, 2]]);
    assert_eq!(network.paths(0, 2, 4, true, 10).paths.len(), 0);
    assert_eq!(network.neighbours(0, 4, false), [(1, 1), (2, 2)]);
    assert_eq!(network.neighbours(0, 4, true), [(1, 1)]);
    assert_eq!(network.neighbours(1, 4, true), []);
}

#[test]
fn the_edges_between_two_nodes_are_those_of_the_direction() {
    let network = network(2, &[(0, 1), (1, 0), (0, 1)]);
    let ids = |directed| -> Vec<&str> {
        let edges = network.between(0, 1, directed);
        edges
            .into_iter()
            .filter_map(|edge| edge.id.as_deref())
            .collect()
    };
    assert_eq!(ids(true), ["0-1", "0-1"]);
    assert_eq!(ids(false), ["0-1", "1-0", "0-1"]);
    assert!(network.between(1, 1, false).is_empty());
}

#[test]
fn a_search_in_a_dense_graph_ends() {
    let pairs: Vec<(usize, usize)> = (0..60).flat_map(|a| (0..a).map(move |b| (a, b))).collect();
    let found = network(60, &pairs).paths(0, 59, 6, false, usize::MAX);
    assert!(!found.complete);
    assert!(!found.paths.is_empty());
}

/// Every path, by trying everything.
fn all(
    pairs: &BTreeSet<(usize, usize)>,
    path: &[usize],
    to: usize,
    left: usize,
) -> Vec<Vec<usize>> {
    let here = path[path.len() - 1];
    if here == to {
        return vec![path.to_vec()];
    }
    if left == 0 {
        return Vec::new();
    }
    let next = pairs
        .iter()
        .filter(|(from, to)| *from == here && !path.contains(to));
    next.flat_map(|(_, next)| {
        let path = [path, &[*next]].concat();
        all(pairs, &path, to, left - 1)
    })
    .collect()
}

proptest! {
    #[test]
    fn exactly_the_paths_that_there_are_are_found(
        pairs in prop::collection::vec((0..7_usize, 0..7_usize), 0..20),
        longest in 1..6_usize,
        directed: bool,
    ) {
        let found = network(7, &pairs).paths(0, 6, longest, directed, usize::MAX);
        prop_assert!(found.complete);
        prop_assert!(found.paths.is_sorted_by_key(Vec::len));
        let mut ways: BTreeSet<(usize, usize)> = pairs.iter().copied().collect();
        if !directed {
            ways.extend(pairs.iter().map(|(a, b)| (*b, *a)));
        }
        let mut expected = all(&ways, &[0], 6, longest);
        let mut paths = found.paths;
        expected.sort();
        paths.sort();
        prop_assert_eq!(paths, expected);
    }
}
