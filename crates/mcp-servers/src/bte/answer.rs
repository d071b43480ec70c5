//! What a query gives back: a summary for models, nodes and edges for programs and for the graph.

use std::{collections::BTreeSet, fmt::Write as _};

use schemars::JsonSchema;
use serde::Serialize;

use super::{
    Bte,
    findings::{Findings, Found},
};
use crate::{
    graph::{
        Count, NodeRef,
        context::{DatabaseContext, conversation},
        counted, listed, many,
        model::{Edge, Node},
        store::Upserted,
    },
    tool::{Answer, ToolError},
};

/// Nodes in the structured content; as many as `add_nodes` takes at once.
pub(super) const MAX_NODES: usize = 1000;
/// Edges in the structured content; as many as `add_edges` takes at once.
pub(super) const MAX_EDGES: usize = 2000;
/// Ids of edges that a result names.
const IDS: usize = 100;
/// Publications that a line of the summary names.
const PUBLICATIONS: usize = 3;
/// Sources that a line of the summary names.
const SOURCES: usize = 4;

/// What was found.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Output {
    /// How many results there are, listed or not.
    result_count: usize,
    /// How many nodes were found, the one that was asked about included.
    node_count: usize,
    /// How many edges were found.
    edge_count: usize,
    /// How many edges were left out because they only say that two names occur together in texts.
    filtered_edge_count: usize,
    /// The nodes by type, the most frequent first.
    by_category: Vec<Count>,
    /// The edges by predicate, the most frequent first.
    by_predicate: Vec<Count>,
    /// The best results.
    results: Vec<Ranked>,
    /// The nodes, in the form that `add_nodes` of the graph server takes.
    nodes: Vec<Node>,
    /// The edges, in the form that `add_edges` of the graph server takes; their ends are among the
    /// nodes.
    edges: Vec<Edge>,
    /// Whether `nodes` and `edges` have everything that was found.
    complete: bool,
    /// What became of the nodes and edges in the graph of the conversation, if they were to be added.
    #[serde(skip_serializing_if = "Option::is_none")]
    added: Option<Added>,
    /// What went wrong without spoiling all.
    warnings: Vec<String>,
}

#[derive(Serialize, JsonSchema)]
struct Added {
    /// What became of the nodes.
    nodes: Upserted,
    /// What became of the edges.
    edges: Upserted,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Ranked {
    /// 1 for the best one.
    rank: usize,
    /// How good the service thinks it is; higher is better.
    #[serde(skip_serializing_if = "Option::is_none")]
    score: Option<f64>,
    /// The nodes, in the order of the question.
    nodes: Vec<NodeRef>,
    /// How many edges support it.
    edge_count: usize,
    /// The ids of these edges, at most 100.
    edges: Vec<String>,
    /// Who states these edges.
    sources: Vec<String>,
    /// How many publications support them.
    publication_count: usize,
}

/// What is to be done with the findings.
pub(super) struct Wish<'a> {
    /// What was asked, for the summary: `things related to NCBIGene:4353`.
    pub(super) about: String,
    /// What helps if nothing was found.
    pub(super) advice: &'static str,
    /// How many results are listed.
    pub(super) limit: usize,
    pub(super) add: bool,
    pub(super) context: Option<&'a DatabaseContext>,
}

/// Adds the findings to the graph if that is wished, and tells of them.
pub(super) async fn answer(
    bte: &Bte,
    mut findings: Findings,
    wish: Wish<'_>,
) -> Result<Answer<Output>, ToolError> {
    let mut added = None;
    if wish.add && !findings.edges.is_empty() {
        match add(bte, &findings, wish.context).await {
            Ok(done) => added = Some(done),
            // What was found is worth having all the same.
            Err(ToolError::Refused(why)) => findings
                .warnings
                .push(format!("Nothing was added to the graph. {why}")),
            Err(error) => return Err(error),
        }
    }
    if findings.unreadable > 0 {
        findings.warnings.push(format!(
            "{} of the answer could not be read and were left out.",
            many(findings.unreadable, "part")
        ));
    }
    let related = findings.related_nodes();
    let kinds = related
        .iter()
        .map(|node| node.kind.as_deref().unwrap_or("other"));
    let by_category = counted(kinds);
    let by_predicate = counted(findings.edges.iter().map(|edge| edge.label.as_str()));
    let results = findings.results.iter().take(wish.limit).enumerate();
    let results: Vec<Ranked> = results
        .map(|(index, found)| ranked(&findings, index + 1, found))
        .collect();
    let (nodes, edges) = findings.select(MAX_NODES, MAX_EDGES);
    let mut data = Output {
        result_count: findings.results.len(),
        node_count: related.len(),
        edge_count: findings.edges.len(),
        filtered_edge_count: findings.co_occurrence,
        by_category,
        by_predicate,
        results,
        complete: edges.len() == findings.edges.len(),
        nodes,
        edges,
        added,
        warnings: Vec::new(),
    };
    let mut text = summary(&findings, &data, &wish);
    data.warnings = findings.warnings;
    for warning in &data.warnings {
        // Writing to a string cannot fail.
        let _ = write!(text, "\nNote: {warning}");
    }
    Ok(Answer { text, data })
}

async fn add(
    bte: &Bte,
    findings: &Findings,
    context: Option<&DatabaseContext>,
) -> Result<Added, ToolError> {
    let store = bte.graph.as_ref().ok_or_else(|| {
        ToolError::Refused("This server was started without a graph database.".to_owned())
    })?;
    let (nodes, edges) = findings.select(usize::MAX, usize::MAX);
    let (nodes, edges, _) = store.upsert(conversation(context), nodes, edges).await?;
    Ok(Added { nodes, edges })
}

fn ranked(findings: &Findings, rank: usize, found: &Found) -> Ranked {
    let edges = found.edges.iter().map(|place| &findings.edges[*place]);
    let sources: BTreeSet<&str> = edges
        .clone()
        .filter_map(|edge| edge.data.primary_source.as_deref())
        .collect();
    Ranked {
        rank,
        score: found.score.filter(|score| score.is_finite()),
        nodes: found
            .nodes
            .iter()
            .map(|id| reference(findings, id))
            .collect(),
        edge_count: found.edges.len(),
        edges: edges.take(IDS).filter_map(|edge| edge.id.clone()).collect(),
        sources: sources.into_iter().map(str::to_owned).collect(),
        publication_count: findings.publications(found).len(),
    }
}

fn reference(findings: &Findings, id: &str) -> NodeRef {
    findings.node(id).map_or_else(
        || NodeRef {
            id: id.to_owned(),
            label: None,
            kind: None,
        },
        NodeRef::from,
    )
}

fn summary(findings: &Findings, data: &Output, wish: &Wish<'_>) -> String {
    let left_out = match data.filtered_edge_count {
        0 => String::new(),
        count => format!(
            "\nLeft out, because it says only that two names occur together in texts: {}.",
            many(count, "edge")
        ),
    };
    if data.edge_count == 0 {
        return format!(
            "Nothing was found: {}.{left_out}\n{}",
            wish.about, wish.advice
        );
    }
    let mut text = format!(
        "Found {} for {}: {} and {}.\nNodes by type: {}.\nEdges by predicate: {}.{left_out}",
        many(data.result_count, "result"),
        wish.about,
        many(data.node_count, "node"),
        many(data.edge_count, "edge"),
        listed(&data.by_category, 15),
        listed(&data.by_predicate, 15),
    );
    if data.results.len() < data.result_count {
        // Writing to a string cannot fail.
        let _ = write!(text, "\nThe best {}:", data.results.len());
    } else {
        text.push_str("\nThe results, the best first:");
    }
    for (ranked, found) in data.results.iter().zip(&findings.results) {
        let _ = write!(text, "\n{}. {}", ranked.rank, line(findings, ranked, found));
    }
    if !data.complete {
        let _ = write!(
            text,
            "\nThe structured content has {} and {} of these, those of the best results.",
            many(data.nodes.len(), "node"),
            many(data.edges.len(), "edge"),
        );
    }
    if let Some(Added { nodes, edges }) = &data.added {
        let _ = write!(
            text,
            "\nIn the graph of this conversation {} and {} are new; {} and {} were there.",
            many(nodes.added, "node"),
            many(edges.added, "edge"),
            many(nodes.updated + nodes.unchanged, "node"),
            many(edges.updated + edges.unchanged, "edge"),
        );
    }
    text
}

/// `MPO (NCBIGene:4353) –interacts_with→ CAT (NCBIGene:847) [Gene]; infores:biogrid; PMID:1; score 0.9`
fn line(findings: &Findings, ranked: &Ranked, found: &Found) -> String {
    let edges: Vec<&Edge> = found
        .edges
        .iter()
        .map(|place| &findings.edges[*place])
        .collect();
    let mut pairs: Vec<(&str, &str, Vec<&str>)> = Vec::new();
    for edge in &edges {
        let pair = pairs
            .iter_mut()
            .find(|(source, target, _)| *source == edge.source && *target == edge.target);
        match pair {
            Some((_, _, labels)) if labels.contains(&edge.label.as_str()) => {}
            Some((_, _, labels)) => labels.push(&edge.label),
            None => pairs.push((&edge.source, &edge.target, vec![&edge.label])),
        }
    }
    let statements: Vec<String> = pairs
        .iter()
        .map(|(source, target, labels)| {
            let (source, target) = (reference(findings, source), reference(findings, target));
            // The type is news for what was not asked about.
            let first = ranked.nodes.first().map(|node| node.id.as_str());
            let end = |node: &NodeRef| {
                if Some(node.id.as_str()) == first {
                    node.named()
                } else {
                    node.described()
                }
            };
            format!("{} –{}→ {}", end(&source), labels.join(", "), end(&target))
        })
        .collect();
    let mut text = statements.join(" | ");
    if !ranked.sources.is_empty() {
        let shown: Vec<&str> = ranked
            .sources
            .iter()
            .take(SOURCES)
            .map(String::as_str)
            .collect();
        let _ = write!(text, "; {}", shown.join(", "));
        if ranked.sources.len() > SOURCES {
            let _ = write!(text, " and {} more", ranked.sources.len() - SOURCES);
        }
    }
    let publications = findings.publications(found);
    if !publications.is_empty() {
        let shown: Vec<&str> = publications.iter().take(PUBLICATIONS).copied().collect();
        let _ = write!(text, "; {}", shown.join(", "));
        if publications.len() > PUBLICATIONS {
            let _ = write!(text, " and {} more", publications.len() - PUBLICATIONS);
        }
    }
    if let Some(score) = ranked.score {
        let _ = write!(text, "; score {score:.3}");
    }
    text
}
