//! `query_bte`: any question as a small graph.

use std::collections::BTreeMap;

use rmcp::model::{JsonObject, ToolAnnotations};
use schemars::JsonSchema;
use serde::Deserialize;
use switchboard_domain::nearest::nearest;

use super::{
    Bte,
    answer::{Output, Wish, answer},
    biolink::{category, is_curie, predicate},
    trapi::{QueryEdge, QueryGraph, QueryNode},
};
use crate::{
    graph::{
        context::DatabaseContext,
        model::{cut, plain},
    },
    tool::{Answer, BundledTool, ToolError},
};

/// Nodes of a question. With more, a service takes minutes.
const MAX_NODES: usize = 5;
/// Edges of a question.
const MAX_EDGES: usize = 4;

const ADVICE: &str = "Leave out the predicates, ask the other way round (subject and object \
    exchanged), use a wider category such as biolink:ChemicalEntity, or look with \
    get_meta_knowledge_graph what can be asked.";

pub(super) struct QueryBte {
    pub(super) bte: Bte,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    /// The question, as TRAPI writes it.
    query_graph: GraphInput,
    /// How many results to list at most.
    #[serde(default = "default_limit")]
    #[schemars(range(min = 1, max = 100))]
    limit: usize,
    /// Adds everything that is found to the knowledge graph of this conversation.
    #[serde(default, rename = "addToGraph")]
    add_to_graph: bool,
    /// Added by the host: which conversation this is.
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
    /// The things that the question is about, by a short key such as n0. Each has ids (known things)
    /// or categories (kinds to look for), or both; at least one has ids.
    nodes: BTreeMap<String, NodeInput>,
    /// How the things are related, by a short key such as e0.
    edges: BTreeMap<String, EdgeInput>,
}

#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct NodeInput {
    /// CURIEs of known things, such as `NCBIGene:4353`. Several are asked about one by one.
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
    /// The key of the node that something is said about.
    subject: String,
    /// The key of the node at the other end.
    object: String,
    /// Biolink predicates, such as `biolink:affects`. Leave them out unless a particular relation is
    /// asked for.
    #[serde(default)]
    #[schemars(length(max = 50))]
    predicates: Vec<String>,
}

impl BundledTool for QueryBte {
    type Input = Input;
    type Output = Output;

    const NAME: &'static str = "query_bte";
    const TITLE: &'static str = "Ask BioThings Explorer";
    const DESCRIPTION: &'static str = "Asks BioThings Explorer (BTE) with a TRAPI query graph, for \
        questions that the other queries cannot ask: several known things, particular predicates, \
        two things and how they are related, or two hops. Example, drugs that affect a gene: \
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

    async fn call(&self, input: Self::Input) -> Result<Answer<Output>, ToolError> {
        let question = checked(input.query_graph).map_err(|faults| {
            ToolError::Refused(format!("The query graph is wrong. {}", faults.join(" ")))
        })?;
        let wish = Wish {
            about: about(&question),
            advice: ADVICE,
            limit: input.limit,
            add: input.add_to_graph,
            context: input.database_context.as_ref(),
        };
        let findings = self.bte.ask(vec![question]).await?;
        answer(&self.bte, findings, wish).await
    }
}

/// `NCBIGene:4353 –affects→ SmallMolecule`.
fn about(question: &QueryGraph) -> String {
    let node = |key: &str| {
        let names = question.nodes.get(key).map(|node| {
            let names = if node.ids.is_empty() {
                node.categories.iter().map(|it| plain(it)).collect()
            } else {
                node.ids.iter().map(String::as_str).collect::<Vec<_>>()
            };
            names.join(" or ")
        });
        cut(&names.unwrap_or_default(), 200)
    };
    let edges = question.edges.values().map(|edge| {
        let predicates: Vec<&str> = edge.predicates.iter().map(|it| plain(it)).collect();
        let predicates = if predicates.is_empty() {
            "any relation".to_owned()
        } else {
            cut(&predicates.join(" or "), 200)
        };
        format!(
            "{} –{predicates}→ {}",
            node(&edge.subject),
            node(&edge.object)
        )
    });
    edges.collect::<Vec<_>>().join(", ")
}

/// The question as TRAPI wants it, or every fault in a sentence.
fn checked(input: GraphInput) -> Result<QueryGraph, Vec<String>> {
    let mut faults: Vec<String> = Vec::new();
    if input.nodes.len() < 2 || input.nodes.len() > MAX_NODES {
        faults.push(format!(
            "It has {} nodes; it must have 2 to {MAX_NODES}.",
            input.nodes.len()
        ));
    }
    if input.edges.is_empty() || input.edges.len() > MAX_EDGES {
        faults.push(format!(
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
        let node = checked_node(&key, node, &mut faults);
        graph.nodes.insert(key, node);
    }
    if !known {
        faults.push("No node has ids, so it would ask for everything there is.".to_owned());
    }
    for (key, edge) in input.edges {
        let edge = checked_edge(&key, edge, &keys, &mut faults);
        graph.edges.insert(key, edge);
    }
    for key in &keys {
        let used = |edge: &QueryEdge| edge.subject == *key || edge.object == *key;
        if !graph.edges.is_empty() && !graph.edges.values().any(used) {
            faults.push(format!("No edge uses the node {}.", cut(key, 60)));
        }
    }
    if faults.is_empty() {
        Ok(graph)
    } else {
        faults.truncate(10);
        Err(faults)
    }
}

fn checked_node(key: &str, node: NodeInput, faults: &mut Vec<String>) -> QueryNode {
    let key = cut(key, 60);
    if node.ids.is_empty() && node.categories.is_empty() {
        faults.push(format!("The node {key} has neither ids nor categories."));
    }
    for id in node.ids.iter().filter(|id| !is_curie(id)) {
        faults.push(format!(
            "The node {key} has the id {:?}, which is no CURIE such as NCBIGene:4353.",
            cut(id, 60)
        ));
    }
    let categories = node.categories.iter().filter_map(|given| {
        let known = category(given);
        if known.is_none() {
            faults.push(format!(
                "The node {key} has the category {:?}, which is not written like biolink:Gene.",
                cut(given, 60)
            ));
        }
        known
    });
    QueryNode {
        categories: categories.collect(),
        ids: node.ids,
    }
}

fn checked_edge(
    key: &str,
    edge: EdgeInput,
    nodes: &[String],
    faults: &mut Vec<String>,
) -> QueryEdge {
    let key = cut(key, 60);
    for (role, end) in [("subject", &edge.subject), ("object", &edge.object)] {
        if !nodes.contains(end) {
            let meant = nearest(end, nodes.iter().map(String::as_str))
                .map_or_else(String::new, |meant| format!("; did you mean {meant}?"));
            faults.push(format!(
                "The {role} of the edge {key} is {:?}, and there is no such node{meant}.",
                cut(end, 60)
            ));
        }
    }
    if edge.subject == edge.object {
        faults.push(format!("The edge {key} goes from a node to itself."));
    }
    let predicates = edge.predicates.iter().filter_map(|given| {
        let known = predicate(given);
        if known.is_none() {
            faults.push(format!(
                "The edge {key} has the predicate {:?}, which is not written like \
                 biolink:affects.",
                cut(given, 60)
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
