//! Search for paths and neighbours in a graph in memory.

use std::collections::VecDeque;

use indexmap::IndexMap;

use super::{knowledge_graph::KnowledgeGraph, model::Edge};

/// Maximum number of steps in a path search. Each step extends a path by one node. A search that
/// reaches this limit returns only the paths that it has found so far.
const MAX_STEPS: usize = 200_000;

/// An index of the links between the nodes of a [`KnowledgeGraph`]. A node is identified by its
/// position in `KnowledgeGraph::nodes`.
pub(super) struct AdjacencyIndex<'a> {
    /// Neighbours of each node, by the position of the node. The value for a neighbour is the list
    /// of edges between the two nodes. The neighbours are in the order of their first edges in the
    /// graph.
    links: Vec<IndexMap<usize, Vec<(Direction, &'a Edge)>>>,
}

/// The direction of an edge, seen from one of its two nodes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    /// The edge starts at the node.
    Out,
    /// The edge ends at the node.
    Back,
}

/// The result of a path search between two nodes.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct PathSearchResult {
    /// The paths as node indexes from start to end, with the shortest paths first.
    pub(super) paths: Vec<Vec<usize>>,
    /// Whether `paths` contains all paths within the maximum length.
    pub(super) complete: bool,
}

/// The state of a depth-first path search.
struct PathSearch<'a> {
    network: &'a AdjacencyIndex<'a>,
    to: usize,
    directed: bool,
    /// Distance of each node to the end node in edges. `None` beyond the maximum path length.
    distances: Vec<Option<usize>>,
    limit: usize,
    steps: usize,
    path: Vec<usize>,
    found: Vec<Vec<usize>>,
}

impl<'a> AdjacencyIndex<'a> {
    /// Creates an index of those edges of `graph` for which `included` returns `true`.
    pub(super) fn new(graph: &'a KnowledgeGraph, included: impl Fn(&Edge) -> bool) -> Self {
        let mut links = vec![IndexMap::new(); graph.nodes.len()];
        for edge in graph.edges.values().filter(|edge| included(edge)) {
            let ends = [&edge.source, &edge.target].map(|id| graph.nodes.get_index_of(id));
            // An edge from a node to itself is not part of any path.
            if let [Some(source), Some(target)] = ends
                && source != target
            {
                let mut add = |here: usize, there, direction| {
                    let edges: &mut Vec<_> = links[here].entry(there).or_default();
                    edges.push((direction, edge));
                };
                add(source, target, Direction::Out);
                add(target, source, Direction::Back);
            }
        }
        Self { links }
    }

    /// Returns the edges between the nodes `here` and `there`. With `directed`, returns only edges
    /// from `here` to `there`.
    pub(super) fn edges_between(&self, here: usize, there: usize, directed: bool) -> Vec<&'a Edge> {
        let edges = self.links[here].get(&there).into_iter().flatten();
        edges
            .filter(|(direction, _)| !directed || *direction == Direction::Out)
            .map(|(_, edge)| *edge)
            .collect()
    }

    /// Returns the neighbours of the node `here`. If `wanted` is `Out`, returns only neighbours
    /// with an edge from `here`. If `wanted` is `Back`, returns only neighbours with an edge to
    /// `here`.
    fn next_nodes(&self, here: usize, wanted: Option<Direction>) -> impl Iterator<Item = usize> {
        let links = self.links[here].iter().filter(move |(_, edges)| {
            wanted.is_none_or(|wanted| edges.iter().any(|(direction, _)| *direction == wanted))
        });
        links.map(|(there, _)| *there)
    }

    /// Returns at most `limit` paths of at most `max_length` edges that contain no node twice. With
    /// `directed`, paths follow the direction of the edges.
    pub(super) fn find_paths(
        &self,
        from: usize,
        to: usize,
        max_length: usize,
        directed: bool,
        limit: usize,
    ) -> PathSearchResult {
        let mut search = PathSearch {
            network: self,
            to,
            directed,
            distances: self.compute_distances(to, max_length, directed.then_some(Direction::Back)),
            limit,
            steps: 0,
            path: vec![from],
            found: Vec::new(),
        };
        let mut complete = true;
        if let Some(shortest) = search.distances[from].filter(|_| from != to) {
            for length in shortest..=max_length {
                complete = search.collect_paths(from, length);
                if !complete {
                    break;
                }
            }
        }
        PathSearchResult {
            paths: search.found,
            complete,
        }
    }

    /// Returns the other nodes that are at most `max_distance` edges away from the node `from`,
    /// each with its distance in edges, the nearest first. With `directed`, follows edges only in
    /// their direction.
    pub(super) fn find_neighbours(
        &self,
        from: usize,
        max_distance: usize,
        directed: bool,
    ) -> Vec<(usize, usize)> {
        let distances =
            self.compute_distances(from, max_distance, directed.then_some(Direction::Out));
        let mut near: Vec<(usize, usize)> = distances
            .into_iter()
            .enumerate()
            .filter_map(|(node, distance)| Some((node, distance?)))
            .filter(|(node, _)| *node != from)
            .collect();
        near.sort_by_key(|(node, distance)| (*distance, *node));
        near
    }

    fn compute_distances(
        &self,
        from: usize,
        max_distance: usize,
        direction: Option<Direction>,
    ) -> Vec<Option<usize>> {
        let mut distances = vec![None; self.links.len()];
        distances[from] = Some(0);
        let mut queue = VecDeque::from([(from, 0)]);
        while let Some((here, distance)) = queue.pop_front() {
            if distance == max_distance {
                continue;
            }
            for next in self.next_nodes(here, direction) {
                if distances[next].is_none() {
                    distances[next] = Some(distance + 1);
                    queue.push_back((next, distance + 1));
                }
            }
        }
        distances
    }
}

impl PathSearch<'_> {
    /// Extends `path`, which ends at the node `here`, by `length` edges in every possible way. Adds
    /// each path to the end node to `found`. Returns `false` if a limit ended the search.
    fn collect_paths(&mut self, here: usize, length: usize) -> bool {
        if length == 0 {
            if here == self.to {
                if self.found.len() == self.limit {
                    return false;
                }
                self.found.push(self.path.clone());
            }
            return true;
        }
        let network = self.network;
        for next in network.next_nodes(here, self.directed.then_some(Direction::Out)) {
            let near = self.distances[next].is_some_and(|distance| distance < length);
            // A path must not contain its end node before its last step.
            let early = next == self.to && length > 1;
            if !near || early || self.path.contains(&next) {
                continue;
            }
            self.steps += 1;
            if self.steps > MAX_STEPS {
                return false;
            }
            self.path.push(next);
            let continues = self.collect_paths(next, length - 1);
            self.path.pop();
            if !continues {
                return false;
            }
        }
        true
    }
}

#[cfg(test)]
#[path = "paths_tests.rs"]
mod tests;
