//! `bte`: queries about genes, diseases, drugs and other things to `BioThings` Explorer or another
//! service with the TRAPI interface (Translator Reasoner API).

mod biolink;
mod client;
mod entity;
mod findings;
mod meta_knowledge_graph;
mod name_lookup;
mod query;
mod query_output;
mod sample;
mod trapi;

use std::sync::Arc;

use futures_util::future::join_all;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use crate::{
    error::ServerError,
    graph::store::GraphStore,
    options::ServerOptions,
    text::{to_single_line, truncate},
    tool::{BundledServer, BundledTool, ToolError, ToolResult, server::ToolServer},
};
use client::{BteError, ServiceClient};
use entity::{query_bte_getall_tool, query_by_categories_tool};
use findings::QueryFindings;
use meta_knowledge_graph::meta_knowledge_graph_tool;
use name_lookup::lookup_name_tool;
use query::query_bte_tool;
use query_output::{Output, prepend_notice};
use sample::Sample;
use trapi::QueryGraph;

pub(crate) const IDENTITY: BundledServer = BundledServer {
    name: "bte",
    title: "BioThings Explorer",
    description: "Biomedical knowledge from BioThings Explorer or another TRAPI service",
};

pub(crate) async fn open_server(options: &ServerOptions) -> Result<ToolServer, ServerError> {
    let setting = |problem: String| ServerError::Setting {
        server: IDENTITY.name,
        problem,
    };
    let bte = options.bte.as_ref().ok_or_else(|| {
        setting(
            "the address of a TRAPI service is required, such as https://bte.transltr.io/v1; set \
             it with --url"
                .to_owned(),
        )
    })?;
    let invalid_sample = |error| setting(format!("the bundled sample is invalid: {error}"));
    let sample = bte.sample_if_offline.then(Sample::load).transpose();
    let sample = sample.map_err(invalid_sample)?.map(Arc::new);
    let client = |url: &str, what: &str| {
        ServiceClient::new(url, bte, sample.as_ref())
            .map_err(|problem| setting(format!("the address of the {what} is invalid: {problem}")))
    };
    let resolver = bte.name_resolver.as_deref();
    let resolver = resolver.map(|it| client(it, "name resolver")).transpose()?;
    let client = client(&bte.url, "service")?;
    let graph = match &options.data {
        Some(file) => Some(GraphStore::open(Some(file)).await?),
        None => None,
    };
    if bte.add_to_graph && graph.is_none() {
        let problem = "`--add-to-graph` requires the file of the graph; set it with --data";
        return Err(setting(problem.to_owned()));
    }
    let storage = if bte.add_to_graph {
        "All results are added to the knowledge graph of the conversation, unless addToGraph is \
         false."
    } else if graph.is_some() {
        "addToGraph adds the results to the knowledge graph of the conversation."
    } else {
        "To store results, give their nodes and edges unchanged to the tools add_nodes and \
         add_edges of the bundled graph server."
    };
    let naming = match resolver {
        Some(_) => "; lookup_name finds the CURIE of a name",
        None => "",
    };
    let instructions = format!(
        "Queries to BioThings Explorer about genes, proteins, diseases, drugs, pathways and their \
         relations. Ids are CURIEs such as NCBIGene:4353 or MONDO:0005148{naming}. \
         query_bte_getall finds everything that is related to one thing, query_bte_by_categories \
         only things of some categories, query_bte supports any other query, and \
         get_meta_knowledge_graph lists the supported relations. {storage}"
    );
    let bte = BteToolState {
        client,
        graph,
        adds_to_graph: bte.add_to_graph,
    };
    let mut tools = vec![
        query_bte_getall_tool(&bte),
        query_by_categories_tool(&bte),
        query_bte_tool(&bte),
        meta_knowledge_graph_tool(&bte.client),
    ];
    tools.extend(resolver.map(lookup_name_tool));
    Ok(ToolServer::new(IDENTITY, instructions, tools))
}

/// The state of the query tools. `graph` is the store that query results can be added to. It is
/// `None` if the server was started without a data file.
#[derive(Clone)]
struct BteToolState {
    client: ServiceClient,
    graph: Option<GraphStore>,
    /// Default of the argument `addToGraph`.
    adds_to_graph: bool,
}

impl BteToolState {
    /// Creates a tool that queries the service. If the server has a graph store, the tool can add
    /// the results to the graph. Otherwise, the tool is read-only and has no argument `addToGraph`.
    fn create_query_tool<I, F>(
        &self,
        name: &'static str,
        title: &'static str,
        description: &'static str,
        function: fn(Self, I) -> F,
    ) -> BundledTool
    where
        I: DeserializeOwned + JsonSchema + Send + 'static,
        F: Future<Output = ToolResult<Output>> + Send + 'static,
    {
        let read_only = self.graph.is_none();
        let tool = BundledTool::new(name, title, description, self.clone(), function)
            .map_annotations(|it| it.read_only(read_only).open_world(true));
        if read_only {
            return tool.without_argument("addToGraph");
        }
        tool.map_input_schema(|schema| {
            let properties = schema.get_mut("properties");
            if let Some(argument) = properties.and_then(|it| it.get_mut("addToGraph")) {
                argument["default"] = self.adds_to_graph.into();
            }
        })
    }

    async fn run_queries(&self, queries: Vec<QueryGraph>) -> Result<QueryFindings, ToolError> {
        let mut responses = join_all(queries.iter().map(|query| self.client.query(query))).await;
        let count = responses.len();
        let mut findings = QueryFindings::default();
        // The sample replaces all responses or none, so that it is never mixed with results of the
        // service.
        if responses
            .iter()
            .all(|it| matches!(it, Err(failure) if failure.is_unreachable))
            && let Some(Err(failure)) = responses.pop()
        {
            match self.client.sample_for(failure) {
                Ok((sample, notice)) => {
                    findings.notice = Some(notice);
                    responses = queries.iter().map(|query| sample.query(query)).collect();
                }
                Err(failure) => responses.push(Err(failure)),
            }
        }
        let mut failures: Vec<BteError> = Vec::new();
        for (query, response) in queries.iter().zip(responses) {
            match response {
                Ok(response) => {
                    let problem = response_problem(&response);
                    let mut nodes = query.nodes.iter();
                    let known = nodes.find(|(_, node)| !node.ids.is_empty());
                    findings.add_response(response, known.map_or("", |(key, _)| key));
                    findings.warnings.extend(problem);
                }
                Err(failure) => failures.push(failure),
            }
        }
        if let Some(first) = failures.first() {
            let failed = failures.len();
            if failed == count {
                let notice = findings.notice.as_deref();
                return Err(prepend_notice(notice, first.to_string()).into());
            }
            let warning = format!("{failed} of {count} parts of the query failed. {first}");
            findings.warnings.insert(0, warning);
        }
        findings.rank_results();
        Ok(findings)
    }
}

/// Returns the problem that a TRAPI response reports in its fields `status` and `description`,
/// although the HTTP status is a success. Returns `None` if the service reports no problem.
fn response_problem(response: &trapi::Response) -> Option<String> {
    let status = response.status.as_str()?;
    if matches!(status, "Success" | "OK" | "Complete" | "Completed") {
        return None;
    }
    let description = response.description.as_str().unwrap_or_default();
    let text = format!("{status}: {description}");
    let text = to_single_line(text.trim_end_matches([':', ' ']));
    Some(truncate(&text, 300))
}
