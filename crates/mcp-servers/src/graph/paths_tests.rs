use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;
use crate::graph::model::{EdgeData, Node, NodeData};

fn graph(size: usize, pairs: &[(usize, usize)]) -> KnowledgeGraph {
    let mut graph = KnowledgeGraph::default();
    for index in 0..size {
        graph.add_node(Node {
            id: format!("n{index}"),
            label: None,
            kind: None,
            data: NodeData::default(),
        });
    }
    for (number, (source, target)) in pairs.iter().enumerate() {
        graph.add_edge(Edge {
            id: Some(format!("{number}: {source}-{target}")),
            source: format!("n{source}"),
            target: format!("n{target}"),
            label: "affects".to_owned(),
            data: EdgeData::default(),
        });
    }
    graph
}

fn network(graph: &KnowledgeGraph) -> AdjacencyIndex<'_> {
    AdjacencyIndex::new(graph, |_| true)
}

#[test]
fn the_shortest_paths_come_first_and_the_length_is_bounded() {
    // The graph has the path 0 → 1 → 2 → 3, the shortcut 0 → 2, and the other path 0 → 4 → 3.
    let graph = graph(5, &[(0, 1), (1, 2), (2, 3), (0, 2), (0, 4), (4, 3)]);
    let network = network(&graph);
    let found = network.find_paths(0, 3, 3, false, 10);
    assert!(found.complete);
    let expected = [vec![0, 2, 3], vec![0, 4, 3], vec![0, 1, 2, 3]];
    assert_eq!(found.paths, expected);
    let expected = [vec![0, 2, 3], vec![0, 4, 3]];
    assert_eq!(network.find_paths(0, 3, 2, false, 10).paths, expected);
    assert_eq!(network.find_paths(0, 3, 1, false, 10).paths.len(), 0);
}

#[test]
fn a_limit_that_omits_paths_makes_the_result_incomplete() {
    let graph = graph(4, &[(0, 1), (1, 3), (0, 2), (2, 3)]);
    let network = network(&graph);
    assert_eq!(
        network.find_paths(0, 3, 3, false, 1),
        PathSearchResult {
            paths: vec![vec![0, 1, 3]],
            complete: false
        }
    );
    // The limit equals the number of paths, so the result is complete.
    assert!(network.find_paths(0, 3, 3, false, 2).complete);
}

#[test]
fn directed_paths_follow_the_edges_only() {
    let graph = graph(3, &[(0, 1), (2, 1), (0, 0)]);
    let network = network(&graph);
    let expected = [vec![0, 1, 2]];
    assert_eq!(network.find_paths(0, 2, 4, false, 10).paths, expected);
    assert_eq!(network.find_paths(0, 2, 4, true, 10).paths.len(), 0);
    assert_eq!(network.find_neighbours(0, 4, false), [(1, 1), (2, 2)]);
    assert_eq!(network.find_neighbours(0, 4, true), [(1, 1)]);
    assert_eq!(network.find_neighbours(1, 4, true), []);
}

#[test]
fn the_edges_between_two_nodes_are_those_of_the_direction() {
    let graph = graph(2, &[(0, 1), (1, 0), (0, 1)]);
    let network = network(&graph);
    let ids = |directed| -> Vec<&str> {
        let edges = network.edges_between(0, 1, directed);
        edges
            .into_iter()
            .filter_map(|edge| edge.id.as_deref())
            .collect()
    };
    assert_eq!(ids(true), ["0: 0-1", "2: 0-1"]);
    assert_eq!(ids(false), ["0: 0-1", "1: 1-0", "2: 0-1"]);
    assert!(network.edges_between(1, 1, false).is_empty());
}

#[test]
fn a_search_in_a_dense_graph_ends() {
    let pairs: Vec<(usize, usize)> = (0..60).flat_map(|a| (0..a).map(move |b| (a, b))).collect();
    let graph = graph(60, &pairs);
    let found = network(&graph).find_paths(0, 59, 6, false, usize::MAX);
    assert!(!found.complete);
    assert!(!found.paths.is_empty());
}

/// Returns all paths by exhaustive search.
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
    fn all_paths_are_found(
        pairs in prop::collection::vec((0..7_usize, 0..7_usize), 0..20),
        longest in 1..6_usize,
        directed: bool,
    ) {
        let graph = graph(7, &pairs);
        let found = network(&graph).find_paths(0, 6, longest, directed, usize::MAX);
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
