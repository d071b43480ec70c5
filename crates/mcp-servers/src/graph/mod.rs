//! `graph`: what a conversation has found out, as a graph of nodes and edges that stays.

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
    let keeping = if options.data().is_some() {
        "The graph is kept."
    } else {
        "The graph is gone when the server ends."
    };
    let instructions = format!(
        "A knowledge graph for each conversation. Nodes have ids, best CURIEs such as \
         NCBIGene:4353; an edge says how its source is related to its target and keeps where that \
         is from. Adding is safe to repeat: what is there already is joined with what is said \
         now. Results of the bundled bte server have nodes and edges in the form that add_nodes \
         and add_edges take. {keeping}"
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

/// A node in a few words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct NodeRef {
    /// The id of the node.
    pub(crate) id: String,
    /// Its name for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) label: Option<String>,
    /// What kind of thing it is.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub(crate) kind: Option<String>,
}

/// How often something occurs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct Count {
    /// What is counted.
    pub(crate) name: String,
    /// How many there are.
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
    /// `MPO (NCBIGene:4353)`, or the id alone.
    pub(crate) fn named(&self) -> String {
        match &self.label {
            Some(label) if *label != self.id => format!("{label} ({})", self.id),
            _ => self.id.clone(),
        }
    }

    /// The same with its type: `MPO (NCBIGene:4353) [Gene]`.
    pub(crate) fn described(&self) -> String {
        let mut text = self.named();
        if let Some(kind) = &self.kind {
            // Writing to a string cannot fail.
            let _ = write!(text, " [{kind}]");
        }
        text
    }
}

/// The names with how often they occur, the most frequent first, then by name.
pub(crate) fn counted<'a>(names: impl IntoIterator<Item = &'a str>) -> Vec<Count> {
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

/// `Gene 12, Disease 3 and 2 others`.
pub(crate) fn listed(counts: &[Count], most: usize) -> String {
    let mut text: Vec<String> = counts
        .iter()
        .take(most)
        .map(|it| format!("{} {}", it.name, it.count))
        .collect();
    if text.is_empty() {
        return "none".to_owned();
    }
    match counts.len().saturating_sub(most) {
        0 => {}
        more => text.push(format!("and {more} more kinds")),
    }
    text.join(", ")
}

/// `1 node`, `2 nodes`.
pub(crate) fn many(count: usize, one: &str) -> String {
    if count == 1 {
        format!("1 {one}")
    } else {
        format!("{count} {one}s")
    }
}

/// The one node that is meant by an id, or by a label that no other node has. Models write `MPO`
/// where they have seen `MPO (NCBIGene:4353)`.
async fn meant(store: &GraphStore, conversation: &str, name: &str) -> Result<Node, ToolError> {
    let found = store.named(conversation, name).await?;
    match found.as_slice() {
        [] => Err(no_such_node(store, conversation, name).await),
        [first, ..] if first.id == name => Ok(first.clone()),
        [only] => Ok(only.clone()),
        several => {
            let several: Vec<&str> = several.iter().map(|node| node.id.as_str()).collect();
            Err(ToolError::Refused(format!(
                "Several nodes are called {name}: {}. Name one by its id.",
                several.join(", ")
            )))
        }
    }
}

async fn no_such_node(store: &GraphStore, conversation: &str, name: &str) -> ToolError {
    let ids = match store.node_ids(conversation).await {
        Ok(ids) => ids,
        Err(error) => return error,
    };
    if ids.is_empty() {
        return ToolError::Refused(
            "The graph of this conversation is empty. Nodes come into it with add_nodes."
                .to_owned(),
        );
    }
    let meant = nearest(name, ids.iter().map(String::as_str))
        .map_or_else(String::new, |meant| format!(" Did you mean {meant}?"));
    ToolError::Refused(format!(
        "There is no node {name} in the graph of this conversation.{meant} get_graph_state lists \
         the nodes."
    ))
}

#[cfg(test)]
#[path = "arguments_tests.rs"]
mod arguments_tests;
