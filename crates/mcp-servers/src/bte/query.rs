//! The tool `query_bte`: a query with any TRAPI query graph.

use schemars::JsonSchema;
use serde::Deserialize;
use switchboard_domain::similar_names::{did_you_mean, find_nearest};

use super::{
    BteToolState,
    biolink::{is_curie, normalize_category, normalize_predicate},
    query_output::{Output, OutputOptions, build_output},
    trapi::{QueryEdge, QueryGraph, QueryNode},
};
use crate::{
    graph::{database_context::DatabaseContext, model::strip_biolink},
    text::truncate,
    tool::{BundledTool, ToolError, ToolResult, default_number},
};

/// Maximum number of nodes in a query graph. A query graph with more nodes is refused, because
/// services would need minutes for it.
const MAX_NODES: usize = 5;
/// Maximum number of edges in a query graph. A query graph with more edges is refused.
const MAX_EDGES: usize = 4;

const ADVICE: &str = "Omit the predicates, exchange subject and object, use a wider category such \
    as biolink:ChemicalEntity, or list the supported relations with get_meta_knowledge_graph.";

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    /// The query as a TRAPI query graph.
    query_graph: QueryGraph,
    /// Maximum number of results to list.
    #[serde(default = "default_number::<25>")]
    #[schemars(range(min = 1, max = 100))]
    limit: usize,
    /// Adds all results to the knowledge graph of this conversation.
    #[serde(rename = "addToGraph")]
    add_to_graph: Option<bool>,
    /// Added by the host, not by the model: the conversation to which this call belongs.
    #[serde(rename = "databaseContext")]
    #[schemars(extend("writeOnly" = true))]
    database_context: Option<DatabaseContext>,
}

pub(super) fn query_bte_tool(bte: &BteToolState) -> BundledTool {
    bte.create_query_tool(
        "query_bte",
        "Ask BioThings Explorer",
        "Queries BioThings Explorer (BTE) with a TRAPI query graph, for queries that the other \
         tools do not support: several known things, particular predicates, relations between \
         two known things, or two hops. Example, drugs that affect a gene: {\"nodes\": {\"n0\": \
         {\"ids\": [\"NCBIGene:4353\"]}, \"n1\": {\"categories\": \
         [\"biolink:SmallMolecule\"]}}, \"edges\": {\"e0\": {\"subject\": \"n1\", \"object\": \
         \"n0\", \"predicates\": [\"biolink:affects\"]}}}. Results come with sources and \
         publications, the best first.",
        run_tool,
    )
}

async fn run_tool(bte: BteToolState, input: Input) -> ToolResult<Output> {
    let mut query_graph = input.query_graph;
    let problems = validate_query_graph(&mut query_graph);
    if !problems.is_empty() {
        let problems = problems.join(" ");
        let text = format!("The query graph is invalid. {problems}");
        return Err(ToolError::Refused(text));
    }
    let options = OutputOptions {
        description: describe_query_graph(&query_graph),
        advice: ADVICE,
        limit: input.limit,
        add_to_graph: input.add_to_graph,
        context: input.database_context.as_ref(),
    };
    let findings = bte.run_queries(vec![query_graph]).await?;
    build_output(&bte, findings, options).await
}

/// Describes a query graph, such as `NCBIGene:4353 –affects→ SmallMolecule`.
fn describe_query_graph(query_graph: &QueryGraph) -> String {
    let names = |names: &[String]| {
        let names: Vec<&str> = names.iter().map(|it| strip_biolink(it)).collect();
        truncate(&names.join(" or "), 200)
    };
    let node = |key: &str| match query_graph.nodes.get(key) {
        Some(node) if node.ids.is_empty() => names(&node.categories),
        Some(node) => names(&node.ids),
        None => String::new(),
    };
    let edges = query_graph.edges.values().map(|edge| {
        let predicates = if edge.predicates.is_empty() {
            "any relation".to_owned()
        } else {
            names(&edge.predicates)
        };
        let (subject, object) = (node(&edge.subject), node(&edge.object));
        format!("{subject} –{predicates}→ {object}")
    });
    edges.collect::<Vec<_>>().join(", ")
}

/// Adds the prefix `biolink:` to the categories and predicates of a query graph, and validates the
/// graph. Returns one sentence for each problem, at most ten. An empty list means that the graph is
/// valid.
fn validate_query_graph(graph: &mut QueryGraph) -> Vec<String> {
    let mut problems: Vec<String> = Vec::new();
    let nodes = ("nodes", graph.nodes.len(), 2, MAX_NODES);
    let edges = ("edges", graph.edges.len(), 1, MAX_EDGES);
    for (noun, count, min, max) in [nodes, edges] {
        if !(min..=max).contains(&count) {
            problems.push(format!(
                "It has {count} {noun}; it must have {min} to {max}."
            ));
        }
    }
    for (key, node) in &mut graph.nodes {
        validate_node(&truncate(key, 60), node, &mut problems);
    }
    if graph.nodes.values().all(|node| node.ids.is_empty()) {
        problems.push("No node has ids, so the query would have no limit.".to_owned());
    }
    let keys: Vec<&str> = graph.nodes.keys().map(String::as_str).collect();
    for (key, edge) in &mut graph.edges {
        validate_edge(&truncate(key, 60), edge, &keys, &mut problems);
    }
    for key in keys {
        let used = |edge: &QueryEdge| edge.subject == key || edge.object == key;
        if !graph.edges.is_empty() && !graph.edges.values().any(used) {
            problems.push(format!("No edge uses the node {}.", truncate(key, 60)));
        }
    }
    problems.truncate(10);
    problems
}

fn validate_node(key: &str, node: &mut QueryNode, problems: &mut Vec<String>) {
    if node.ids.is_empty() && node.categories.is_empty() {
        problems.push(format!("The node {key} has neither ids nor categories."));
    }
    for id in node.ids.iter().filter(|id| !is_curie(id)) {
        let id = truncate(id, 60);
        problems.push(format!(
            "The node {key} has the id {id:?}, which is not a CURIE such as NCBIGene:4353."
        ));
    }
    for name in &mut node.categories {
        match normalize_category(name) {
            Some(normalized) => *name = normalized,
            None => problems.push(format!(
                "The node {key} has the category {:?}, which does not have the form biolink:Gene.",
                truncate(name, 60)
            )),
        }
    }
}

fn validate_edge(key: &str, edge: &mut QueryEdge, nodes: &[&str], problems: &mut Vec<String>) {
    for (role, end) in [("subject", &edge.subject), ("object", &edge.object)] {
        if !nodes.contains(&end.as_str()) {
            let suggestion = did_you_mean(find_nearest(end, nodes.iter().copied()));
            let end = truncate(end, 60);
            problems.push(format!(
                "The {role} of the edge {key} is {end:?}, which is an unknown node{suggestion}."
            ));
        }
    }
    if edge.subject == edge.object {
        problems.push(format!("The edge {key} goes from a node to itself."));
    }
    for name in &mut edge.predicates {
        match normalize_predicate(name) {
            Some(normalized) => *name = normalized,
            None => problems.push(format!(
                "The edge {key} has the predicate {:?}, which does not have the form \
                 biolink:affects.",
                truncate(name, 60)
            )),
        }
    }
}

#[cfg(test)]
#[path = "query_tests.rs"]
mod tests;
