//! The tool `remove_from_graph`, which removes nodes and edges.

use std::fmt::Write as _;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    database_context::{DatabaseContext, conversation_id},
    knowledge_graph::GraphSize,
    store::GraphStore,
};
use crate::{
    text::{format_quantity, join_first_items},
    tool::{BundledTool, ToolError, ToolOutput, ToolResult},
};

/// Maximum number of unknown ids that the text of a result lists.
const MAX_LISTED: usize = 10;

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Input {
    /// The ids of nodes to remove with their edges.
    #[serde(default)]
    #[schemars(length(max = 1000))]
    node_ids: Vec<String>,
    /// The ids of edges to remove.
    #[serde(default)]
    #[schemars(length(max = 1000))]
    edge_ids: Vec<String>,
    /// Added by the host, not by the model: the conversation to which this call belongs.
    #[schemars(extend("writeOnly" = true))]
    database_context: Option<DatabaseContext>,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Output {
    /// The ids of the removed nodes.
    removed_nodes: Vec<String>,
    /// Number of removed edges, including the edges of removed nodes.
    removed_edges: usize,
    /// Ids that are neither a node nor an edge of the graph.
    not_found: Vec<String>,
    /// Size of the graph after the call.
    metadata: GraphSize,
}

pub(super) fn remove_from_graph_tool(store: GraphStore) -> BundledTool {
    BundledTool::new(
        "remove_from_graph",
        "Remove from the graph",
        "Removes nodes, with all their edges, and edges from the knowledge graph of this \
         conversation. It cannot be undone. get_graph_state lists the ids.",
        store,
        run_tool,
    )
    .map_annotations(|it| it.read_only(false).destructive(true))
}

async fn run_tool(store: GraphStore, input: Input) -> ToolResult<Output> {
    let first = input.node_ids.first().or(input.edge_ids.first()).cloned();
    let Some(first) = first else {
        return Err(ToolError::from(
            "nodeIds and edgeIds are empty. Give at least one id.",
        ));
    };
    let only_nodes = input.edge_ids.is_empty();
    let conversation = conversation_id(input.database_context.as_ref());
    let removed = store
        .remove_nodes_and_edges(conversation, input.node_ids, input.edge_ids)
        .await?;
    let missing = join_first_items(&removed.missing, MAX_LISTED);
    if removed.nodes.is_empty() && removed.edges == 0 {
        return Err(if only_nodes {
            removed.graph.unknown_node_error(&first)
        } else {
            ToolError::from(format!(
                "The graph contains none of these ids, so nothing was removed: {missing}."
            ))
        });
    }
    let totals = removed.graph.count_totals();
    let mut text = format!(
        "Removed {} and {}. The graph has {} now.",
        format_quantity(removed.nodes.len(), "node"),
        format_quantity(removed.edges, "edge"),
        totals.describe_size()
    );
    if !missing.is_empty() {
        let _ = write!(text, " Unknown ids: {missing}.");
    }
    let data = Output {
        removed_nodes: removed.nodes,
        removed_edges: removed.edges,
        not_found: removed.missing,
        metadata: totals,
    };
    Ok(ToolOutput { text, data })
}
