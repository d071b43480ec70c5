//! `graph`: a stored knowledge graph for each conversation.

mod add;
mod analyze;
mod connections;
pub(crate) mod context;
pub(crate) mod model;
mod paths;
mod remove;
mod state;
pub(crate) mod store;

use std::fmt::Write as _;

use schemars::JsonSchema;
use serde::Serialize;
use switchboard_domain::nearest::nearest;

use crate::{BundledServer, ServerError, ServerOptions, tool::ToolError, tool_server::ToolServer};
use add::{AddEdges, AddNodes};
use analyze::AnalyzeNodeRelationships;
use connections::FindConnections;
use model::Node;
use remove::RemoveFromGraph;
use state::GetGraphState;
use store::GraphStore;

pub(crate) const IDENTITY: BundledServer = BundledServer {
    name: "graph",
    title: "Knowledge graph",
    description: "The knowledge graph of a conversation: nodes, edges, connections",
};

pub(crate) async fn open(options: &ServerOptions) -> Result<ToolServer, ServerError> {
    let store = GraphStore::open(options.data()).await?;
    let storage = if options.data().is_some() {
        "The graph is stored."
    } else {
        "The graph is lost when the server ends."
    };
    let instructions = format!(
        "A knowledge graph for each conversation. Node ids should be CURIEs such as NCBIGene:4353. \
         An edge is a relation from its source to its target, with its provenance. Adding can be \
         repeated: new data is merged with existing data. The nodes and edges in results of the \
         bundled bte server are valid arguments of add_nodes and add_edges. {storage}"
    );
    Ok(ToolServer::build(IDENTITY, instructions)
        .with(GetGraphState {
            store: store.clone(),
        })
        .with(AddNodes {
            store: store.clone(),
        })
        .with(AddEdges {
            store: store.clone(),
        })
        .with(RemoveFromGraph {
            store: store.clone(),
        })
        .with(FindConnections {
            store: store.clone(),
        })
        .with(AnalyzeNodeRelationships { store })
        .finish())
}

/// Id, label and type of a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct NodeRef {
    /// The id of the node.
    pub(crate) id: String,
    /// The display name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) label: Option<String>,
    /// The type.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub(crate) kind: Option<String>,
}

/// The number of occurrences of a name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct Count {
    /// The name.
    pub(crate) name: String,
    /// The number of occurrences.
    pub(crate) count: usize,
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
    /// Returns `MPO (NCBIGene:4353)`, or the id without a label.
    pub(crate) fn named(&self) -> String {
        match &self.label {
            Some(label) if *label != self.id => format!("{label} ({})", self.id),
            _ => self.id.clone(),
        }
    }

    /// Returns the name with the type: `MPO (NCBIGene:4353) [Gene]`.
    pub(crate) fn named_with_type(&self) -> String {
        let mut text = self.named();
        if let Some(kind) = &self.kind {
            // Writing to a string cannot fail.
            let _ = write!(text, " [{kind}]");
        }
        text
    }
}

/// Counts names. The most frequent name is first; equal counts are sorted by name.
pub(crate) fn count_names<'a>(names: impl IntoIterator<Item = &'a str>) -> Vec<Count> {
    let mut counts = std::collections::BTreeMap::<&str, usize>::new();
    for name in names {
        *counts.entry(name).or_default() += 1;
    }
    let mut counts: Vec<Count> = counts
        .into_iter()
        .map(|(name, count)| Count {
            name: name.to_owned(),
            count,
        })
        .collect();
    counts.sort_by_key(|it| std::cmp::Reverse(it.count));
    counts
}

/// Returns `Gene 12, Disease 3, and 2 more kinds`.
pub(crate) fn describe_counts(counts: &[Count], max: usize) -> String {
    let mut text: Vec<String> = counts
        .iter()
        .take(max)
        .map(|it| format!("{} {}", it.name, it.count))
        .collect();
    if text.is_empty() {
        return "none".to_owned();
    }
    match counts.len().saturating_sub(max) {
        0 => {}
        more => text.push(format!("and {more} more kinds")),
    }
    text.join(", ")
}

/// Returns a number with its noun: `1 node`, `2 nodes`.
pub(crate) fn quantity(count: usize, noun: &str) -> String {
    if count == 1 {
        format!("1 {noun}")
    } else {
        format!("{count} {noun}s")
    }
}

/// Finds a node by its id or by its label, if only one node has this label. Models write `MPO` for
/// a node that a result shows as `MPO (NCBIGene:4353)`.
async fn find_node(store: &GraphStore, conversation: &str, name: &str) -> Result<Node, ToolError> {
    let found = store.named(conversation, name).await?;
    match found.as_slice() {
        [] => Err(unknown_node(store, conversation, name).await),
        [first, ..] if first.id == name => Ok(first.clone()),
        [only] => Ok(only.clone()),
        several => {
            let several: Vec<&str> = several.iter().map(|node| node.id.as_str()).collect();
            Err(ToolError::Refused(format!(
                "Several nodes have the name {name}: {}. Use an id.",
                several.join(", ")
            )))
        }
    }
}

async fn unknown_node(store: &GraphStore, conversation: &str, name: &str) -> ToolError {
    let ids = match store.node_ids(conversation).await {
        Ok(ids) => ids,
        Err(error) => return error,
    };
    if ids.is_empty() {
        return ToolError::Refused(
            "The graph of this conversation is empty. Add nodes with add_nodes.".to_owned(),
        );
    }
    let suggestion = nearest(name, ids.iter().map(String::as_str))
        .map_or_else(String::new, |meant| format!(" Did you mean {meant}?"));
    ToolError::Refused(format!(
        "Unknown node {name} in the graph of this conversation.{suggestion} get_graph_state lists \
         the nodes."
    ))
}

#[cfg(test)]
#[path = "arguments_tests.rs"]
mod arguments_tests;
