//! The tool `analyze_node_relationships`, which counts the edges of a node.

use std::{cmp::Reverse, collections::BTreeSet, fmt::Write as _};

use indexmap::{IndexMap, IndexSet};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    database_context::{DatabaseContext, conversation_id},
    knowledge_graph::{
        KnowledgeGraph, NameCount, NodeRef, count_names, count_types, describe_counts,
    },
    model::{Edge, Node},
    store::GraphStore,
};
use crate::{
    text::format_quantity,
    tool::{BundledTool, ToolOutput, ToolResult, default_number},
};

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Input {
    /// The id of the node to analyze.
    #[schemars(length(min = 1, max = 500))]
    node_id: String,
    /// Maximum number of neighbours to list.
    #[serde(default = "default_number::<10>")]
    #[schemars(range(min = 1, max = 100))]
    limit: usize,
    /// Added by the host, not by the model: the conversation to which this call belongs.
    #[schemars(extend("writeOnly" = true))]
    database_context: Option<DatabaseContext>,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Output {
    /// The analyzed node.
    node: NodeRef,
    /// Number of all edges of the node.
    degree: usize,
    /// Number of edges to the node. An edge from the node to itself counts as incoming and
    /// outgoing.
    incoming: usize,
    /// Number of edges from the node.
    outgoing: usize,
    /// Number of nodes that share an edge with the node.
    neighbour_count: usize,
    /// Numbers of edges by label, the most frequent first.
    by_predicate: Vec<PredicateCounts>,
    /// Numbers of neighbours by type, the most frequent first.
    by_type: Vec<NameCount>,
    /// Numbers of edges by knowledge source, the most frequent first.
    by_source: Vec<NameCount>,
    /// The neighbours, sorted by number of edges and then by number of publications, largest first.
    strongest: Vec<RankedNeighbour>,
}

#[derive(Serialize, JsonSchema)]
struct PredicateCounts {
    /// The label of the counted edges.
    label: String,
    /// Number of edges with this label to the node.
    incoming: usize,
    /// Number of edges with this label from the node.
    outgoing: usize,
}

#[derive(Serialize, JsonSchema)]
struct RankedNeighbour {
    #[serde(flatten)]
    node: NodeRef,
    /// Number of edges between the neighbour and the node.
    edges: usize,
    /// Number of publications of the edges between the neighbour and the node.
    publications: usize,
    /// The labels of the edges between the neighbour and the node.
    labels: Vec<String>,
}

pub(super) fn analyze_node_tool(store: GraphStore) -> BundledTool {
    BundledTool::new(
        "analyze_node_relationships",
        "Analyze a node's relationships",
        "Analyzes the relations of a node of the knowledge graph of this conversation: numbers \
         of edges by predicate, by type of neighbour and by source, and the most strongly \
         related neighbours.",
        store,
        run_tool,
    )
}

async fn run_tool(store: GraphStore, input: Input) -> ToolResult<Output> {
    let conversation = conversation_id(input.database_context.as_ref());
    let graph = store.load_graph(conversation).await?;
    let data = analyze(&graph, graph.find_node(&input.node_id)?, input.limit);
    let text = describe_analysis(&data);
    Ok(ToolOutput { text, data })
}

fn analyze(graph: &KnowledgeGraph, node: &Node, limit: usize) -> Output {
    let incoming = |edge: &Edge| edge.target == node.id;
    let outgoing = |edge: &Edge| edge.source == node.id;
    let edges = graph.edges.values();
    let edges: Vec<&Edge> = edges
        .filter(|edge| incoming(edge) || outgoing(edge))
        .collect();
    let by_label = count_names(edges.iter().map(|edge| edge.label.as_str()));
    let by_predicate = by_label.into_iter().map(|NameCount { name, .. }| {
        let of_label = || edges.iter().filter(|edge| edge.label == name);
        PredicateCounts {
            incoming: of_label().filter(|edge| incoming(edge)).count(),
            outgoing: of_label().filter(|edge| outgoing(edge)).count(),
            label: name,
        }
    });
    let sources = edges.iter().map(|edge| edge.data.primary_source.as_deref());
    let sources = sources.map(|source| source.unwrap_or("unknown"));
    let neighbours = rank_neighbours(graph, node, &edges);
    Output {
        node: NodeRef::from(node),
        degree: edges.len(),
        incoming: edges.iter().filter(|edge| incoming(edge)).count(),
        outgoing: edges.iter().filter(|edge| outgoing(edge)).count(),
        neighbour_count: neighbours.len(),
        by_predicate: by_predicate.collect(),
        by_type: count_types(neighbours.iter().map(|(other, _)| *other)),
        by_source: count_names(sources),
        strongest: neighbours
            .into_iter()
            .take(limit)
            .map(|(_, neighbour)| neighbour)
            .collect(),
    }
}

/// Returns the neighbours of a node, sorted by number of edges to or from the node and then by
/// number of publications, largest first. `edges` are the edges of the node.
fn rank_neighbours<'a>(
    graph: &'a KnowledgeGraph,
    node: &Node,
    edges: &[&Edge],
) -> Vec<(&'a Node, RankedNeighbour)> {
    let mut by_id: IndexMap<&str, Vec<&Edge>> = IndexMap::new();
    for edge in edges.iter().filter(|edge| edge.source != edge.target) {
        let other = if edge.source == node.id {
            &edge.target
        } else {
            &edge.source
        };
        by_id.entry(other).or_default().push(edge);
    }
    let ranked = by_id.into_iter().filter_map(|(id, edges)| {
        let labels: IndexSet<&str> = edges.iter().map(|edge| edge.label.as_str()).collect();
        let publications = edges.iter().flat_map(|edge| &edge.data.publications);
        let neighbour = RankedNeighbour {
            node: graph.node_ref(id),
            edges: edges.len(),
            publications: publications.collect::<BTreeSet<_>>().len(),
            labels: labels.into_iter().map(str::to_owned).collect(),
        };
        Some((graph.nodes.get(id)?, neighbour))
    });
    let mut ranked: Vec<_> = ranked.collect();
    ranked.sort_by_key(|(_, it)| Reverse((it.edges, it.publications)));
    ranked
}

fn describe_analysis(data: &Output) -> String {
    let mut text = format!(
        "{} has {}: {} incoming, {} outgoing, with {}.",
        data.node.name_id_and_type(),
        format_quantity(data.degree, "edge"),
        data.incoming,
        data.outgoing,
        format_quantity(data.neighbour_count, "neighbour")
    );
    if data.degree == 0 {
        return text;
    }
    let predicates: Vec<String> = data
        .by_predicate
        .iter()
        .take(20)
        .map(|it| format!("{} ({} in, {} out)", it.label, it.incoming, it.outgoing))
        .collect();
    let _ = write!(text, "\nBy predicate: {}.", predicates.join(", "));
    let types = describe_counts(&data.by_type, 20);
    let sources = describe_counts(&data.by_source, 20);
    let _ = write!(
        text,
        "\nNeighbours by type: {types}.\nEdges by source: {sources}."
    );
    if !data.strongest.is_empty() {
        text.push_str("\nStrongest neighbours:");
    }
    for neighbour in &data.strongest {
        let _ = write!(
            text,
            "\n- {}: {} ({})",
            neighbour.node.name_id_and_type(),
            format_quantity(neighbour.edges, "edge"),
            neighbour.labels.join(", ")
        );
        if neighbour.publications > 0 {
            let publications = format_quantity(neighbour.publications, "publication");
            let _ = write!(text, ", {publications}");
        }
    }
    text
}
