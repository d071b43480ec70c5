//! `get_graph_state`.

use std::fmt::Write as _;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    NodeRef,
    context::{DatabaseContext, conversation},
    model::{Edge, EdgeData, Node, NodeData, without_prefix},
    store::{Filter, GraphStore, Page, Totals},
};
use crate::tool::{BundledTool, ToolError, ToolOutput};

pub(super) struct GetGraphState {
    pub(super) store: GraphStore,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Input {
    /// Which part of the graph; without it, all of it.
    #[serde(default)]
    filter: FilterInput,
    /// How many nodes, and how many edges, to list at most.
    #[serde(default = "default_limit")]
    #[schemars(range(min = 1, max = 500))]
    limit: i64,
    /// How many nodes, and how many edges, to pass over: `nextOffset` of the answer before.
    #[serde(default)]
    #[schemars(range(min = 0, max = 1_000_000))]
    offset: i64,
    /// Lists also the ids of the edges, and what else is known: synonyms, sources, publications.
    #[serde(default)]
    details: bool,
    /// Added by the host: the conversation of this call.
    #[schemars(extend("writeOnly" = true))]
    database_context: Option<DatabaseContext>,
}

fn default_limit() -> i64 {
    100
}

#[derive(Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct FilterInput {
    /// Only nodes of this type, such as `Gene`.
    node_type: Option<String>,
    /// Only edges with this label, such as `affects`.
    edge_type: Option<String>,
    /// Only these nodes, and the edges between them.
    #[schemars(length(min = 1, max = 500))]
    node_ids: Option<Vec<String>>,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Output {
    /// The nodes of this page, in the order in which they were added.
    nodes: Vec<Node>,
    /// The edges of this page, in the order in which they were added.
    edges: Vec<Edge>,
    /// How many nodes pass the filter, on this page or not.
    matching_nodes: i64,
    /// How many edges pass the filter, on this page or not.
    matching_edges: i64,
    /// What there is in the whole graph.
    metadata: Totals,
    /// The types of all nodes with how many there are of each.
    node_types: Vec<Kind>,
    /// The labels of all edges with how many there are of each.
    edge_types: Vec<Kind>,
    /// Where the next page begins; missing on the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_offset: Option<i64>,
}

#[derive(Serialize, JsonSchema)]
struct Kind {
    /// The type or label.
    name: String,
    /// How many there are.
    count: i64,
}

impl BundledTool for GetGraphState {
    type Input = Input;
    type Output = Output;

    const NAME: &'static str = "get_graph_state";
    const TITLE: &'static str = "State of the graph";
    const DESCRIPTION: &'static str = "Gives the knowledge graph of this conversation: its nodes \
        and edges, how many there are, and of which types. Can be filtered by the type of nodes, \
        the label of edges and by ids. Long graphs come in pages. Call it before you change the \
        graph or say what is in it.";

    async fn call(&self, input: Input) -> Result<ToolOutput<Output>, ToolError> {
        let filter = Filter {
            node_type: input
                .filter
                .node_type
                .as_deref()
                .map(|it| without_prefix(it).to_owned()),
            edge_label: input
                .filter
                .edge_type
                .as_deref()
                .map(|it| without_prefix(it).to_owned()),
            node_ids: input.filter.node_ids,
            limit: input.limit,
            offset: input.offset,
        };
        let conversation = conversation(input.database_context.as_ref());
        let mut page = self.store.page(conversation, &filter).await?;
        if !input.details {
            page.nodes
                .iter_mut()
                .for_each(|node| node.data = NodeData::default());
            page.edges
                .iter_mut()
                .for_each(|edge| edge.data = EdgeData::default());
        }
        let end = filter.offset.saturating_add(filter.limit);
        let more = end < page.matching_nodes.max(page.matching_edges);
        let text = describe(&page, &filter, input.details, more.then_some(end));
        let kinds = |kinds: Vec<(String, i64)>| {
            let kinds = kinds.into_iter();
            kinds.map(|(name, count)| Kind { name, count }).collect()
        };
        Ok(ToolOutput {
            text,
            data: Output {
                nodes: page.nodes,
                edges: page.edges,
                matching_nodes: page.matching_nodes,
                matching_edges: page.matching_edges,
                metadata: page.totals,
                node_types: kinds(page.node_types),
                edge_types: kinds(page.edge_types),
                next_offset: more.then_some(end),
            },
        })
    }
}

fn describe(page: &Page, filter: &Filter, details: bool, next: Option<i64>) -> String {
    if page.totals.node_count == 0 {
        return "The graph is empty: it has no nodes and no edges.".to_owned();
    }
    let mut text = format!("The graph has {}.", page.totals.describe());
    // Writing to a string cannot fail.
    let _ = write!(text, "\nTypes of nodes: {}.", kinds(&page.node_types));
    if page.totals.edge_count > 0 {
        let _ = write!(text, "\nLabels of edges: {}.", kinds(&page.edge_types));
    }
    let filtered =
        filter.node_type.is_some() || filter.edge_label.is_some() || filter.node_ids.is_some();
    if filtered {
        let _ = write!(
            text,
            "\nThe filter lets through {} and {}.",
            of(page.matching_nodes, "node"),
            of(page.matching_edges, "edge")
        );
    }
    if !page.nodes.is_empty() {
        text.push_str("\nNodes:");
        for node in &page.nodes {
            let _ = write!(text, "\n- {}", NodeRef::from(node).named_with_type());
        }
    }
    if !page.edges.is_empty() {
        text.push_str("\nEdges:");
        for edge in &page.edges {
            let end = |id: &String| {
                let label = page.ends.get(id).cloned().flatten();
                NodeRef {
                    id: id.clone(),
                    label,
                    kind: None,
                }
                .named()
            };
            let (source, target) = (end(&edge.source), end(&edge.target));
            let _ = write!(text, "\n- {source} –{}→ {target}", edge.label);
            if let Some(id) = edge.id.as_deref().filter(|_| details) {
                let _ = write!(text, "; id {id}");
            }
            text.push_str(&evidence(&edge.data));
        }
    }
    if page.nodes.is_empty() && page.edges.is_empty() && filter.offset > 0 {
        let _ = write!(text, "\nThere is nothing from offset {} on.", filter.offset);
    }
    if let Some(next) = next {
        let _ = write!(text, "\nThere is more: call again with offset {next}.");
    }
    text
}

fn evidence(data: &EdgeData) -> String {
    let mut text = String::new();
    if let Some(source) = &data.primary_source {
        let _ = write!(text, "; {source}");
    }
    if !data.publications.is_empty() {
        let shown: Vec<&str> = data
            .publications
            .iter()
            .take(5)
            .map(String::as_str)
            .collect();
        let _ = write!(text, "; {}", shown.join(", "));
        if data.publications.len() > shown.len() {
            let _ = write!(text, " and {} more", data.publications.len() - shown.len());
        }
    }
    text
}

fn kinds(kinds: &[(String, i64)]) -> String {
    let kinds: Vec<String> = kinds
        .iter()
        .take(20)
        .map(|(name, count)| format!("{name} {count}"))
        .collect();
    kinds.join(", ")
}

fn of(count: i64, one: &str) -> String {
    if count == 1 {
        format!("1 {one}")
    } else {
        format!("{count} {one}s")
    }
}
