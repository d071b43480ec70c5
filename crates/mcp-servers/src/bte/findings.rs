//! What the answers to a question say, in the form of the graph, each thing once and the best first.

use std::collections::{BTreeMap, HashMap, HashSet};

use serde_json::Value;

use super::{
    biolink::CO_OCCURRENCE,
    trapi::{Attribute, Items, KnowledgeEdge, KnowledgeNode, LogEntry, Response, ResultEntry},
};
use crate::graph::model::{
    Edge, EdgeData, Node, NodeData, Provenance, cut, is_node_id, name, one_line, plain,
};

/// How the edges and nodes say that they were learnt here.
const LEARNT_FROM: &str = "bte";
/// Other ids and names of a node that are kept; some have hundreds.
const NAMES: usize = 20;
/// Publications of an edge that are kept.
const PUBLICATIONS: usize = 100;
/// Stations and qualifiers of an edge that are kept.
const DETAILS: usize = 10;
/// Longer words than this are none.
const WORD: usize = 200;
/// Warnings of the service that are told.
const WARNINGS: usize = 5;

/// Everything that was found.
#[derive(Debug, Default)]
pub(super) struct Findings {
    pub(super) nodes: Vec<Node>,
    /// Checked: they have ids, and their ends are among the nodes.
    pub(super) edges: Vec<Edge>,
    /// The best first, once [`rank`](Findings::rank) was called.
    pub(super) results: Vec<Found>,
    /// How many edges were left out because they only say that names occur together.
    pub(super) co_occurrence: usize,
    /// How many nodes, edges and results could not be read.
    pub(super) unreadable: usize,
    /// What the service said about problems.
    pub(super) warnings: Vec<String>,
    node_places: HashMap<String, usize>,
    edge_places: HashMap<String, usize>,
    result_places: HashMap<Vec<String>, usize>,
}

/// One answer to the question.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Found {
    /// The nodes that take the places of the question, in its order.
    pub(super) nodes: Vec<String>,
    /// Places in [`Findings::edges`].
    pub(super) edges: Vec<usize>,
    /// How good the service thinks it is; higher is better.
    pub(super) score: Option<f64>,
}

impl Findings {
    /// Adds what an answer says. `order` are the nodes of the question, the known one first.
    pub(super) fn add(&mut self, response: Response, order: &[&str]) {
        let knowledge = response.message.knowledge_graph.unwrap_or_default();
        self.unreadable += knowledge.nodes.bad + knowledge.edges.bad;
        for (id, raw) in knowledge.nodes.good {
            match node(id, raw) {
                Some(node) => self.add_node(node),
                None => self.unreadable += 1,
            }
        }
        // Bindings name edges by their key in this answer.
        let mut keys: HashMap<String, usize> = HashMap::new();
        let mut left_out: HashSet<String> = HashSet::new();
        for (key, raw) in knowledge.edges.good {
            if raw.predicate == CO_OCCURRENCE {
                self.co_occurrence += 1;
                left_out.insert(key);
                continue;
            }
            match edge(raw).filter(|edge| self.has_ends(edge)) {
                Some(edge) => {
                    let place = self.add_edge(edge);
                    keys.insert(key, place);
                }
                None => self.unreadable += 1,
            }
        }
        let results = response.message.results;
        self.unreadable += results.bad;
        if results.good.is_empty() {
            // Some services give knowledge without results; each related pair is one then.
            let mut places: Vec<usize> = keys.values().copied().collect();
            places.sort_unstable();
            for place in places {
                let edge = &self.edges[place];
                let nodes = vec![edge.source.clone(), edge.target.clone()];
                self.add_result(nodes, vec![place], None);
            }
        }
        for result in results.good {
            self.add_answer(&result, order, &keys, &left_out);
        }
        self.warn(response.logs);
    }

    fn has_ends(&self, edge: &Edge) -> bool {
        self.node_places.contains_key(&edge.source) && self.node_places.contains_key(&edge.target)
    }

    fn add_node(&mut self, node: Node) {
        if let Some(&place) = self.node_places.get(&node.id) {
            self.nodes[place] = self.nodes[place].clone().join(node);
            return;
        }
        self.node_places.insert(node.id.clone(), self.nodes.len());
        self.nodes.push(node);
    }

    fn add_edge(&mut self, edge: Edge) -> usize {
        let id = edge.id.clone().unwrap_or_default();
        if let Some(&place) = self.edge_places.get(&id) {
            self.edges[place] = self.edges[place].clone().join(edge);
            return place;
        }
        self.edge_places.insert(id, self.edges.len());
        self.edges.push(edge);
        self.edges.len() - 1
    }

    fn add_answer(
        &mut self,
        result: &ResultEntry,
        order: &[&str],
        keys: &HashMap<String, usize>,
        left_out: &HashSet<String>,
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
        let mut dropped = false;
        let mut score: Option<f64> = None;
        for analysis in &result.analyses.good {
            score = match (score, analysis.score) {
                (Some(a), Some(b)) => Some(a.max(b)),
                (a, b) => a.or(b),
            };
            for binding in analysis.edge_bindings.values().flatten() {
                match keys.get(&binding.id) {
                    Some(place) if seen.insert(*place) => edges.push(*place),
                    Some(_) => {}
                    None => dropped |= left_out.contains(&binding.id),
                }
            }
        }
        let nodes_known = nodes.iter().all(|id| self.node_places.contains_key(id));
        if edges.is_empty() || !nodes_known {
            // Without an edge that counts, it is no answer; that alone is no fault of the service.
            if !dropped || !nodes_known {
                self.unreadable += 1;
            }
            return;
        }
        self.add_result(nodes, edges, score);
    }

    fn add_result(&mut self, nodes: Vec<String>, edges: Vec<usize>, score: Option<f64>) {
        let mut key = nodes.clone();
        key.sort();
        if let Some(&place) = self.result_places.get(&key) {
            let result = &mut self.results[place];
            let known: HashSet<usize> = result.edges.iter().copied().collect();
            let new = edges.into_iter().filter(|it| !known.contains(it));
            result.edges.extend(new);
            result.score = match (result.score, score) {
                (Some(a), Some(b)) => Some(a.max(b)),
                (a, b) => a.or(b),
            };
            return;
        }
        self.result_places.insert(key, self.results.len());
        self.results.push(Found {
            nodes,
            edges,
            score,
        });
    }

    fn warn(&mut self, logs: Items<LogEntry>) {
        let bad = logs.good.into_iter().filter(|entry| {
            let level = entry.level.as_deref().unwrap_or_default();
            matches!(level, "ERROR" | "WARNING")
        });
        for entry in bad {
            let text = cut(&one_line(&entry.message), WORD);
            if self.warnings.len() < WARNINGS && !self.warnings.contains(&text) {
                self.warnings.push(text);
            }
        }
    }

    /// Brings the results in order: the highest score, the most edges, the most publications.
    pub(super) fn rank(&mut self) {
        let results = std::mem::take(&mut self.results).into_iter();
        let mut keyed: Vec<(f64, usize, Found)> = results
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
        self.nodes.get(*self.node_places.get(id)?)
    }

    /// The publications that support a result, each once.
    pub(super) fn publications(&self, found: &Found) -> Vec<&str> {
        publications(&self.edges, found)
    }

    /// At most so many nodes and edges that belong together: those of the best results first, and no
    /// edge without its ends.
    pub(super) fn select(&self, max_nodes: usize, max_edges: usize) -> (Vec<Node>, Vec<Edge>) {
        let mut places: HashSet<&str> = HashSet::new();
        let mut nodes: Vec<Node> = Vec::new();
        let mut edges: Vec<Edge> = Vec::new();
        let mut taken: HashSet<usize> = HashSet::new();
        let of_results = self
            .results
            .iter()
            .flat_map(|result| result.edges.iter().copied());
        for place in of_results.chain(0..self.edges.len()) {
            if edges.len() == max_edges {
                break;
            }
            if taken.contains(&place) {
                continue;
            }
            let edge = &self.edges[place];
            let mut new: Vec<&str> = vec![&edge.source, &edge.target];
            new.dedup();
            new.retain(|id| !places.contains(id));
            if new.len() > max_nodes - nodes.len() {
                continue;
            }
            nodes.extend(new.iter().filter_map(|id| self.node(id)).cloned());
            places.extend(new);
            taken.insert(place);
            edges.push(edge.clone());
        }
        (nodes, edges)
    }

    /// The nodes that an edge ends at. Others came with edges that were left out.
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

fn publications<'a>(edges: &'a [Edge], found: &Found) -> Vec<&'a str> {
    let mut seen: HashSet<&str> = HashSet::new();
    let all = found
        .edges
        .iter()
        .flat_map(|place| &edges[*place].data.publications);
    all.map(String::as_str)
        .filter(|it| seen.insert(it))
        .collect()
}

fn node(id: String, raw: KnowledgeNode) -> Option<Node> {
    if !is_node_id(&id) {
        return None;
    }
    let mut categories = raw.categories.unwrap_or_default();
    categories.retain(|category| is_word(category));
    categories.truncate(DETAILS);
    let attributes = &raw.attributes;
    let node = Node {
        label: raw.name.as_deref().and_then(name),
        kind: categories.first().map(|it| plain(it)).and_then(name),
        data: NodeData {
            xrefs: words(attributes, "biolink:xref", NAMES),
            synonyms: words(attributes, "biolink:synonym", NAMES),
            categories,
            source: Some(LEARNT_FROM.to_owned()),
            ..NodeData::default()
        },
        id,
    };
    node.check().ok()
}

fn edge(raw: KnowledgeEdge) -> Option<Edge> {
    let provenance: Vec<Provenance> = raw
        .sources
        .good
        .into_iter()
        .filter(|source| is_word(&source.resource_id) && is_word(&source.resource_role))
        .take(DETAILS)
        .map(|source| Provenance {
            resource_id: source.resource_id,
            resource_role: source.resource_role,
            upstream_resource_ids: short(source.upstream_resource_ids),
            source_record_urls: short(source.source_record_urls),
        })
        .collect();
    let primary = provenance
        .iter()
        .find(|source| source.resource_role == "primary_knowledge_source")
        .or(provenance.first());
    let qualifiers: BTreeMap<String, String> = raw
        .qualifiers
        .good
        .into_iter()
        .filter(|it| is_word(&it.qualifier_type_id) && is_word(&it.qualifier_value))
        .take(DETAILS)
        .map(|it| (plain(&it.qualifier_type_id).to_owned(), it.qualifier_value))
        .collect();
    let first = |id: &str| words(&raw.attributes, id, 1).into_iter().next();
    let edge = Edge {
        id: None,
        source: raw.subject,
        target: raw.object,
        label: raw.predicate,
        data: EdgeData {
            source: Some(LEARNT_FROM.to_owned()),
            primary_source: primary.map(|source| source.resource_id.clone()),
            publications: words(&raw.attributes, "biolink:publications", PUBLICATIONS),
            knowledge_level: first("biolink:knowledge_level"),
            agent_type: first("biolink:agent_type"),
            qualifiers,
            provenance,
            ..EdgeData::default()
        },
    };
    edge.check().ok()
}

/// What the attributes of one kind say, as a list of strings or as a string.
fn words(attributes: &Items<Attribute>, id: &str, most: usize) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let values = attributes
        .good
        .iter()
        .filter(|it| it.attribute_type_id == id);
    for value in values.map(|it| &it.value) {
        let list = match value {
            Value::Array(list) => list.as_slice(),
            one => std::slice::from_ref(one),
        };
        for word in list
            .iter()
            .filter_map(Value::as_str)
            .filter(|it| is_word(it))
        {
            if words.len() == most {
                return words;
            }
            if !words.iter().any(|it| it == word) {
                words.push(word.to_owned());
            }
        }
    }
    words
}

fn short(list: Option<Vec<String>>) -> Vec<String> {
    let list = list.unwrap_or_default().into_iter();
    list.filter(|it| is_word(it)).take(3).collect()
}

fn is_word(text: &str) -> bool {
    !text.is_empty() && text.chars().count() <= WORD && !text.chars().any(char::is_control)
}

#[cfg(test)]
#[path = "findings_tests.rs"]
mod tests;
