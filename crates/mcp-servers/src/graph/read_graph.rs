//! The tool `get_graph_state`, which lists nodes and edges in pages.

use std::fmt::Write as _;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    database_context::{DatabaseContext, conversation_id},
    knowledge_graph::{
        GraphSize, KnowledgeGraph, NameCount, NodeRef, count_names, count_types, describe_counts,
    },
    model::{Edge, EdgeData, Node, NodeData, strip_biolink},
    store::GraphStore,
};
use crate::{
    text::{format_quantity, join_first_items},
    tool::{BundledTool, ToolOutput, ToolResult, default_number},
};

/// Maximum number of node types in the structured content of a result. The same maximum applies to
/// edge labels.
const MAX_TYPES: usize = 50;
/// Maximum number of types or labels that one line of the result text lists.
const MAX_SHOWN_TYPES: usize = 20;
/// Maximum number of publications that one line of the result text lists.
const MAX_SHOWN_PUBLICATIONS: usize = 5;

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Input {
    /// The part of the graph to read. The default is the whole graph.
    #[serde(default)]
    filter: GraphFilter,
    /// Maximum number of nodes, and of edges, to list.
    #[serde(default = "default_number::<100>")]
    #[schemars(range(min = 1, max = 500))]
    limit: usize,
    /// Number of nodes, and of edges, to skip: `nextOffset` of the previous result.
    #[serde(default)]
    #[schemars(range(min = 0, max = 1_000_000))]
    offset: usize,
    /// Lists also the ids of the edges and further data: synonyms, sources, publications.
    #[serde(default)]
    details: bool,
    /// Added by the host, not by the model: the conversation to which this call belongs.
    #[schemars(extend("writeOnly" = true))]
    database_context: Option<DatabaseContext>,
}

#[derive(Default, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct GraphFilter {
    /// Lists only nodes of this type, such as `Gene`.
    node_type: Option<String>,
    /// Lists only edges with this label, such as `affects`.
    edge_type: Option<String>,
    /// Lists only nodes with these ids, and the edges between them.
    #[schemars(length(min = 1, max = 500))]
    node_ids: Option<Vec<String>>,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Output {
    /// The nodes of this page, in the order of their addition.
    nodes: Vec<Node>,
    /// The edges of this page, in the order of their addition.
    edges: Vec<Edge>,
    /// Number of nodes that match the filter, on all pages.
    matching_nodes: usize,
    /// Number of edges that match the filter, on all pages.
    matching_edges: usize,
    /// Size of the whole graph.
    metadata: GraphSize,
    /// Numbers of all nodes by type, the most frequent first.
    node_types: Vec<NameCount>,
    /// Numbers of all edges by label, the most frequent first.
    edge_types: Vec<NameCount>,
    /// Offset of the next page. Missing on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_offset: Option<usize>,
}

pub(super) fn graph_state_tool(store: GraphStore) -> BundledTool {
    BundledTool::new(
        "get_graph_state",
        "State of the graph",
        "Returns the knowledge graph of this conversation: its nodes and edges with their \
         numbers and types. Can be filtered by the type of nodes, the label of edges and by \
         ids. Long graphs have several pages. Call it before you change the graph or describe \
         it.",
        store,
        run_tool,
    )
}

async fn run_tool(store: GraphStore, input: Input) -> ToolResult<Output> {
    let conversation = conversation_id(input.database_context.as_ref());
    let graph = store.load_graph(conversation).await?;
    let data = build_graph_page(&graph, &input);
    let text = describe_graph_page(&graph, &data, &input);
    Ok(ToolOutput { text, data })
}

impl GraphFilter {
    fn includes_node(&self, id: &str) -> bool {
        let mut ids = self.node_ids.iter().flatten();
        self.node_ids.is_none() || ids.any(|it| it == id)
    }

    fn matches_node(&self, node: &Node) -> bool {
        let kind = node.kind.as_deref();
        self.includes_node(&node.id)
            && self.node_type.as_deref().is_none_or(|wanted| {
                kind.is_some_and(|kind| kind.eq_ignore_ascii_case(strip_biolink(wanted)))
            })
    }

    fn matches_edge(&self, edge: &Edge) -> bool {
        let label = self.edge_type.as_deref();
        self.includes_node(&edge.source)
            && self.includes_node(&edge.target)
            && label.is_none_or(|it| edge.label.eq_ignore_ascii_case(strip_biolink(it)))
    }
}

fn build_graph_page(graph: &KnowledgeGraph, input: &Input) -> Output {
    let nodes = graph.nodes.values();
    let nodes: Vec<&Node> = nodes.filter(|it| input.filter.matches_node(it)).collect();
    let edges = graph.edges.values();
    let edges: Vec<&Edge> = edges.filter(|it| input.filter.matches_edge(it)).collect();
    let mut listed_nodes = clone_page(&nodes, input);
    let mut listed_edges = clone_page(&edges, input);
    if !input.details {
        for node in &mut listed_nodes {
            node.data = NodeData::default();
        }
        for edge in &mut listed_edges {
            edge.data = EdgeData::default();
        }
    }
    let mut node_types = count_types(graph.nodes.values());
    node_types.truncate(MAX_TYPES);
    let mut edge_types = count_names(graph.edges.values().map(|edge| edge.label.as_str()));
    edge_types.truncate(MAX_TYPES);
    let end = input.offset + input.limit;
    Output {
        nodes: listed_nodes,
        edges: listed_edges,
        matching_nodes: nodes.len(),
        matching_edges: edges.len(),
        metadata: graph.count_totals(),
        node_types,
        edge_types,
        next_offset: (end < nodes.len().max(edges.len())).then_some(end),
    }
}

fn clone_page<T: Clone>(matching: &[&T], input: &Input) -> Vec<T> {
    let page = matching.iter().skip(input.offset).take(input.limit);
    page.copied().cloned().collect()
}

fn describe_graph_page(graph: &KnowledgeGraph, page: &Output, input: &Input) -> String {
    if page.metadata.node_count == 0 {
        return "The graph is empty: it has no nodes and no edges.".to_owned();
    }
    let mut text = format!(
        "The graph has {}.\nTypes of nodes: {}.",
        page.metadata.describe_size(),
        describe_counts(&page.node_types, MAX_SHOWN_TYPES)
    );
    if page.metadata.edge_count > 0 {
        let labels = describe_counts(&page.edge_types, MAX_SHOWN_TYPES);
        let _ = write!(text, "\nLabels of edges: {labels}.");
    }
    if input.filter != GraphFilter::default() {
        let _ = write!(
            text,
            "\nThe filter matches {} and {}.",
            format_quantity(page.matching_nodes, "node"),
            format_quantity(page.matching_edges, "edge")
        );
    }
    if !page.nodes.is_empty() {
        text.push_str("\nNodes:");
    }
    for node in &page.nodes {
        let _ = write!(text, "\n- {}", NodeRef::from(node).name_id_and_type());
    }
    if !page.edges.is_empty() {
        text.push_str("\nEdges:");
    }
    for edge in &page.edges {
        let (source, target) = (graph.node_ref(&edge.source), graph.node_ref(&edge.target));
        let (source, target) = (source.name_and_id(), target.name_and_id());
        let _ = write!(text, "\n- {source} –{}→ {target}", edge.label);
        if let Some(id) = edge.id.as_deref().filter(|_| input.details) {
            let _ = write!(text, "; id {id}");
        }
        if let Some(source) = &edge.data.primary_source {
            let _ = write!(text, "; {source}");
        }
        if !edge.data.publications.is_empty() {
            let publications = join_first_items(&edge.data.publications, MAX_SHOWN_PUBLICATIONS);
            let _ = write!(text, "; {publications}");
        }
    }
    if page.nodes.is_empty() && page.edges.is_empty() && input.offset > 0 {
        let _ = write!(text, "\nNo more entries after offset {}.", input.offset);
    }
    if let Some(next) = page.next_offset {
        let _ = write!(
            text,
            "\nMore entries follow: call again with offset {next}."
        );
    }
    text
}
