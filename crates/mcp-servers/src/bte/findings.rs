//! The merged responses of a query: unique nodes and edges, and ranked results.

use std::collections::{BTreeMap, HashMap, HashSet};

use serde_json::Value;

use super::{
    biolink::CO_OCCURRENCE,
    trapi::{Attribute, Items, KnowledgeEdge, KnowledgeNode, LogEntry, Response, ResultEntry},
};
use crate::graph::model::{
    Edge, EdgeData, Node, NodeData, Provenance, is_node_id, normalize_name, one_line, truncate,
    without_prefix,
};

/// Value of `source` in the data of nodes and edges.
const SOURCE: &str = "bte";
/// Maximum number of other ids or names of a node. Some nodes have hundreds.
const MAX_NAMES: usize = 20;
/// Maximum number of publications of an edge.
const MAX_PUBLICATIONS: usize = 100;
/// Maximum number of sources, qualifiers or categories.
const MAX_DETAILS: usize = 10;
/// Maximum length of a value, in characters.
const MAX_VALUE_CHARS: usize = 200;
/// Maximum number of warnings of the service.
const MAX_WARNINGS: usize = 5;

/// Nodes, edges and results of all responses.
#[derive(Debug, Default)]
pub(super) struct Findings {
    pub(super) nodes: Vec<Node>,
    /// Valid edges with ids. `nodes` contains their ends.
    pub(super) edges: Vec<Edge>,
    /// Sorted by [`rank`](Findings::rank).
    pub(super) results: Vec<QueryResult>,
    /// Number of ignored edges, which state only that names occur in one text.
    pub(super) co_occurrence: usize,
    /// Number of nodes, edges and results with an invalid form.
    pub(super) unreadable: usize,
    /// Warnings of the service.
    pub(super) warnings: Vec<String>,
    node_indexes: HashMap<String, usize>,
    edge_indexes: HashMap<String, usize>,
    result_indexes: HashMap<Vec<String>, usize>,
}

/// One result of the query.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct QueryResult {
    /// Ids of the bound nodes, in the order of the query.
    pub(super) nodes: Vec<String>,
    /// Indexes in [`Findings::edges`].
    pub(super) edges: Vec<usize>,
    /// Score of the service. Higher is better.
    pub(super) score: Option<f64>,
}

impl Findings {
    /// Adds a response. `order` contains the node keys of the query, the known one first.
    pub(super) fn add(&mut self, response: Response, order: &[&str]) {
        let knowledge = response.message.knowledge_graph.unwrap_or_default();
        self.unreadable += knowledge.nodes.invalid + knowledge.edges.invalid;
        for (id, raw) in knowledge.nodes.valid {
            match node(id, raw) {
                Some(node) => self.add_node(node),
                None => self.unreadable += 1,
            }
        }
        // Bindings refer to edges by their key in this response.
        let mut keys: HashMap<String, usize> = HashMap::new();
        let mut ignored: HashSet<String> = HashSet::new();
        for (key, raw) in knowledge.edges.valid {
            if raw.predicate == CO_OCCURRENCE {
                self.co_occurrence += 1;
                ignored.insert(key);
                continue;
            }
            match edge(raw).filter(|edge| self.has_ends(edge)) {
                Some(edge) => {
                    let index = self.add_edge(edge);
                    keys.insert(key, index);
                }
                None => self.unreadable += 1,
            }
        }
        let results = response.message.results;
        self.unreadable += results.invalid;
        if results.valid.is_empty() {
            // Some services send no results. Then each edge is one.
            let mut indexes: Vec<usize> = keys.values().copied().collect();
            indexes.sort_unstable();
            for index in indexes {
                let edge = &self.edges[index];
                let nodes = vec![edge.source.clone(), edge.target.clone()];
                self.add_result(nodes, vec![index], None);
            }
        }
        for result in results.valid {
            self.add_bound_result(&result, order, &keys, &ignored);
        }
        self.warn(response.logs);
    }

    fn has_ends(&self, edge: &Edge) -> bool {
        self.node_indexes.contains_key(&edge.source) && self.node_indexes.contains_key(&edge.target)
    }

    fn add_node(&mut self, node: Node) {
        if let Some(&index) = self.node_indexes.get(&node.id) {
            self.nodes[index] = self.nodes[index].clone().merge(node);
            return;
        }
        self.node_indexes.insert(node.id.clone(), self.nodes.len());
        self.nodes.push(node);
    }

    fn add_edge(&mut self, edge: Edge) -> usize {
        let id = edge.id.clone().unwrap_or_default();
        if let Some(&index) = self.edge_indexes.get(&id) {
            self.edges[index] = self.edges[index].clone().merge(edge);
            return index;
        }
        self.edge_indexes.insert(id, self.edges.len());
        self.edges.push(edge);
        self.edges.len() - 1
    }

    fn add_bound_result(
        &mut self,
        result: &ResultEntry,
        order: &[&str],
        keys: &HashMap<String, usize>,
        ignored: &HashSet<String>,
    ) {
        let known = order
            .iter()
            .filter_map(|key| result.node_bindings.get(*key));
        let others = result.node_bindings.iter();
        let others = others.filter(|(key, _)| !order.contains(&key.as_str()));
        let bindings = known.chain(others.map(|(_, bindings)| bindings)).flatten();
        let nodes: Vec<String> = bindings.map(|binding| binding.id.clone()).collect();
        let mut edges: Vec<usize> = Vec::new();
        let mut seen: HashSet<usize> = HashSet::new();
        let mut has_ignored_edges = false;
        let mut score: Option<f64> = None;
        for analysis in &result.analyses.valid {
            score = match (score, analysis.score) {
                (Some(a), Some(b)) => Some(a.max(b)),
                (a, b) => a.or(b),
            };
            for binding in analysis.edge_bindings.values().flatten() {
                match keys.get(&binding.id) {
                    Some(index) if seen.insert(*index) => edges.push(*index),
                    Some(_) => {}
                    None => has_ignored_edges |= ignored.contains(&binding.id),
                }
            }
        }
        let nodes_known = nodes.iter().all(|id| self.node_indexes.contains_key(id));
        if edges.is_empty() || !nodes_known {
            // A result without edges is ignored. It is valid if its edges were ignored.
            if !has_ignored_edges || !nodes_known {
                self.unreadable += 1;
            }
            return;
        }
        self.add_result(nodes, edges, score);
    }

    fn add_result(&mut self, nodes: Vec<String>, edges: Vec<usize>, score: Option<f64>) {
        let mut key = nodes.clone();
        key.sort();
        if let Some(&index) = self.result_indexes.get(&key) {
            let result = &mut self.results[index];
            let known: HashSet<usize> = result.edges.iter().copied().collect();
            let new = edges.into_iter().filter(|it| !known.contains(it));
            result.edges.extend(new);
            result.score = match (result.score, score) {
                (Some(a), Some(b)) => Some(a.max(b)),
                (a, b) => a.or(b),
            };
            return;
        }
        self.result_indexes.insert(key, self.results.len());
        self.results.push(QueryResult {
            nodes,
            edges,
            score,
        });
    }

    fn warn(&mut self, logs: Items<LogEntry>) {
        let bad = logs.valid.into_iter().filter(|entry| {
            let level = entry.level.as_deref().unwrap_or_default();
            matches!(level, "ERROR" | "WARNING")
        });
        for entry in bad {
            let text = truncate(&one_line(&entry.message), MAX_VALUE_CHARS);
            if self.warnings.len() < MAX_WARNINGS && !self.warnings.contains(&text) {
                self.warnings.push(text);
            }
        }
    }

    /// Sorts the results by score, number of edges and number of publications.
    pub(super) fn rank(&mut self) {
        let results = std::mem::take(&mut self.results).into_iter();
        let mut keyed: Vec<(f64, usize, QueryResult)> = results
            .map(|found| {
                let score = found.score.unwrap_or(f64::NEG_INFINITY);
                (score, publications(&self.edges, &found).len(), found)
            })
            .collect();
        keyed.sort_by(|a, b| {
            b.0.total_cmp(&a.0)
                .then_with(|| b.2.edges.len().cmp(&a.2.edges.len()))
                .then_with(|| b.1.cmp(&a.1))
        });
        self.results = keyed.into_iter().map(|(_, _, found)| found).collect();
    }

    pub(super) fn node(&self, id: &str) -> Option<&Node> {
        self.nodes.get(*self.node_indexes.get(id)?)
    }

    /// Returns the unique publications of a result.
    pub(super) fn publications(&self, found: &QueryResult) -> Vec<&str> {
        publications(&self.edges, found)
    }

    /// Returns edges of the best results with their nodes, up to the given numbers.
    pub(super) fn select(&self, max_nodes: usize, max_edges: usize) -> (Vec<Node>, Vec<Edge>) {
        let mut node_ids: HashSet<&str> = HashSet::new();
        let mut nodes: Vec<Node> = Vec::new();
        let mut edges: Vec<Edge> = Vec::new();
        let mut taken: HashSet<usize> = HashSet::new();
        let of_results = self
            .results
            .iter()
            .flat_map(|result| result.edges.iter().copied());
        for index in of_results.chain(0..self.edges.len()) {
            if edges.len() == max_edges {
                break;
            }
            if taken.contains(&index) {
                continue;
            }
            let edge = &self.edges[index];
            let mut new: Vec<&str> = vec![&edge.source, &edge.target];
            new.dedup();
            new.retain(|id| !node_ids.contains(id));
            if new.len() > max_nodes - nodes.len() {
                continue;
            }
            nodes.extend(new.iter().filter_map(|id| self.node(id)).cloned());
            node_ids.extend(new);
            taken.insert(index);
            edges.push(edge.clone());
        }
        (nodes, edges)
    }

    /// Returns the nodes with edges. Other nodes belong to ignored edges.
    pub(super) fn related_nodes(&self) -> Vec<&Node> {
        let ends: HashSet<&str> = self
            .edges
            .iter()
            .flat_map(|edge| [edge.source.as_str(), edge.target.as_str()])
            .collect();
        let nodes = self.nodes.iter();
        nodes
            .filter(|node| ends.contains(node.id.as_str()))
            .collect()
    }
}

fn publications<'a>(edges: &'a [Edge], found: &QueryResult) -> Vec<&'a str> {
    let mut seen: HashSet<&str> = HashSet::new();
    let all = found
        .edges
        .iter()
        .flat_map(|index| &edges[*index].data.publications);
    all.map(String::as_str)
        .filter(|it| seen.insert(it))
        .collect()
}

fn node(id: String, raw: KnowledgeNode) -> Option<Node> {
    if !is_node_id(&id) {
        return None;
    }
    let mut categories = raw.categories.unwrap_or_default();
    categories.retain(|category| is_valid_value(category));
    categories.truncate(MAX_DETAILS);
    let attributes = &raw.attributes;
    let node = Node {
        label: raw.name.as_deref().and_then(normalize_name),
        kind: categories
            .first()
            .map(|it| without_prefix(it))
            .and_then(normalize_name),
        data: NodeData {
            xrefs: values(attributes, "biolink:xref", MAX_NAMES),
            synonyms: values(attributes, "biolink:synonym", MAX_NAMES),
            categories,
            source: Some(SOURCE.to_owned()),
            ..NodeData::default()
        },
        id,
    };
    node.check().ok()
}

fn edge(raw: KnowledgeEdge) -> Option<Edge> {
    let provenance: Vec<Provenance> = raw
        .sources
        .valid
        .into_iter()
        .filter(|source| {
            is_valid_value(&source.resource_id) && is_valid_value(&source.resource_role)
        })
        .take(MAX_DETAILS)
        .map(|source| Provenance {
            resource_id: source.resource_id,
            resource_role: source.resource_role,
            upstream_resource_ids: valid_values(source.upstream_resource_ids),
            source_record_urls: valid_values(source.source_record_urls),
        })
        .collect();
    let primary = provenance
        .iter()
        .find(|source| source.resource_role == "primary_knowledge_source")
        .or(provenance.first());
    let qualifiers: BTreeMap<String, String> = raw
        .qualifiers
        .valid
        .into_iter()
        .filter(|it| is_valid_value(&it.qualifier_type_id) && is_valid_value(&it.qualifier_value))
        .take(MAX_DETAILS)
        .map(|it| {
            (
                without_prefix(&it.qualifier_type_id).to_owned(),
                it.qualifier_value,
            )
        })
        .collect();
    let first = |id: &str| values(&raw.attributes, id, 1).into_iter().next();
    let edge = Edge {
        id: None,
        source: raw.subject,
        target: raw.object,
        label: raw.predicate,
        data: EdgeData {
            source: Some(SOURCE.to_owned()),
            primary_source: primary.map(|source| source.resource_id.clone()),
            publications: values(&raw.attributes, "biolink:publications", MAX_PUBLICATIONS),
            knowledge_level: first("biolink:knowledge_level"),
            agent_type: first("biolink:agent_type"),
            qualifiers,
            provenance,
            ..EdgeData::default()
        },
    };
    edge.check().ok()
}

/// Returns the string values of the attributes of one type.
fn values(attributes: &Items<Attribute>, id: &str, max: usize) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let matching = attributes
        .valid
        .iter()
        .filter(|it| it.attribute_type_id == id);
    for value in matching.map(|it| &it.value) {
        let list = match value {
            Value::Array(list) => list.as_slice(),
            one => std::slice::from_ref(one),
        };
        for value in list
            .iter()
            .filter_map(Value::as_str)
            .filter(|it| is_valid_value(it))
        {
            if found.len() == max {
                return found;
            }
            if !found.iter().any(|it| it == value) {
                found.push(value.to_owned());
            }
        }
    }
    found
}

fn valid_values(list: Option<Vec<String>>) -> Vec<String> {
    let list = list.unwrap_or_default().into_iter();
    list.filter(|it| is_valid_value(it)).take(3).collect()
}

fn is_valid_value(text: &str) -> bool {
    !text.is_empty()
        && text.chars().count() <= MAX_VALUE_CHARS
        && !text.chars().any(char::is_control)
}

#[cfg(test)]
#[path = "findings_tests.rs"]
mod tests;
