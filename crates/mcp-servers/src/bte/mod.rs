//! `bte`: questions about genes, diseases, drugs and the like to `BioThings` Explorer, or to any other
//! service that speaks TRAPI.

mod answer;
mod biolink;
mod client;
mod entity;
mod findings;
mod lookup;
mod meta;
mod options;
mod query;
mod trapi;

use std::sync::Arc;

use rmcp::model::{JsonObject, ToolAnnotations};
use serde_json::Value;
use tokio::{task::JoinSet, time::Instant};

use crate::{
    BundledServer, ServerError, ServerOptions, graph::store::GraphStore, tool::ToolError,
    tool_server::ToolServer,
};
use client::{Failure, ServiceClient};
use entity::{ByCategories, GetAll};
use findings::Findings;
use lookup::LookupName;
use meta::GetMetaKnowledgeGraph;
pub use options::BteOptions;
use query::QueryBte;
use trapi::QueryGraph;

pub(crate) const IDENTITY: BundledServer = BundledServer {
    name: "bte",
    title: "BioThings Explorer",
    description: "Biomedical knowledge from BioThings Explorer or another TRAPI service",
};

pub(crate) async fn open(options: &ServerOptions) -> Result<ToolServer, ServerError> {
    let setting = |problem: String| ServerError::Setting {
        server: IDENTITY.name,
        problem,
    };
    let bte = options.bte().ok_or_else(|| {
        setting(
            "it needs the address of a TRAPI service, such as https://bte.transltr.io/v1; give it \
             with --url"
                .to_owned(),
        )
    })?;
    let client = |url: &str, what: &str| {
        ServiceClient::new(url, bte)
            .map_err(|problem| setting(format!("the address of the {what} is wrong: {problem}")))
    };
    let resolver = match &bte.name_resolver {
        Some(url) => Some(client(url, "name resolver")?),
        None => None,
    };
    let client = client(&bte.url, "service")?;
    let graph = match options.data() {
        Some(file) => Some(GraphStore::open(Some(file)).await?),
        None => None,
    };
    let keeping = if graph.is_some() {
        "With addToGraph what is found goes into the knowledge graph of the conversation as well."
    } else {
        "What is found can be kept with the tools add_nodes and add_edges of the bundled graph \
         server: give them nodes and edges of the result as they are."
    };
    let naming = if resolver.is_some() {
        "; lookup_name finds the CURIE of a name"
    } else {
        ""
    };
    let instructions = format!(
        "Questions to BioThings Explorer about genes, proteins, diseases, drugs, pathways and how \
         they are related. Things are named by CURIEs such as NCBIGene:4353 or MONDO:0005148{naming}. \
         query_bte_getall finds everything that is related to one thing, query_bte_by_categories \
         only things of some kinds, query_bte answers any other question, and \
         get_meta_knowledge_graph says what can be asked. {keeping}"
    );
    let server = ToolServer::build(IDENTITY, instructions);
    let bte = Bte {
        client: Arc::new(client),
        graph,
    };
    Ok(server
        .with(GetAll { bte: bte.clone() })
        .with(ByCategories { bte: bte.clone() })
        .with(QueryBte { bte: bte.clone() })
        .with(GetMetaKnowledgeGraph::new(bte.client))
        .with_some(resolver.map(|client| LookupName { client }))
        .finish())
}

/// What every query needs. Clones share it.
#[derive(Clone)]
struct Bte {
    client: Arc<ServiceClient>,
    /// Where results can be added to, if the server was started with a graph database.
    graph: Option<GraphStore>,
}

impl Bte {
    /// Returns the annotations of queries, which write only to the graph.
    fn annotations(&self) -> ToolAnnotations {
        ToolAnnotations::new()
            .read_only(self.graph.is_none())
            .destructive(false)
            .idempotent(true)
            .open_world(true)
    }

    /// Removes the argument `addToGraph` if there is no graph.
    fn adjust_input(&self, schema: &mut JsonObject) {
        if self.graph.is_none()
            && let Some(Value::Object(properties)) = schema.get_mut("properties")
        {
            // `retain`, because `remove` would change the order of the other arguments.
            properties.retain(|name, _| name != "addToGraph");
        }
    }

    /// Asks all questions at the same time and puts the answers together. Fails only if all fail.
    async fn ask(&self, questions: Vec<QueryGraph>) -> Result<Findings, ToolError> {
        let order = questions.first().map(known_first).unwrap_or_default();
        let deadline: Instant = self.client.deadline();
        let mut asked = JoinSet::new();
        for (number, question) in questions.into_iter().enumerate() {
            let client = Arc::clone(&self.client);
            asked.spawn(async move { (number, client.query(&question, deadline).await) });
        }
        let mut answers = Vec::new();
        while let Some(answer) = asked.join_next().await {
            answers.push(answer.map_err(|error| {
                tracing::error!(%error, "a query ended unexpectedly");
                ToolError::Refused("The query ended unexpectedly.".to_owned())
            })?);
        }
        answers.sort_by_key(|(number, _)| *number);
        let count = answers.len();
        let order: Vec<&str> = order.iter().map(String::as_str).collect();
        let mut findings = Findings::default();
        let mut failures: Vec<Failure> = Vec::new();
        for (_, answer) in answers {
            match answer {
                Ok(answer) => {
                    let wrong = problem(&answer);
                    findings.add(answer, &order);
                    findings.warnings.extend(wrong);
                }
                Err(failure) => failures.push(failure),
            }
        }
        if failures.len() == count
            && let Some(first) = failures.first()
        {
            return Err(ToolError::Refused(first.to_string()));
        }
        if let Some(first) = failures.first() {
            findings.warnings.insert(
                0,
                format!(
                    "{} of {count} parts of the question have no answer. {first}",
                    failures.len()
                ),
            );
        }
        findings.rank();
        Ok(findings)
    }
}

/// What a service says when it could not do as it was asked although it answered.
fn problem(answer: &trapi::Response) -> Option<String> {
    let status = answer.status.0.as_deref()?;
    if matches!(status, "Success" | "OK" | "Complete" | "Completed") {
        return None;
    }
    let description = answer.description.0.as_deref().unwrap_or_default();
    let text = format!("{status}: {description}");
    let text = crate::graph::model::one_line(text.trim_end_matches([':', ' ']));
    Some(crate::graph::model::cut(&text, 300))
}

/// The nodes of a question in the order in which people read it: along the edges, from what is known.
fn known_first(question: &QueryGraph) -> Vec<String> {
    let mut order: Vec<String> = Vec::new();
    let known = question
        .nodes
        .iter()
        .filter(|(_, node)| !node.ids.is_empty());
    let mut next: Vec<&String> = known.map(|(key, _)| key).take(1).collect();
    while let Some(key) = next.pop() {
        if order.contains(key) {
            continue;
        }
        order.push(key.clone());
        let beside = question.edges.values().filter_map(|edge| {
            if edge.subject == *key {
                Some(&edge.object)
            } else {
                (edge.object == *key).then_some(&edge.subject)
            }
        });
        next.extend(beside);
    }
    order
}

#[cfg(test)]
#[path = "arguments_tests.rs"]
mod arguments_tests;
