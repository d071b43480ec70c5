//! Paths and neighbours in a graph that is in memory. No I/O.

use std::collections::{HashMap, VecDeque};

use super::model::{Edge, Node};

/// How many nodes a search for paths may step on before it gives up being complete.
const PATIENCE: usize = 200_000;

/// A graph that can be walked.
pub(super) struct Network {
    pub(super) nodes: Vec<Node>,
    pub(super) edges: Vec<Edge>,
    by_id: HashMap<String, usize>,
    /// For each node its neighbours in the order of their first edge, each once, with the edges
    /// there and back.
    links: Vec<Vec<Link>>,
}

struct Link {
    to: usize,
    /// Edges from here to there.
    out: Vec<usize>,
    /// Edges from there to here.
    back: Vec<usize>,
}

/// What a search found.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Paths {
    /// Nodes from one end to the other, the shortest paths first.
    pub(super) paths: Vec<Vec<usize>>,
    /// Whether these are all paths of at most the length that was asked for.
    pub(super) complete: bool,
}

struct Search<'a> {
    network: &'a Network,
    to: usize,
    directed: bool,
    /// How far each node is from the end; `None` if farther than any path may be long.
    left: Vec<Option<usize>>,
    limit: usize,
    steps: usize,
    path: Vec<usize>,
    found: Vec<Vec<usize>>,
}

impl Network {
    /// Edges whose ends are not among the nodes are left out.
    pub(super) fn new(nodes: Vec<Node>, edges: Vec<Edge>) -> Self {
        let by_id: HashMap<String, usize> = nodes
            .iter()
            .enumerate()
            .map(|(index, node)| (node.id.clone(), index))
            .collect();
        let mut links: Vec<Vec<Link>> = Vec::new();
        links.resize_with(nodes.len(), Vec::new);
        let mut places: HashMap<(usize, usize), usize> = HashMap::new();
        for (index, edge) in edges.iter().enumerate() {
            let ends = by_id.get(&edge.source).zip(by_id.get(&edge.target));
            // An edge from a node to itself leads nowhere.
            let Some((&source, &target)) = ends.filter(|(source, target)| source != target) else {
                continue;
            };
            for (here, there, out) in [(source, target, true), (target, source, false)] {
                let place = *places.entry((here, there)).or_insert_with(|| {
                    links[here].push(Link {
                        to: there,
                        out: Vec::new(),
                        back: Vec::new(),
                    });
                    links[here].len() - 1
                });
                let link = &mut links[here][place];
                if out { &mut link.out } else { &mut link.back }.push(index);
            }
        }
        Self {
            nodes,
            edges,
            by_id,
            links,
        }
    }

    pub(super) fn index(&self, id: &str) -> Option<usize> {
        self.by_id.get(id).copied()
    }

    /// The edges between two neighbours; with `directed` those from the first to the second.
    pub(super) fn between(&self, here: usize, there: usize, directed: bool) -> Vec<&Edge> {
        let link = self.links[here].iter().find(|link| link.to == there);
        let Some(link) = link else { return Vec::new() };
        let mut edges: Vec<usize> = link.out.clone();
        if !directed {
            edges.extend(&link.back);
        }
        edges.sort_unstable();
        edges.into_iter().map(|edge| &self.edges[edge]).collect()
    }

    /// At most `limit` paths without a node twice, of at most `longest` edges; with `directed` only
    /// along the direction of the edges.
    pub(super) fn paths(
        &self,
        from: usize,
        to: usize,
        longest: usize,
        directed: bool,
        limit: usize,
    ) -> Paths {
        let mut search = Search {
            network: self,
            to,
            directed,
            left: self.distances(to, longest, directed.then_some(Way::Back)),
            limit,
            steps: 0,
            path: vec![from],
            found: Vec::new(),
        };
        let mut complete = true;
        if let Some(shortest) = search.left[from].filter(|_| from != to) {
            for length in shortest..=longest {
                complete = search.walk(from, length);
                if !complete {
                    break;
                }
            }
        }
        Paths {
            paths: search.found,
            complete,
        }
    }

    /// The nodes within `farthest` edges, each with its distance, the nearest first.
    pub(super) fn neighbours(
        &self,
        from: usize,
        farthest: usize,
        directed: bool,
    ) -> Vec<(usize, usize)> {
        let distances = self.distances(from, farthest, directed.then_some(Way::Out));
        let mut near: Vec<(usize, usize)> = distances
            .into_iter()
            .enumerate()
            .filter_map(|(node, distance)| Some((node, distance?)))
            .filter(|(node, _)| *node != from)
            .collect();
        near.sort_by_key(|(node, distance)| (*distance, *node));
        near
    }

    fn distances(&self, from: usize, farthest: usize, way: Option<Way>) -> Vec<Option<usize>> {
        let mut distances = vec![None; self.nodes.len()];
        distances[from] = Some(0);
        let mut queue = VecDeque::from([(from, 0)]);
        while let Some((here, distance)) = queue.pop_front() {
            if distance == farthest {
                continue;
            }
            for link in &self.links[here] {
                if link.leads(way) && distances[link.to].is_none() {
                    distances[link.to] = Some(distance + 1);
                    queue.push_back((link.to, distance + 1));
                }
            }
        }
        distances
    }
}

#[derive(Clone, Copy)]
enum Way {
    Out,
    Back,
}

impl Link {
    fn leads(&self, way: Option<Way>) -> bool {
        match way {
            None => true,
            Some(Way::Out) => !self.out.is_empty(),
            Some(Way::Back) => !self.back.is_empty(),
        }
    }
}

impl Search<'_> {
    /// Takes every path of exactly `length` more edges from here to the end. Returns whether the
    /// search may go on.
    fn walk(&mut self, here: usize, length: usize) -> bool {
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
        let way = self.directed.then_some(Way::Out);
        for link in &network.links[here] {
            let near = self.left[link.to].is_some_and(|left| left < length);
            // The end is only for the end.
            let early = link.to == self.to && length > 1;
            if !near || early || !link.leads(way) || self.path.contains(&link.to) {
                continue;
            }
            self.steps += 1;
            if self.steps > PATIENCE {
                return false;
            }
            self.path.push(link.to);
            let on = self.walk(link.to, length - 1);
            self.path.pop();
            if !on {
                return false;
            }
        }
        true
    }
}

#[cfg(test)]
#[path = "paths_tests.rs"]
mod tests;
