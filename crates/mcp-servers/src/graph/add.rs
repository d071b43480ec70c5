//! The tools `add_nodes` and `add_edges`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    database_context::{DatabaseContext, conversation_id},
    knowledge_graph::GraphSize,
    model::{Edge, Node},
    store::{GraphStore, UpsertCounts},
};
use crate::{
    text::{format_quantity, join_first_items},
    tool::{BundledTool, ToolError, ToolOutput, ToolResult},
};

/// Maximum number of invalid nodes or edges that an error message for the model describes.
const MAX_PROBLEMS: usize = 5;

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct NodesInput {
    /// The nodes to add, at most 1000 in a call.
    #[schemars(length(min = 1, max = 1000))]
    nodes: Vec<Node>,
    /// Added by the host, not by the model: the conversation to which this call belongs.
    #[schemars(extend("writeOnly" = true))]
    database_context: Option<DatabaseContext>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct EdgesInput {
    /// The edges to add, at most 2000 in a call.
    #[schemars(length(min = 1, max = 2000))]
    edges: Vec<Edge>,
    /// Added by the host, not by the model: the conversation to which this call belongs.
    #[schemars(extend("writeOnly" = true))]
    database_context: Option<DatabaseContext>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Output {
    #[serde(flatten)]
    done: UpsertCounts,
    /// Size of the graph after the call.
    metadata: GraphSize,
}

pub(super) fn add_nodes_tool(store: GraphStore) -> BundledTool {
    BundledTool::new(
        "add_nodes",
        "Add nodes",
        "Adds nodes to the knowledge graph of this conversation. An existing node gets the new \
         label and type, and new data is merged with old data. If one node is invalid, none is \
         added.",
        store,
        call_add_nodes,
    )
    .map_annotations(|it| it.read_only(false))
}

async fn call_add_nodes(store: GraphStore, input: NodesInput) -> ToolResult<Output> {
    let nodes = input.nodes.into_iter().map(Node::validate_node);
    let nodes = collect_valid_items("node", nodes)?;
    let conversation = conversation_id(input.database_context.as_ref());
    let (done, _, totals) = store
        .upsert_nodes_and_edges(conversation, nodes, Vec::new())
        .await?;
    Ok(build_output(done, totals, "node"))
}

pub(super) fn add_edges_tool(store: GraphStore) -> BundledTool {
    BundledTool::new(
        "add_edges",
        "Add edges",
        "Adds edges to the knowledge graph of this conversation: relations between two nodes, \
         with the source and the publications. Both nodes must be in the graph; add_nodes adds \
         them. In an existing edge, new data is merged with old data. If one edge is invalid, \
         none is added.",
        store,
        call_add_edges,
    )
    .map_annotations(|it| it.read_only(false))
}

async fn call_add_edges(store: GraphStore, input: EdgesInput) -> ToolResult<Output> {
    let edges = input.edges.into_iter().map(Edge::validate_edge);
    let edges = collect_valid_items("edge", edges)?;
    let conversation = conversation_id(input.database_context.as_ref());
    let (_, done, totals) = store
        .upsert_nodes_and_edges(conversation, Vec::new(), edges)
        .await?;
    Ok(build_output(done, totals, "edge"))
}

fn collect_valid_items<T>(
    noun: &str,
    items: impl Iterator<Item = Result<T, String>>,
) -> Result<Vec<T>, ToolError> {
    let mut valid = Vec::new();
    let mut problems = Vec::new();
    for (index, item) in items.enumerate() {
        match item {
            Ok(item) => valid.push(item),
            Err(problem) => problems.push(format!("{noun} {index}: {problem}")),
        }
    }
    if problems.is_empty() {
        return Ok(valid);
    }
    Err(format!(
        "Nothing was added. {}.",
        join_first_items(&problems, MAX_PROBLEMS)
    )
    .into())
}

fn build_output(done: UpsertCounts, metadata: GraphSize, noun: &str) -> ToolOutput<Output> {
    let text = format!(
        "Added {}, updated {}, {} unchanged. The graph has {} now.",
        format_quantity(done.added, noun),
        done.updated,
        done.unchanged,
        metadata.describe_size()
    );
    let data = Output { done, metadata };
    ToolOutput { text, data }
}
