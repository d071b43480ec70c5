//! `analyze_node_relationships`.

use std::{
    collections::{BTreeSet, HashMap},
    fmt::Write as _,
};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    Count, NodeRef,
    context::{DatabaseContext, conversation},
    counted, listed, many, meant,
    model::{Edge, Node},
    store::GraphStore,
};
use crate::tool::{Answer, BundledTool, ToolError};

pub(super) struct AnalyzeNodeRelationships {
    pub(super) store: GraphStore,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Input {
    /// The id of the node.
    #[schemars(length(min = 1, max = 500))]
    node_id: String,
    /// How many neighbours to list at most.
    #[serde(default = "default_limit")]
    #[schemars(range(min = 1, max = 100))]
    limit: usize,
    /// Added by the host: which conversation this is.
    #[schemars(extend("writeOnly" = true))]
    database_context: Option<DatabaseContext>,
}

fn default_limit() -> usize {
    10
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Output {
    /// The node.
    node: NodeRef,
    /// How many edges it has.
    degree: usize,
    /// How many edges come to it; one from the node to itself counts here and below.
    incoming: usize,
    /// How many edges go from it.
    outgoing: usize,
    /// How many nodes are at the other ends.
    neighbour_count: usize,
    /// The edges by label, the most frequent first.
    by_predicate: Vec<Predicate>,
    /// The neighbours by type, the most frequent first.
    by_type: Vec<Count>,
    /// The edges by who states them, the most frequent first.
    by_source: Vec<Count>,
    /// The neighbours with the most edges, then the most publications.
    strongest: Vec<Strong>,
}

#[derive(Serialize, JsonSchema)]
struct Predicate {
    /// The label of the edges.
    label: String,
    /// How many of them come to the node.
    incoming: usize,
    /// How many of them go from it.
    outgoing: usize,
}

#[derive(Serialize, JsonSchema)]
struct Strong {
    #[serde(flatten)]
    node: NodeRef,
    /// How many edges there are between it and the node.
    edges: usize,
    /// How many different publications support them.
    publications: usize,
    /// The labels of these edges.
    labels: Vec<String>,
}

impl BundledTool for AnalyzeNodeRelationships {
    type Input = Input;
    type Output = Output;

    const NAME: &'static str = "analyze_node_relationships";
    const TITLE: &'static str = "Analyze a node's relationships";
    const DESCRIPTION: &'static str = "Analyzes how a node of the knowledge graph of this \
        conversation is related to others: how many edges it has, by predicate, by type of \
        neighbour and by source, and which neighbours it is most strongly related to.";

    async fn call(&self, input: Input) -> Result<Answer<Output>, ToolError> {
        let conversation = conversation(input.database_context.as_ref());
        let node = meant(&self.store, conversation, &input.node_id).await?;
        let edges = self.store.edges_at(conversation, &node.id).await?;
        let data = analyze(&node, &edges, input.limit);
        Ok(Answer {
            text: describe(&data),
            data,
        })
    }
}

fn analyze(node: &Node, edges: &[(Edge, Node)], limit: usize) -> Output {
    let incoming = |edge: &Edge| edge.target == node.id;
    let outgoing = |edge: &Edge| edge.source == node.id;
    let by_label = counted(edges.iter().map(|(edge, _)| edge.label.as_str()));
    let by_predicate = by_label.into_iter().map(|Count { name, .. }| {
        let of_label = || edges.iter().filter(|(edge, _)| edge.label == name);
        Predicate {
            incoming: of_label().filter(|(edge, _)| incoming(edge)).count(),
            outgoing: of_label().filter(|(edge, _)| outgoing(edge)).count(),
            label: name,
        }
    });
    let sources = edges.iter().map(|(edge, _)| {
        let source = edge.data.primary_source.as_deref();
        source.unwrap_or("unknown")
    });
    let neighbours = neighbours(node, edges);
    Output {
        node: NodeRef::from(node),
        degree: edges.len(),
        incoming: edges.iter().filter(|(edge, _)| incoming(edge)).count(),
        outgoing: edges.iter().filter(|(edge, _)| outgoing(edge)).count(),
        neighbour_count: neighbours.len(),
        by_predicate: by_predicate.collect(),
        by_type: counted(
            neighbours
                .iter()
                .map(|it| it.node.kind.as_deref().unwrap_or("other")),
        ),
        by_source: counted(sources),
        strongest: neighbours.into_iter().take(limit).collect(),
    }
}

/// The most edges first, then the most publications, then in the order of the graph.
fn neighbours(node: &Node, edges: &[(Edge, Node)]) -> Vec<Strong> {
    let mut places: HashMap<&str, usize> = HashMap::new();
    let mut found: Vec<(Strong, BTreeSet<&str>)> = Vec::new();
    for (edge, other) in edges.iter().filter(|(_, other)| other.id != node.id) {
        let place = *places.entry(&other.id).or_insert_with(|| {
            let strong = Strong {
                node: NodeRef::from(other),
                edges: 0,
                publications: 0,
                labels: Vec::new(),
            };
            found.push((strong, BTreeSet::new()));
            found.len() - 1
        });
        let (strong, publications) = &mut found[place];
        strong.edges += 1;
        if !strong.labels.contains(&edge.label) {
            strong.labels.push(edge.label.clone());
        }
        publications.extend(edge.data.publications.iter().map(String::as_str));
    }
    let mut found: Vec<Strong> = found
        .into_iter()
        .map(|(strong, publications)| Strong {
            publications: publications.len(),
            ..strong
        })
        .collect();
    found.sort_by_key(|it| std::cmp::Reverse((it.edges, it.publications)));
    found
}

fn describe(data: &Output) -> String {
    let mut text = format!(
        "{} has {}: {} coming in, {} going out, to {}.",
        data.node.described(),
        many(data.degree, "edge"),
        data.incoming,
        data.outgoing,
        many(data.neighbour_count, "neighbour")
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
    // Writing to a string cannot fail.
    let _ = write!(text, "\nBy predicate: {}.", predicates.join(", "));
    let _ = write!(text, "\nNeighbours by type: {}.", listed(&data.by_type, 20));
    let _ = write!(text, "\nEdges by source: {}.", listed(&data.by_source, 20));
    if !data.strongest.is_empty() {
        text.push_str("\nStrongest neighbours:");
    }
    for strong in &data.strongest {
        let _ = write!(
            text,
            "\n- {}: {} ({})",
            strong.node.described(),
            many(strong.edges, "edge"),
            strong.labels.join(", ")
        );
        if strong.publications > 0 {
            let _ = write!(text, ", {}", many(strong.publications, "publication"));
        }
    }
    text
}
