//! `query_bte`: a query with any TRAPI query graph.

use std::collections::BTreeMap;

use rmcp::model::{JsonObject, ToolAnnotations};
use schemars::JsonSchema;
use serde::Deserialize;
use switchboard_domain::nearest::nearest;

use super::{
    Bte,
    answer::{Output, OutputOptions, output},
    biolink::{category, is_curie, predicate},
    trapi::{QueryEdge, QueryGraph, QueryNode},
};
use crate::{
    graph::{
        context::DatabaseContext,
        model::{truncate, without_prefix},
    },
    tool::{BundledTool, ToolError, ToolOutput},
};

/// Maximum number of nodes of a query. With more nodes, a service needs minutes.
const MAX_NODES: usize = 5;
/// Maximum number of edges of a query.
const MAX_EDGES: usize = 4;

const ADVICE: &str = "Omit the predicates, exchange subject and object, use a wider category such as \
    biolink:ChemicalEntity, or list the supported relations with get_meta_knowledge_graph.";

pub(super) struct QueryBte {
    pub(super) bte: Bte,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    /// The query graph in the form of TRAPI.
    query_graph: GraphInput,
    /// Maximum number of results to list.
    #[serde(default = "default_limit")]
    #[schemars(range(min = 1, max = 100))]
    limit: usize,
    /// Adds all results to the knowledge graph of this conversation.
    #[serde(default, rename = "addToGraph")]
    add_to_graph: bool,
    /// Added by the host: the conversation of this call.
    #[serde(rename = "databaseContext")]
    #[schemars(extend("writeOnly" = true))]
    database_context: Option<DatabaseContext>,
}

fn default_limit() -> usize {
    25
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct GraphInput {
    /// The nodes, by a short key such as n0. A node has ids (known things), categories (of unknown
    /// things) or both. At least one node has ids.
    nodes: BTreeMap<String, NodeInput>,
    /// The relations of the nodes, by a short key such as e0.
    edges: BTreeMap<String, EdgeInput>,
}

#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct NodeInput {
    /// CURIEs of known things, such as `NCBIGene:4353`. The query has results for each of them.
    #[serde(default)]
    #[schemars(length(max = 50))]
    ids: Vec<String>,
    /// Biolink categories, such as `biolink:Gene`.
    #[serde(default)]
    #[schemars(length(max = 20))]
    categories: Vec<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct EdgeInput {
    /// The key of the subject node.
    subject: String,
    /// The key of the object node.
    object: String,
    /// Biolink predicates, such as `biolink:affects`. Omit them unless you need a particular relation.
    #[serde(default)]
    #[schemars(length(max = 50))]
    predicates: Vec<String>,
}

impl BundledTool for QueryBte {
    type Input = Input;
    type Output = Output;

    const NAME: &'static str = "query_bte";
    const TITLE: &'static str = "Ask BioThings Explorer";
    const DESCRIPTION: &'static str = "Queries BioThings Explorer (BTE) with a TRAPI query graph, for \
        queries that the other tools do not support: several known things, particular predicates, \
        relations between two known things, or two hops. Example, drugs that affect a gene: \
        {\"nodes\": {\"n0\": {\"ids\": [\"NCBIGene:4353\"]}, \"n1\": {\"categories\": \
        [\"biolink:SmallMolecule\"]}}, \"edges\": {\"e0\": {\"subject\": \"n1\", \"object\": \"n0\", \
        \"predicates\": [\"biolink:affects\"]}}}. Results come with sources and publications, the \
        best first.";

    fn annotations(&self) -> ToolAnnotations {
        self.bte.annotations()
    }

    fn adjust_input(&self, schema: &mut JsonObject) {
        self.bte.adjust_input(schema);
    }

    async fn call(&self, input: Self::Input) -> Result<ToolOutput<Output>, ToolError> {
        let query_graph = validate(input.query_graph).map_err(|problems| {
            ToolError::Refused(format!(
                "The query graph is invalid. {}",
                problems.join(" ")
            ))
        })?;
        let options = OutputOptions {
            description: describe(&query_graph),
            advice: ADVICE,
            limit: input.limit,
            add_to_graph: input.add_to_graph,
            context: input.database_context.as_ref(),
        };
        let findings = self.bte.query(vec![query_graph]).await?;
        output(&self.bte, findings, options).await
    }
}

/// Returns a description such as `NCBIGene:4353 –affects→ SmallMolecule`.
fn describe(query_graph: &QueryGraph) -> String {
    let node = |key: &str| {
        let names = query_graph.nodes.get(key).map(|node| {
            let names = if node.ids.is_empty() {
                node.categories
                    .iter()
                    .map(|it| without_prefix(it))
                    .collect()
            } else {
                node.ids.iter().map(String::as_str).collect::<Vec<_>>()
            };
            names.join(" or ")
        });
        truncate(&names.unwrap_or_default(), 200)
    };
    let edges = query_graph.edges.values().map(|edge| {
        let predicates: Vec<&str> = edge
            .predicates
            .iter()
            .map(|it| without_prefix(it))
            .collect();
        let predicates = if predicates.is_empty() {
            "any relation".to_owned()
        } else {
            truncate(&predicates.join(" or "), 200)
        };
        format!(
            "{} –{predicates}→ {}",
            node(&edge.subject),
            node(&edge.object)
        )
    });
    edges.collect::<Vec<_>>().join(", ")
}

/// Validates and normalizes a query graph. The error has one sentence for each problem.
fn validate(input: GraphInput) -> Result<QueryGraph, Vec<String>> {
    let mut problems: Vec<String> = Vec::new();
    if input.nodes.len() < 2 || input.nodes.len() > MAX_NODES {
        problems.push(format!(
            "It has {} nodes; it must have 2 to {MAX_NODES}.",
            input.nodes.len()
        ));
    }
    if input.edges.is_empty() || input.edges.len() > MAX_EDGES {
        problems.push(format!(
            "It has {} edges; it must have 1 to {MAX_EDGES}.",
            input.edges.len()
        ));
    }
    let keys: Vec<String> = input.nodes.keys().cloned().collect();
    let known = input.nodes.values().any(|node| !node.ids.is_empty());
    let mut graph = QueryGraph {
        nodes: BTreeMap::new(),
        edges: BTreeMap::new(),
    };
    for (key, node) in input.nodes {
        let node = validate_node(&key, node, &mut problems);
        graph.nodes.insert(key, node);
    }
    if !known {
        problems.push("No node has ids, so the query would have no limit.".to_owned());
    }
    for (key, edge) in input.edges {
        let edge = validate_edge(&key, edge, &keys, &mut problems);
        graph.edges.insert(key, edge);
    }
    for key in &keys {
        let used = |edge: &QueryEdge| edge.subject == *key || edge.object == *key;
        if !graph.edges.is_empty() && !graph.edges.values().any(used) {
            problems.push(format!("No edge uses the node {}.", truncate(key, 60)));
        }
    }
    if problems.is_empty() {
        Ok(graph)
    } else {
        problems.truncate(10);
        Err(problems)
    }
}

fn validate_node(key: &str, node: NodeInput, problems: &mut Vec<String>) -> QueryNode {
    let key = truncate(key, 60);
    if node.ids.is_empty() && node.categories.is_empty() {
        problems.push(format!("The node {key} has neither ids nor categories."));
    }
    for id in node.ids.iter().filter(|id| !is_curie(id)) {
        problems.push(format!(
            "The node {key} has the id {:?}, which is not a CURIE such as NCBIGene:4353.",
            truncate(id, 60)
        ));
    }
    let categories = node.categories.iter().filter_map(|given| {
        let known = category(given);
        if known.is_none() {
            problems.push(format!(
                "The node {key} has the category {:?}, which does not have the form biolink:Gene.",
                truncate(given, 60)
            ));
        }
        known
    });
    QueryNode {
        categories: categories.collect(),
        ids: node.ids,
    }
}

fn validate_edge(
    key: &str,
    edge: EdgeInput,
    nodes: &[String],
    problems: &mut Vec<String>,
) -> QueryEdge {
    let key = truncate(key, 60);
    for (role, end) in [("subject", &edge.subject), ("object", &edge.object)] {
        if !nodes.contains(end) {
            let suggestion = nearest(end, nodes.iter().map(String::as_str))
                .map_or_else(String::new, |meant| format!("; did you mean {meant}?"));
            problems.push(format!(
                "The {role} of the edge {key} is {:?}, which is an unknown node{suggestion}.",
                truncate(end, 60)
            ));
        }
    }
    if edge.subject == edge.object {
        problems.push(format!("The edge {key} goes from a node to itself."));
    }
    let predicates = edge.predicates.iter().filter_map(|given| {
        let known = predicate(given);
        if known.is_none() {
            problems.push(format!(
                "The edge {key} has the predicate {:?}, which does not have the form \
                 biolink:affects.",
                truncate(given, 60)
            ));
        }
        known
    });
    QueryEdge {
        predicates: predicates.collect(),
        subject: edge.subject,
        object: edge.object,
    }
}

#[cfg(test)]
#[path = "query_tests.rs"]
mod tests;
