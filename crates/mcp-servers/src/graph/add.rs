//! `add_nodes` and `add_edges`.

use rmcp::model::ToolAnnotations;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    context::{DatabaseContext, conversation},
    knowledge_graph::Totals,
    model::{Edge, Node},
    store::{GraphStore, Upserted},
};
use crate::{
    text::{listed, quantity},
    tool::{BundledTool, ToolError, ToolOutput},
};

/// Maximum number of invalid items that an error message describes.
const MAX_PROBLEMS: usize = 5;

pub(super) struct AddNodes(pub(super) GraphStore);

pub(super) struct AddEdges(pub(super) GraphStore);

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct NodesInput {
    /// The nodes, at most 1000 in a call.
    #[schemars(length(min = 1, max = 1000))]
    nodes: Vec<Node>,
    /// Added by the host: the conversation of this call.
    #[schemars(extend("writeOnly" = true))]
    database_context: Option<DatabaseContext>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct EdgesInput {
    /// The edges, at most 2000 in a call.
    #[schemars(length(min = 1, max = 2000))]
    edges: Vec<Edge>,
    /// Added by the host: the conversation of this call.
    #[schemars(extend("writeOnly" = true))]
    database_context: Option<DatabaseContext>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Output {
    #[serde(flatten)]
    done: Upserted,
    /// Size of the graph after the call.
    metadata: Totals,
}

impl BundledTool for AddNodes {
    type Input = NodesInput;
    type Output = Output;

    const NAME: &'static str = "add_nodes";
    const TITLE: &'static str = "Add nodes";
    const DESCRIPTION: &'static str = "Adds nodes to the knowledge graph of this conversation. An \
        existing node gets the new label and type, and new data is merged with old data. \
        If one node is invalid, none is added.";

    fn annotations(&self) -> ToolAnnotations {
        annotations()
    }

    async fn call(&self, input: NodesInput) -> Result<ToolOutput<Output>, ToolError> {
        let nodes = input.nodes.into_iter().map(Node::check);
        let nodes = validate("node", nodes)?;
        let conversation = conversation(input.database_context.as_ref());
        let (done, _, totals) = self.0.upsert(conversation, nodes, Vec::new()).await?;
        Ok(answer(done, totals, "node"))
    }
}

impl BundledTool for AddEdges {
    type Input = EdgesInput;
    type Output = Output;

    const NAME: &'static str = "add_edges";
    const TITLE: &'static str = "Add edges";
    const DESCRIPTION: &'static str = "Adds edges to the knowledge graph of this conversation: \
        relations between two nodes, with the source and the publications. \
        Both nodes must be in the graph; add_nodes adds them. In an existing edge, new data is \
        merged with old data. If one edge is invalid, none is added.";

    fn annotations(&self) -> ToolAnnotations {
        annotations()
    }

    async fn call(&self, input: EdgesInput) -> Result<ToolOutput<Output>, ToolError> {
        let edges = input.edges.into_iter().map(Edge::check);
        let edges = validate("edge", edges)?;
        let conversation = conversation(input.database_context.as_ref());
        let (_, done, totals) = self.0.upsert(conversation, Vec::new(), edges).await?;
        Ok(answer(done, totals, "edge"))
    }
}

fn annotations() -> ToolAnnotations {
    ToolAnnotations::new()
        .read_only(false)
        .destructive(false)
        .idempotent(true)
        .open_world(false)
}

fn validate<T>(
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
    Err(ToolError::Refused(format!(
        "Nothing was added. {}.",
        listed(&problems, MAX_PROBLEMS)
    )))
}

fn answer(done: Upserted, totals: Totals, noun: &str) -> ToolOutput<Output> {
    let text = format!(
        "Added {}, updated {}, {} unchanged. The graph has {} now.",
        quantity(done.added, noun),
        done.updated,
        done.unchanged,
        totals.describe()
    );
    ToolOutput {
        text,
        data: Output {
            done,
            metadata: totals,
        },
    }
}
