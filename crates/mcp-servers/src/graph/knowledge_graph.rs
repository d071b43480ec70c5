//! A knowledge graph in memory, with names and counts of its parts for results.

use std::{cmp::Reverse, collections::BTreeMap};

use indexmap::{IndexMap, map::Entry};
use schemars::JsonSchema;
use serde::Serialize;

use super::model::{Edge, Node};
use crate::{
    text::{format_quantity, join_first_items, suggest_name},
    tool::ToolError,
};

/// The nodes and edges in the graph of a conversation by id, in the order in which they were added.
#[derive(Debug, Default)]
pub(crate) struct KnowledgeGraph {
    pub(crate) nodes: IndexMap<String, Node>,
    pub(crate) edges: IndexMap<String, Edge>,
    /// Time of the last change of the graph (RFC 3339).
    pub(crate) updated_at: Option<String>,
}

/// The effect of adding or merging a node or an edge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UpsertOutcome {
    Added,
    Updated,
    Unchanged,
}

/// Size of the graph of a conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct GraphSize {
    /// Number of nodes in the graph.
    pub(crate) node_count: usize,
    /// Number of edges in the graph.
    pub(crate) edge_count: usize,
    /// Time of the last change (RFC 3339). Missing if the graph was never changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    last_updated: Option<String>,
}

/// Id, label and type of a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct NodeRef {
    /// The id of the node.
    pub(crate) id: String,
    /// The display name of the node.
    #[serde(skip_serializing_if = "Option::is_none")]
    label: Option<String>,
    /// The type of the node, such as `Gene`.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    kind: Option<String>,
}

/// The number of occurrences of a name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct NameCount {
    /// The counted name, such as a type or a predicate.
    pub(crate) name: String,
    /// The number of occurrences of the name.
    pub(crate) count: usize,
}

impl KnowledgeGraph {
    /// Adds a node, or merges it with an existing node that has the same id.
    pub(crate) fn add_node(&mut self, node: Node) -> UpsertOutcome {
        insert_or_merge(self.nodes.entry(node.id.clone()), node, Node::merge_node)
    }

    /// Adds an edge, or merges it with an existing edge that has the same id.
    pub(crate) fn add_edge(&mut self, edge: Edge) -> UpsertOutcome {
        let id = edge.id.clone().unwrap_or_else(|| edge.default_edge_id());
        insert_or_merge(self.edges.entry(id), edge, Edge::merge_edge)
    }

    pub(crate) fn count_totals(&self) -> GraphSize {
        GraphSize {
            node_count: self.nodes.len(),
            edge_count: self.edges.len(),
            last_updated: self.updated_at.clone(),
        }
    }

    /// Returns id, label and type of a node. For an unknown node, returns only the id.
    pub(crate) fn node_ref(&self, id: &str) -> NodeRef {
        self.nodes.get(id).map_or_else(
            || NodeRef {
                id: id.to_owned(),
                label: None,
                kind: None,
            },
            NodeRef::from,
        )
    }

    /// Finds a node by its id, or by its label if only one node has this label. The comparison
    /// ignores ASCII case. Returns an error for the model if no node or several nodes match. A
    /// label is accepted, because models use `MPO` for a node that a result shows as
    /// `MPO (NCBIGene:4353)`.
    pub(super) fn find_node(&self, name: &str) -> Result<&Node, ToolError> {
        if let Some(node) = self.nodes.get(name) {
            return Ok(node);
        }
        let matches = |text: &str| text.eq_ignore_ascii_case(name);
        let nodes = self.nodes.values();
        let found: Vec<&Node> = nodes
            .filter(|node| matches(&node.id) || node.label.as_deref().is_some_and(matches))
            .collect();
        match found.as_slice() {
            [] => Err(self.unknown_node_error(name)),
            [only] => Ok(only),
            several => {
                let ids: Vec<&str> = several.iter().map(|node| node.id.as_str()).collect();
                let ids = join_first_items(&ids, 6);
                Err(format!("Several nodes have the name {name}: {ids}. Use an id.").into())
            }
        }
    }

    /// Returns the error for the model if no node has the id or label `name`. The error suggests a
    /// similar id.
    pub(super) fn unknown_node_error(&self, name: &str) -> ToolError {
        if self.nodes.is_empty() {
            return ToolError::Refused(
                "The graph of this conversation is empty. Add nodes with add_nodes.".to_owned(),
            );
        }
        let suggestion = suggest_name(name, self.nodes.keys().map(String::as_str));
        ToolError::Refused(format!(
            "Unknown node {name} in the graph of this conversation.{suggestion} get_graph_state \
             lists the nodes."
        ))
    }
}

fn insert_or_merge<T: Clone + PartialEq>(
    entry: Entry<'_, String, T>,
    item: T,
    merge: impl FnOnce(T, T) -> T,
) -> UpsertOutcome {
    match entry {
        Entry::Vacant(entry) => {
            entry.insert(item);
            UpsertOutcome::Added
        }
        Entry::Occupied(mut entry) => {
            let merged = merge(entry.get().clone(), item);
            if merged == *entry.get() {
                return UpsertOutcome::Unchanged;
            }
            entry.insert(merged);
            UpsertOutcome::Updated
        }
    }
}

impl GraphSize {
    /// Describes the size of the graph, such as `2 nodes and 1 edge`.
    pub(super) fn describe_size(&self) -> String {
        format!(
            "{} and {}",
            format_quantity(self.node_count, "node"),
            format_quantity(self.edge_count, "edge")
        )
    }
}

impl From<&Node> for NodeRef {
    fn from(node: &Node) -> Self {
        Self {
            id: node.id.clone(),
            label: node.label.clone(),
            kind: node.kind.clone(),
        }
    }
}

impl NodeRef {
    /// Formats the node as `MPO (NCBIGene:4353)`, or only its id if it has no label.
    pub(crate) fn name_and_id(&self) -> String {
        match &self.label {
            Some(label) if *label != self.id => format!("{label} ({})", self.id),
            _ => self.id.clone(),
        }
    }

    /// Formats the node with its type: `MPO (NCBIGene:4353) [Gene]`.
    pub(crate) fn name_id_and_type(&self) -> String {
        match &self.kind {
            Some(kind) => format!("{} [{kind}]", self.name_and_id()),
            None => self.name_and_id(),
        }
    }
}

/// Counts the nodes by type. Nodes without a type count as `other`.
pub(crate) fn count_types<'a>(nodes: impl IntoIterator<Item = &'a Node>) -> Vec<NameCount> {
    let types = nodes.into_iter().map(|node| node.kind.as_deref());
    count_names(types.map(|kind| kind.unwrap_or("other")))
}

/// Counts how often each name occurs. Sorts the names by descending count, and names with equal
/// counts in alphabetical order.
pub(crate) fn count_names<'a>(names: impl IntoIterator<Item = &'a str>) -> Vec<NameCount> {
    let mut counts = BTreeMap::<&str, usize>::new();
    for name in names {
        *counts.entry(name).or_default() += 1;
    }
    let counts = counts.into_iter().map(|(name, count)| NameCount {
        name: name.to_owned(),
        count,
    });
    let mut counts: Vec<NameCount> = counts.collect();
    counts.sort_by_key(|it| Reverse(it.count));
    counts
}

/// Formats the first `max` counts as a list: `Gene 12, Disease 3 and 2 more`. Returns `none` for an
/// empty list.
pub(crate) fn describe_counts(counts: &[NameCount], max: usize) -> String {
    if counts.is_empty() {
        return "none".to_owned();
    }
    let counts = counts.iter().map(|it| format!("{} {}", it.name, it.count));
    join_first_items(&counts.collect::<Vec<_>>(), max)
}
