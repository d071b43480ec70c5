//! The merged responses to the queries of one tool call: a graph and ranked results.

use std::collections::HashSet;

use indexmap::{IndexMap, IndexSet};
use serde_json::Value;

use super::{
    biolink::CO_OCCURRENCE,
    trapi::{
        Attribute, KnowledgeEdge, KnowledgeNode, LogEntry, Response, TrapiResult,
        parse_response_part,
    },
};
use crate::{
    graph::{
        knowledge_graph::KnowledgeGraph,
        model::{
            Edge, EdgeData, Node, NodeData, Provenance, is_node_id, normalize_name, strip_biolink,
        },
    },
    text::{to_single_line, truncate},
};

/// Value of the field `data.source` of all nodes and edges from this server. It marks the origin of
/// their data.
const SOURCE: &str = "bte";
/// Maximum number of alternative ids of a node, and of its alternative names. Some nodes have
/// hundreds of them. Further ids and names are dropped.
const MAX_NAMES: usize = 20;
/// Maximum number of publications of one edge. Further publications are dropped.
const MAX_PUBLICATIONS: usize = 100;
/// Maximum length of each of three lists: the sources of an edge, the qualifiers of an edge, and
/// the categories of a node. Further items are dropped.
const MAX_DETAILS: usize = 10;
/// Maximum length, in characters, of a category, an attribute value or a warning. Longer categories
/// and attribute values are dropped, and longer warnings are truncated.
const MAX_VALUE_CHARS: usize = 200;
/// Maximum number of warnings from the service that the model receives.
const MAX_WARNINGS: usize = 5;

/// The nodes, edges and results of all responses to the queries of one tool call.
#[derive(Debug, Default)]
pub(super) struct QueryFindings {
    /// The valid nodes and edges. Both ends of every edge are among the nodes.
    pub(super) graph: KnowledgeGraph,
    /// The results. The key of a result is its sorted list of node ids, so that results with the
    /// same nodes are merged. [`rank_results`](QueryFindings::rank_results) sorts the results.
    pub(super) results: IndexMap<Vec<String>, QueryResult>,
    /// Number of edges that were ignored because they state only that two names occur in one text.
    pub(super) co_occurrence: usize,
    /// Number of nodes, edges and results that were ignored because they are invalid.
    pub(super) unreadable: usize,
    /// Warnings and errors that the service logged.
    pub(super) warnings: Vec<String>,
    /// Notice that the responses are bundled sample data.
    pub(super) notice: Option<String>,
}

/// A query result: the nodes and edges that match the query graph.
#[derive(Debug, Default, PartialEq)]
pub(super) struct QueryResult {
    /// Ids of the nodes that match the query graph. The node that the query names by its id comes
    /// first. If the service sent edges but no results, the ids are the source and the target of
    /// one edge.
    pub(super) nodes: Vec<String>,
    /// Ids of the edges that match the query graph.
    pub(super) edges: IndexSet<String>,
    /// Score that the service assigned. Higher is better.
    pub(super) score: Option<f64>,
}

impl QueryFindings {
    /// Adds the response to one query. `known` is the key, such as `n0`, of the first query node
    /// for which the query contains ids. The nodes that match this query node come first in each
    /// result.
    pub(super) fn add_response(&mut self, response: Response, known: &str) {
        let knowledge = response.message.knowledge_graph.unwrap_or_default();
        for (id, value) in knowledge.nodes {
            match parse_response_part(value).and_then(|raw| convert_trapi_node(id, raw)) {
                Some(node) => {
                    self.graph.add_node(node);
                }
                None => self.unreadable += 1,
            }
        }
        // The results of a response refer to edges by their keys in this response. This map
        // contains, for each key, the id of the edge in `self.graph`, or `None` for an ignored
        // edge.
        let mut edge_ids: IndexMap<String, Option<String>> = IndexMap::new();
        for (key, value) in knowledge.edges {
            let raw: Option<KnowledgeEdge> = parse_response_part(value);
            if raw.as_ref().is_some_and(|it| it.predicate == CO_OCCURRENCE) {
                self.co_occurrence += 1;
                edge_ids.insert(key, None);
                continue;
            }
            match raw
                .and_then(convert_trapi_edge)
                .filter(|edge| self.has_both_edge_ends(edge))
            {
                Some(edge) => {
                    edge_ids.insert(key, edge.id.clone());
                    self.graph.add_edge(edge);
                }
                None => self.unreadable += 1,
            }
        }
        let results = response.message.results.unwrap_or_default();
        if results.is_empty() {
            // If a service sends edges but no results, each edge becomes a result.
            for id in edge_ids.values().flatten() {
                let edge = &self.graph.edges[id];
                let nodes = vec![edge.source.clone(), edge.target.clone()];
                self.add_result(nodes, IndexSet::from([id.clone()]), None);
            }
        }
        for result in results {
            let valid = parse_response_part(result)
                .is_some_and(|result| self.add_trapi_result(result, known, &edge_ids));
            self.unreadable += usize::from(!valid);
        }
        self.add_warnings(response.logs);
    }

    fn has_both_edge_ends(&self, edge: &Edge) -> bool {
        let nodes = &self.graph.nodes;
        nodes.contains_key(&edge.source) && nodes.contains_key(&edge.target)
    }

    /// Adds a result of the response. Returns `false` and adds nothing if the result is invalid:
    /// one of its nodes, or all of its edges, are missing or invalid. Returns `true` but adds
    /// nothing if the result has only ignored edges.
    fn add_trapi_result(
        &mut self,
        mut result: TrapiResult,
        known: &str,
        edge_ids: &IndexMap<String, Option<String>>,
    ) -> bool {
        let first = result.node_bindings.remove(known);
        let bindings = first.into_iter().chain(result.node_bindings.into_values());
        let nodes: Vec<String> = bindings.flatten().map(|binding| binding.id).collect();
        let score = result.analyses.iter().filter_map(|it| it.score);
        let score = score.max_by(f64::total_cmp);
        let bindings = result
            .analyses
            .iter()
            .flat_map(|it| it.edge_bindings.values());
        let found: Vec<&Option<String>> = bindings
            .flatten()
            .filter_map(|binding| edge_ids.get(&binding.id))
            .collect();
        let is_valid =
            !found.is_empty() && nodes.iter().all(|id| self.graph.nodes.contains_key(id));
        let edges: IndexSet<String> = found.into_iter().flatten().cloned().collect();
        if is_valid && !edges.is_empty() {
            self.add_result(nodes, edges, score);
        }
        is_valid
    }

    fn add_result(&mut self, nodes: Vec<String>, edges: IndexSet<String>, score: Option<f64>) {
        let mut key = nodes.clone();
        key.sort();
        let result = self.results.entry(key).or_insert_with(|| QueryResult {
            nodes,
            ..QueryResult::default()
        });
        result.edges.extend(edges);
        result.score = result.score.into_iter().chain(score).max_by(f64::total_cmp);
    }

    fn add_warnings(&mut self, logs: Vec<LogEntry>) {
        for entry in logs {
            let is_problem = matches!(entry.level.as_deref(), Some("ERROR" | "WARNING"));
            let text = truncate(&to_single_line(&entry.message), MAX_VALUE_CHARS);
            if is_problem && self.warnings.len() < MAX_WARNINGS && !self.warnings.contains(&text) {
                self.warnings.push(text);
            }
        }
    }

    /// Sorts the results, the best first: by score, then by number of edges, then by number of
    /// publications. Results without a score come last.
    pub(super) fn rank_results(&mut self) {
        let mut results = std::mem::take(&mut self.results);
        results.sort_by(|_, a, _, b| {
            let score = |it: &QueryResult| it.score.unwrap_or(f64::NEG_INFINITY);
            let counts = |it: &QueryResult| (it.edges.len(), self.result_publications(it).len());
            let by_score = score(b).total_cmp(&score(a));
            by_score.then_with(|| counts(b).cmp(&counts(a)))
        });
        self.results = results;
    }

    /// Returns the edges of the knowledge graph that a query result refers to.
    pub(super) fn supporting_edges<'a>(
        &'a self,
        result: &'a QueryResult,
    ) -> impl Iterator<Item = &'a Edge> {
        let ids = result.edges.iter();
        ids.filter_map(|id| self.graph.edges.get(id))
    }

    /// Returns the publications of all edges of a query result, without duplicates.
    pub(super) fn result_publications<'a>(&'a self, result: &'a QueryResult) -> IndexSet<&'a str> {
        let publications = self
            .supporting_edges(result)
            .flat_map(|it| &it.data.publications);
        publications.map(String::as_str).collect()
    }

    /// Returns at most `max_edges` edges, and at most `max_nodes` nodes, which are the ends of
    /// these edges. The edges of the best results come first.
    pub(super) fn best_nodes_and_edges(
        &self,
        max_nodes: usize,
        max_edges: usize,
    ) -> (Vec<Node>, Vec<Edge>) {
        let mut nodes: IndexSet<&str> = IndexSet::new();
        let mut edges: IndexMap<&str, &Edge> = IndexMap::new();
        let of_results = self.results.values().flat_map(|result| &result.edges);
        for id in of_results.chain(self.graph.edges.keys()) {
            let edge = &self.graph.edges[id];
            let ends = HashSet::from([edge.source.as_str(), edge.target.as_str()]);
            let new = ends.iter().filter(|it| !nodes.contains(*it)).count();
            if edges.len() < max_edges && nodes.len() + new <= max_nodes {
                nodes.extend([edge.source.as_str(), edge.target.as_str()]);
                edges.insert(id, edge);
            }
        }
        let nodes = nodes.into_iter().filter_map(|id| self.graph.nodes.get(id));
        (
            nodes.cloned().collect(),
            edges.into_values().cloned().collect(),
        )
    }

    /// Returns the nodes that are an end of at least one edge in `self.graph`. The graph also
    /// contains nodes of ignored edges, which the counts in the output exclude.
    pub(super) fn related_nodes(&self) -> Vec<&Node> {
        let edges = self.graph.edges.values();
        let ends: HashSet<&String> = edges.flat_map(|it| [&it.source, &it.target]).collect();
        let nodes = self.graph.nodes.values();
        nodes.filter(|node| ends.contains(&node.id)).collect()
    }
}

fn convert_trapi_node(id: String, raw: KnowledgeNode) -> Option<Node> {
    if !is_node_id(&id) {
        return None;
    }
    let categories = raw.categories.unwrap_or_default();
    let categories = collect_valid_values(categories.iter().map(String::as_str), MAX_DETAILS);
    let kind = categories.first().map(|it| strip_biolink(it));
    let node = Node {
        label: raw.name.as_deref().and_then(normalize_name),
        kind: kind.and_then(normalize_name),
        data: NodeData {
            xrefs: attribute_values(&raw.attributes, "biolink:xref", MAX_NAMES),
            synonyms: attribute_values(&raw.attributes, "biolink:synonym", MAX_NAMES),
            categories,
            source: Some(SOURCE.to_owned()),
            ..NodeData::default()
        },
        id,
    };
    node.validate_node().ok()
}

fn convert_trapi_edge(raw: KnowledgeEdge) -> Option<Edge> {
    let sources = raw.sources.into_iter().take(MAX_DETAILS);
    let provenance: Vec<Provenance> = sources
        .map(|source| Provenance {
            resource_id: to_single_line(&source.resource_id),
            resource_role: source.resource_role,
            upstream_resource_ids: source.upstream_resource_ids.unwrap_or_default(),
            source_record_urls: source.source_record_urls.unwrap_or_default(),
        })
        .collect();
    let is_primary = |it: &&Provenance| it.resource_role == "primary_knowledge_source";
    let primary = provenance.iter().find(is_primary).or(provenance.first());
    let qualifiers = raw.qualifiers.into_iter().take(MAX_DETAILS);
    let qualifiers = qualifiers.map(|it| {
        let name = strip_biolink(&it.qualifier_type_id).to_owned();
        (name, it.qualifier_value)
    });
    let first = |id: &str| attribute_values(&raw.attributes, id, 1).into_iter().next();
    let edge = Edge {
        id: None,
        source: raw.subject,
        target: raw.object,
        label: raw.predicate,
        data: EdgeData {
            source: Some(SOURCE.to_owned()),
            primary_source: primary.map(|source| source.resource_id.clone()),
            publications: attribute_values(
                &raw.attributes,
                "biolink:publications",
                MAX_PUBLICATIONS,
            ),
            knowledge_level: first("biolink:knowledge_level"),
            agent_type: first("biolink:agent_type"),
            qualifiers: qualifiers.collect(),
            provenance,
            ..EdgeData::default()
        },
    };
    edge.validate_edge().ok()
}

/// Returns at most `max` distinct string values of the attributes whose type is `id`. An array as
/// the value of an attribute counts as several values.
fn attribute_values(attributes: &[Attribute], id: &str, max: usize) -> Vec<String> {
    let values = attributes.iter().filter(|it| it.attribute_type_id == id);
    let values = values.flat_map(|it| match &it.value {
        Value::Array(list) => list.as_slice(),
        one => std::slice::from_ref(one),
    });
    collect_valid_values(values.filter_map(Value::as_str), max)
}

/// Returns at most `max` distinct values. Skips values that are empty, have more than
/// [`MAX_VALUE_CHARS`] characters or contain control characters such as line breaks.
fn collect_valid_values<'a>(values: impl Iterator<Item = &'a str>, max: usize) -> Vec<String> {
    let is_valid = |it: &&str| {
        !it.is_empty() && it.chars().count() <= MAX_VALUE_CHARS && !it.chars().any(char::is_control)
    };
    let unique: IndexSet<&str> = values.filter(is_valid).collect();
    unique.into_iter().take(max).map(str::to_owned).collect()
}

#[cfg(test)]
#[path = "findings_tests.rs"]
mod tests;
