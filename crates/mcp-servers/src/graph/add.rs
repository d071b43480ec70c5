//! `add_nodes` and `add_edges`.

use rmcp::model::ToolAnnotations;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    context::{DatabaseContext, conversation},
    many,
    model::{Edge, Node},
    store::{GraphStore, Totals, Upserted},
};
use crate::tool::{Answer, BundledTool, ToolError};

/// Faults that are told at once; the rest are counted.
const FAULTS: usize = 5;

pub(super) struct AddNodes {
    pub(super) store: GraphStore,
}

pub(super) struct AddEdges {
    pub(super) store: GraphStore,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct NodesInput {
    /// The nodes, at most 1000 in a call.
    #[schemars(length(min = 1, max = 1000))]
    nodes: Vec<Node>,
    /// Added by the host: which conversation this is.
    #[schemars(extend("writeOnly" = true))]
    database_context: Option<DatabaseContext>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct EdgesInput {
    /// The edges, at most 2000 in a call.
    #[schemars(length(min = 1, max = 2000))]
    edges: Vec<Edge>,
    /// Added by the host: which conversation this is.
    #[schemars(extend("writeOnly" = true))]
    database_context: Option<DatabaseContext>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Output {
    #[serde(flatten)]
    done: Upserted,
    /// What there is in the graph now.
    metadata: Totals,
}

impl BundledTool for AddNodes {
    type Input = NodesInput;
    type Output = Output;

    const NAME: &'static str = "add_nodes";
    const TITLE: &'static str = "Add nodes";
    const DESCRIPTION: &'static str = "Adds nodes to the knowledge graph of this conversation. A \
        node that is there already gets the new label and type, and the new data beside the old. \
        All nodes are added or, when one is wrong, none.";

    fn annotations(&self) -> ToolAnnotations {
        annotations()
    }

    async fn call(&self, input: NodesInput) -> Result<Answer<Output>, ToolError> {
        let nodes = input.nodes.into_iter().map(Node::check);
        let nodes = checked("node", nodes)?;
        let conversation = conversation(input.database_context.as_ref());
        let (done, _, totals) = self.store.upsert(conversation, nodes, Vec::new()).await?;
        Ok(answer(done, totals, "node"))
    }
}

impl BundledTool for AddEdges {
    type Input = EdgesInput;
    type Output = Output;

    const NAME: &'static str = "add_edges";
    const TITLE: &'static str = "Add edges";
    const DESCRIPTION: &'static str = "Adds edges to the knowledge graph of this conversation: \
        which node is related to which other one and how, with the source and the publications. \
        Both nodes must be in the graph; add_nodes adds them. An edge that is there already gets \
        the new data beside the old. All edges are added or, when one is wrong, none.";

    fn annotations(&self) -> ToolAnnotations {
        annotations()
    }

    async fn call(&self, input: EdgesInput) -> Result<Answer<Output>, ToolError> {
        let edges = input.edges.into_iter().map(Edge::check);
        let edges = checked("edge", edges)?;
        let conversation = conversation(input.database_context.as_ref());
        let (_, done, totals) = self.store.upsert(conversation, Vec::new(), edges).await?;
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

fn checked<T>(
    one: &str,
    items: impl Iterator<Item = Result<T, String>>,
) -> Result<Vec<T>, ToolError> {
    let mut good = Vec::new();
    let mut faults = Vec::new();
    for (index, item) in items.enumerate() {
        match item {
            Ok(item) => good.push(item),
            Err(fault) => faults.push(format!("{one} {index}: {fault}")),
        }
    }
    if faults.is_empty() {
        return Ok(good);
    }
    let more = match faults.len().saturating_sub(FAULTS) {
        0 => String::new(),
        more => format!("; and {more} more"),
    };
    faults.truncate(FAULTS);
    Err(ToolError::Refused(format!(
        "Nothing was added. {}{more}.",
        faults.join("; ")
    )))
}

fn answer(done: Upserted, totals: Totals, one: &str) -> Answer<Output> {
    let text = format!(
        "Added {}, updated {}, left {} as they were. The graph has {} now.",
        many(done.added, one),
        done.updated,
        done.unchanged,
        totals.told()
    );
    Answer {
        text,
        data: Output {
            done,
            metadata: totals,
        },
    }
}
