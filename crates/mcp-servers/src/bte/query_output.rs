//! Query output: a summary for models, and nodes and edges for programs and the knowledge graph.

use std::{collections::BTreeSet, fmt::Write as _};

use indexmap::{IndexMap, IndexSet};
use schemars::JsonSchema;
use serde::Serialize;

use super::{
    BteToolState,
    findings::{QueryFindings, QueryResult},
};
use crate::{
    graph::{
        database_context::{DatabaseContext, conversation_id},
        knowledge_graph::{NameCount, NodeRef, count_names, count_types, describe_counts},
        model::{Edge, Node},
        store::UpsertCounts,
    },
    text::{format_quantity, join_first_items},
    tool::{ToolError, ToolOutput},
};

/// Maximum number of nodes in the structured content of a query result. The tool `add_nodes` of the
/// server `graph` accepts this number in one call.
pub(super) const MAX_NODES: usize = 1000;
/// Maximum number of edges in the structured content of a query result. The tool `add_edges` of the
/// server `graph` accepts this number in one call.
pub(super) const MAX_EDGES: usize = 2000;
/// Maximum number of edge ids that one result lists.
const MAX_EDGE_IDS: usize = 100;
/// Maximum number of publications that the text for the model lists for one result.
const MAX_PUBLICATIONS: usize = 3;
/// Maximum number of knowledge sources that the text for the model lists for one result.
const MAX_SOURCES: usize = 4;

/// The structured content of a query result.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Output {
    /// Number of all results of the query.
    result_count: usize,
    /// Number of nodes with edges, including the node that the query names.
    node_count: usize,
    /// Number of edges, without those that `filteredEdgeCount` counts.
    edge_count: usize,
    /// Number of ignored edges, which state only that two names occur in one text.
    filtered_edge_count: usize,
    /// Numbers of nodes by type, the most frequent first.
    by_category: Vec<NameCount>,
    /// Numbers of edges by predicate, the most frequent first.
    by_predicate: Vec<NameCount>,
    /// The best results, at most `limit`.
    results: Vec<RankedResult>,
    /// The nodes, as arguments for `add_nodes` of the graph server.
    nodes: Vec<Node>,
    /// The edges, as arguments for `add_edges` of the graph server. `nodes` contains their ends.
    edges: Vec<Edge>,
    /// Whether `nodes` and `edges` contain all nodes and edges of the results.
    complete: bool,
    /// The result of adding the nodes and edges to the graph of the conversation.
    #[serde(skip_serializing_if = "Option::is_none")]
    added: Option<GraphAdditions>,
    /// Problems that did not prevent a result.
    warnings: Vec<String>,
    /// States that these are bundled sample data, because the service cannot be reached.
    #[serde(skip_serializing_if = "Option::is_none")]
    notice: Option<String>,
}

#[derive(Serialize, JsonSchema)]
struct GraphAdditions {
    /// Numbers of added, updated and unchanged nodes.
    nodes: UpsertCounts,
    /// Numbers of added, updated and unchanged edges.
    edges: UpsertCounts,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct RankedResult {
    /// Rank of the result; 1 is the best.
    rank: usize,
    /// Score that the service assigned to the result. Higher is better.
    #[serde(skip_serializing_if = "Option::is_none")]
    score: Option<f64>,
    /// The nodes of the result. The node that the query names comes first.
    nodes: Vec<NodeRef>,
    /// Number of edges of the result.
    edge_count: usize,
    /// The ids of the result's edges, at most 100.
    edges: Vec<String>,
    /// The knowledge sources of the result's edges.
    sources: Vec<String>,
    /// Number of publications of the result's edges.
    publication_count: usize,
}

/// Options for creating the output of a query.
pub(super) struct OutputOptions<'a> {
    /// Description of the query in the text for the model, such as
    /// `things related to NCBIGene:4353`.
    pub(super) description: String,
    /// Advice to the model that the output contains if the query has no results.
    pub(super) advice: &'static str,
    /// Maximum number of results that the output lists.
    pub(super) limit: usize,
    /// Whether to add the results to the graph. `None` uses the default of the server.
    pub(super) add_to_graph: Option<bool>,
    pub(super) context: Option<&'a DatabaseContext>,
}

/// Creates the output of a query tool. If `options.add_to_graph` is set, adds the nodes and edges
/// to the graph of the conversation first.
pub(super) async fn build_output(
    bte: &BteToolState,
    mut findings: QueryFindings,
    options: OutputOptions<'_>,
) -> Result<ToolOutput<Output>, ToolError> {
    let mut added = None;
    if options.add_to_graph.unwrap_or(bte.adds_to_graph) && !findings.graph.edges.is_empty() {
        match add_results_to_graph(bte, &findings, options.context).await {
            Ok(done) => added = Some(done),
            // If the graph store refuses the nodes and edges, the results are returned with a
            // warning.
            Err(ToolError::Refused(why)) => findings
                .warnings
                .push(format!("Nothing was added to the graph. {why}")),
            Err(error) => return Err(error),
        }
    }
    if findings.unreadable > 0 {
        findings.warnings.push(format!(
            "{} of the response had an invalid form and were ignored.",
            format_quantity(findings.unreadable, "part")
        ));
    }
    let related = findings.related_nodes();
    let labels = findings.graph.edges.values().map(|it| it.label.as_str());
    let by_predicate = count_names(labels);
    let results = findings.results.values().take(options.limit).enumerate();
    let results: Vec<RankedResult> = results
        .map(|(index, result)| to_ranked_result(&findings, index + 1, result))
        .collect();
    let (nodes, edges) = findings.best_nodes_and_edges(MAX_NODES, MAX_EDGES);
    let mut data = Output {
        result_count: findings.results.len(),
        node_count: related.len(),
        edge_count: findings.graph.edges.len(),
        filtered_edge_count: findings.co_occurrence,
        by_category: count_types(related),
        by_predicate,
        results,
        complete: edges.len() == findings.graph.edges.len(),
        nodes,
        edges,
        added,
        warnings: Vec::new(),
        notice: findings.notice.clone(),
    };
    let text = summarize_results(&findings, &data, &options);
    let mut text = prepend_notice(data.notice.as_deref(), text);
    data.warnings = findings.warnings;
    for warning in &data.warnings {
        let _ = write!(text, "\nNote: {warning}");
    }
    Ok(ToolOutput { text, data })
}

/// Returns the text with the notice as its first line.
pub(super) fn prepend_notice(notice: Option<&str>, text: String) -> String {
    match notice {
        Some(notice) => format!("{notice}\n{text}"),
        None => text,
    }
}

async fn add_results_to_graph(
    bte: &BteToolState,
    findings: &QueryFindings,
    context: Option<&DatabaseContext>,
) -> Result<GraphAdditions, ToolError> {
    let store = bte.graph.as_ref().ok_or_else(|| {
        ToolError::Refused("This server was started without a graph database.".to_owned())
    })?;
    let (nodes, edges) = findings.best_nodes_and_edges(usize::MAX, usize::MAX);
    let (nodes, edges, _) = store
        .upsert_nodes_and_edges(conversation_id(context), nodes, edges)
        .await?;
    Ok(GraphAdditions { nodes, edges })
}

fn to_ranked_result(findings: &QueryFindings, rank: usize, result: &QueryResult) -> RankedResult {
    let sources = findings.supporting_edges(result);
    let sources: BTreeSet<&String> = sources
        .filter_map(|edge| edge.data.primary_source.as_ref())
        .collect();
    let nodes = result.nodes.iter().map(|id| findings.graph.node_ref(id));
    RankedResult {
        rank,
        score: result.score.filter(|score| score.is_finite()),
        nodes: nodes.collect(),
        edge_count: result.edges.len(),
        edges: result.edges.iter().take(MAX_EDGE_IDS).cloned().collect(),
        sources: sources.into_iter().cloned().collect(),
        publication_count: findings.result_publications(result).len(),
    }
}

fn summarize_results(
    findings: &QueryFindings,
    data: &Output,
    options: &OutputOptions<'_>,
) -> String {
    let ignored = match data.filtered_edge_count {
        0 => String::new(),
        count => format!(
            "\nIgnored, because it states only that two names occur in one text: {}.",
            format_quantity(count, "edge")
        ),
    };
    if data.edge_count == 0 {
        return format!(
            "No results: {}.{ignored}\n{}",
            options.description, options.advice
        );
    }
    let mut text = format!(
        "Found {} for {}: {} and {}.\nNodes by type: {}.\nEdges by predicate: {}.{ignored}",
        format_quantity(data.result_count, "result"),
        options.description,
        format_quantity(data.node_count, "node"),
        format_quantity(data.edge_count, "edge"),
        describe_counts(&data.by_category, 15),
        describe_counts(&data.by_predicate, 15),
    );
    if data.results.len() < data.result_count {
        let _ = write!(text, "\nThe best {}:", data.results.len());
    } else {
        text.push_str("\nThe results, the best first:");
    }
    for (ranked, result) in data.results.iter().zip(findings.results.values()) {
        let described = format_result(findings, ranked, result);
        let _ = write!(text, "\n{}. {described}", ranked.rank);
    }
    if !data.complete {
        let _ = write!(
            text,
            "\nThe structured content contains {} and {} of the best results.",
            format_quantity(data.nodes.len(), "node"),
            format_quantity(data.edges.len(), "edge"),
        );
    }
    if let Some(GraphAdditions { nodes, edges }) = &data.added {
        let _ = write!(
            text,
            "\nAdded to the graph of this conversation: {} and {}. Existing: {} and {}.",
            format_quantity(nodes.added, "node"),
            format_quantity(edges.added, "edge"),
            format_quantity(nodes.updated + nodes.unchanged, "node"),
            format_quantity(edges.updated + edges.unchanged, "edge"),
        );
    }
    text
}

/// Formats a result as a line, such as `MPO (NCBIGene:4353) –affects→ CAT (NCBIGene:847) [Gene];
/// infores:biogrid; score 0.900`.
fn format_result(findings: &QueryFindings, ranked: &RankedResult, result: &QueryResult) -> String {
    let mut labels: IndexMap<(&str, &str), IndexSet<&str>> = IndexMap::new();
    for edge in findings.supporting_edges(result) {
        let ends = (edge.source.as_str(), edge.target.as_str());
        labels.entry(ends).or_default().insert(&edge.label);
    }
    // The first node is the one that the caller named in the query, so its type is omitted.
    let known = ranked.nodes.first().map(|node| node.id.as_str());
    let end = |id: &str| {
        let node = findings.graph.node_ref(id);
        if Some(id) == known {
            node.name_and_id()
        } else {
            node.name_id_and_type()
        }
    };
    let statements = labels.into_iter().map(|((source, target), labels)| {
        let labels: Vec<&str> = labels.into_iter().collect();
        format!("{} –{}→ {}", end(source), labels.join(", "), end(target))
    });
    let mut text = statements.collect::<Vec<_>>().join(" | ");
    let publications: Vec<&str> = findings.result_publications(result).into_iter().collect();
    for evidence in [
        join_first_items(&ranked.sources, MAX_SOURCES),
        join_first_items(&publications, MAX_PUBLICATIONS),
    ] {
        if !evidence.is_empty() {
            let _ = write!(text, "; {evidence}");
        }
    }
    if let Some(score) = ranked.score {
        let _ = write!(text, "; score {score:.3}");
    }
    text
}
