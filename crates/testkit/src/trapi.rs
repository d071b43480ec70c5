//! A fake TRAPI service on loopback. It serves a small data set, validates every query against the
//! published schema, and fails as a test requests.
//!
//! Requires the feature `trapi`.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::missing_panics_doc,
    reason = "an invalid stand-in must fail the test"
)]

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

use axum::{
    Router,
    body::{Body, Bytes},
    extract::{Query, State},
    http::{HeaderMap, StatusCode, header},
    response::{IntoResponse, Response},
    routing::{get, post},
};
use jsonschema::Validator;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tokio::{net::TcpListener, sync::mpsc, task::JoinHandle};

/// A script that selects the reply by the number of the query (from 0).
type Script = Arc<dyn Fn(usize, &Value) -> Reply + Send + Sync>;

/// A reply.
#[derive(Debug)]
pub enum Reply {
    /// The answer from the data set.
    Knowledge,
    /// A fixed reply: status, headers, body.
    Body(u16, Vec<(&'static str, &'static str)>, Body),
    /// No reply.
    Silence,
}

/// A running service. Dropping it stops the service.
#[allow(missing_debug_implementations, reason = "tests do not print services")]
pub struct Service {
    /// The base address, including `/v1`.
    pub url: String,
    /// The address of the name resolver.
    pub names: String,
    shared: Arc<Shared>,
    /// One message for each query, and one for each unanswered query that the client cancelled.
    pub seen: mpsc::UnboundedReceiver<Seen>,
    server: JoinHandle<()>,
}

/// An event of a running service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Seen {
    /// A query arrived.
    Query,
    /// The client cancelled an unanswered query.
    GivenUp,
}

struct Shared {
    queries: Mutex<Vec<Value>>,
    metas: Mutex<usize>,
    script: Script,
    seen: mpsc::UnboundedSender<Seen>,
}

impl Reply {
    /// Creates a JSON reply with this status.
    pub fn json(status: u16, body: &Value) -> Self {
        let headers = vec![("content-type", "application/json")];
        Self::Body(status, headers, Body::from(body.to_string()))
    }

    /// Creates a text reply with this status and without a content type.
    pub fn text(status: u16, body: &'static str) -> Self {
        Self::Body(status, Vec::new(), Body::from(body))
    }

    /// Adds a header.
    #[must_use]
    pub fn with(mut self, name: &'static str, value: &'static str) -> Self {
        if let Self::Body(_, headers, _) = &mut self {
            headers.push((name, value));
        }
        self
    }
}

impl Service {
    /// Starts a service that answers every query.
    pub async fn good() -> Self {
        Self::scripted(|_, _| Reply::Knowledge).await
    }

    /// Starts a service with a script, which receives the number and the query graph of each query.
    pub async fn scripted(script: impl Fn(usize, &Value) -> Reply + Send + Sync + 'static) -> Self {
        let (sender, seen) = mpsc::unbounded_channel();
        let shared = Arc::new(Shared {
            queries: Mutex::default(),
            metas: Mutex::default(),
            script: Arc::new(script),
            seen: sender,
        });
        let router = Router::new()
            .route("/v1/query", post(query))
            .route("/v1/meta_knowledge_graph", get(meta_knowledge_graph))
            .route("/names/lookup", get(lookup))
            .with_state(Arc::clone(&shared));
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let server = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self {
            url: format!("http://{address}/v1"),
            names: format!("http://{address}/names"),
            shared,
            seen,
            server,
        }
    }

    /// Returns the query graphs received so far.
    pub fn queries(&self) -> Vec<Value> {
        self.shared.queries.lock().unwrap().clone()
    }

    /// Returns the number of reads of the meta knowledge graph.
    pub fn metas(&self) -> usize {
        *self.shared.metas.lock().unwrap()
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.server.abort();
    }
}

/// A guard of an unanswered query. The HTTP server drops it when the client cancels the query.
struct CancellationGuard(mpsc::UnboundedSender<Seen>);

impl Drop for CancellationGuard {
    fn drop(&mut self) {
        let _ = self.0.send(Seen::GivenUp);
    }
}

async fn query(State(shared): State<Arc<Shared>>, headers: HeaderMap, body: Bytes) -> Response {
    for name in [header::CONTENT_TYPE, header::ACCEPT] {
        if headers
            .get(&name)
            .is_none_or(|value| value != "application/json")
        {
            return reject(&format!("the header {name} must be application/json"));
        }
    }
    let Ok(body) = serde_json::from_slice::<Value>(&body) else {
        return reject("the query is not valid JSON");
    };
    if let Err(error) = query_validator().validate(&body) {
        let path = error.instance_path();
        return reject(&format!("invalid query at {path}: {error}"));
    }
    let graph = &body["message"]["query_graph"];
    for edge in graph["edges"].as_object().unwrap().values() {
        for end in ["subject", "object"] {
            if graph["nodes"].get(edge[end].as_str().unwrap()).is_none() {
                return reject("an edge refers to an unknown node");
            }
        }
    }
    let number = {
        let mut queries = shared.queries.lock().unwrap();
        queries.push(graph.clone());
        queries.len() - 1
    };
    let _ = shared.seen.send(Seen::Query);
    match (shared.script)(number, graph) {
        Reply::Knowledge => axum::Json(answer(graph)).into_response(),
        Reply::Body(status, headers, body) => {
            let mut response = body.into_response();
            *response.status_mut() = StatusCode::from_u16(status).unwrap();
            for (name, value) in headers {
                response.headers_mut().insert(name, value.parse().unwrap());
            }
            response
        }
        Reply::Silence => {
            let _guard = CancellationGuard(shared.seen.clone());
            std::future::pending().await
        }
    }
}

/// Returns a response of status 400. Its body is a JSON string, as TRAPI specifies.
fn reject(why: &str) -> Response {
    (StatusCode::BAD_REQUEST, axum::Json(why.to_owned())).into_response()
}

async fn meta_knowledge_graph(State(shared): State<Arc<Shared>>) -> Response {
    *shared.metas.lock().unwrap() += 1;
    let relation = |subject: &str, predicate: &str, object: &str| {
        json!({"subject": subject,
        "predicate": predicate, "object": object, "knowledge_types": ["lookup"]})
    };
    let graph = json!({
        "nodes": {
            "biolink:Gene": {"id_prefixes": ["NCBIGene", "ENSEMBL", "HGNC"]},
            "biolink:Disease": {"id_prefixes": ["MONDO", "DOID"], "attributes": null},
            "biolink:SmallMolecule": {"id_prefixes": ["PUBCHEM.COMPOUND", "CHEBI"]},
        },
        "edges": [
            relation("biolink:Gene", "biolink:interacts_with", "biolink:Gene"),
            relation("biolink:Gene", "biolink:causes", "biolink:Disease"),
            relation("biolink:SmallMolecule", "biolink:affects", "biolink:Gene"),
            relation("biolink:SmallMolecule", "biolink:treats", "biolink:Disease"),
        ],
    });
    axum::Json(graph).into_response()
}

/// The query parameters of the name resolver. Unknown parameters are an error, so that a test
/// notices misspelled ones. The real service ignores them.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Lookup {
    string: String,
    #[serde(rename = "autocomplete")]
    _autocomplete: bool,
    limit: usize,
    biolink_type: Option<String>,
    only_taxa: Option<String>,
}

/// Serves `/names/lookup` of the name resolver.
async fn lookup(Query(lookup): Query<Lookup>) -> Response {
    let start = lookup.string.to_lowercase();
    let found = NODES.iter().filter(|(_, label, category)| {
        let category = category.trim_start_matches("biolink:");
        let wanted = lookup.biolink_type.as_ref();
        label.to_lowercase().starts_with(&start) && wanted.is_none_or(|wanted| wanted == category)
    });
    let found = found.take(lookup.limit).map(|(id, label, category)| {
        json!({
            "curie": id, "label": label, "highlighting": {}, "synonyms": [label,
            label.to_lowercase()],
            "taxa": lookup.only_taxa.iter().collect::<Vec<_>>(),
            "types": [category, "biolink:NamedThing"], "score": 12.5, "clique_identifier_count": 3,
            "explain": null, "debug": null,
        })
    });
    axum::Json(found.collect::<Vec<_>>()).into_response()
}

/// Returns the validator of the body of `POST /query`: the published schema without the fields that
/// the server `bte` does not send, so that misspelled ones are detected
/// (`TranslatorReasonerAPI.yaml` at v1.5.0).
fn query_validator() -> Validator {
    let list = |pattern: &str| {
        let item = json!({"type": "string", "pattern": pattern});
        json!({"type": ["array", "null"], "minItems": 1, "items": item})
    };
    let object = |required: &[&str], properties: Value| {
        json!({"type": "object",
        "additionalProperties": false, "required": required, "properties": properties})
    };
    let map = |values: Value| {
        json!({"type": "object", "minProperties": 1,
        "additionalProperties": values})
    };
    let node = object(
        &[],
        json!({
            "ids": list("^[^:\\s]+:\\S+$"),
            "categories": list("^biolink:[A-Z][a-zA-Z]*$"),
        }),
    );
    let edge = object(
        &["subject", "object"],
        json!({
            "subject": {"type": "string"},
            "object": {"type": "string"},
            "predicates": list("^biolink:[a-z][a-z_]*$"),
        }),
    );
    let graph = object(
        &["nodes", "edges"],
        json!({"nodes": map(node), "edges": map(edge)}),
    );
    let message = object(&["query_graph"], json!({"query_graph": graph}));
    let body = json!({"message": message, "submitter": {"type": ["string", "null"]}});
    jsonschema::validator_for(&object(&["message"], body)).unwrap()
}

/// The nodes of the data set. Each item is an id, a name and a category.
const NODES: &[(&str, &str, &str)] = &[
    ("NCBIGene:4353", "MPO", "biolink:Gene"),
    ("NCBIGene:847", "CAT", "biolink:Gene"),
    ("NCBIGene:6648", "SOD2", "biolink:Gene"),
    ("NCBIGene:1", "A1BG", "biolink:Gene"),
    (
        "MONDO:0009640",
        "myeloperoxidase deficiency",
        "biolink:Disease",
    ),
    ("CHEBI:16240", "hydrogen peroxide", "biolink:SmallMolecule"),
    (
        "GO:0006952",
        "defense response",
        "biolink:BiologicalProcess",
    ),
];

/// The edges of the data set. Each item is a subject, a predicate, an object, a primary source, a
/// score, and any number of publications, separated by spaces.
const EDGES: [&str; 8] = [
    "NCBIGene:4353 biolink:interacts_with NCBIGene:847 infores:biogrid 0.8 PMID:11 PMID:12",
    "NCBIGene:4353 biolink:affects NCBIGene:847 infores:text-mining 0.6 PMID:12 PMID:13 PMID:14",
    "NCBIGene:4353 biolink:interacts_with NCBIGene:6648 infores:string 0.55",
    "NCBIGene:4353 biolink:occurs_together_in_literature_with NCBIGene:1 infores:semmeddb 0.99 \
     PMID:15",
    "NCBIGene:4353 biolink:affected_by CHEBI:16240 infores:ctd 0.7 PMID:16",
    "NCBIGene:4353 biolink:participates_in GO:0006952 infores:goa 0.65 PMID:17",
    "NCBIGene:4353 biolink:affects MONDO:0009640 infores:disgenet 0.9 PMID:18",
    "NCBIGene:847 biolink:affects CHEBI:16240 infores:ctd 0.5 PMID:19",
];

/// Splits an item of [`EDGES`] at the spaces.
fn split_edge(index: usize) -> Vec<&'static str> {
    EDGES[index].split(' ').collect()
}

/// Returns whether the category is the wanted one or a subcategory of it.
fn is_subcategory(category: &str, wanted: &str) -> bool {
    let wider: &[&str] = match category {
        "biolink:Disease" => &["biolink:DiseaseOrPhenotypicFeature"],
        "biolink:BiologicalProcess" => &["biolink:BiologicalProcessOrActivity"],
        _ => &[],
    };
    category == wanted || wanted == "biolink:NamedThing" || wider.contains(&wanted)
}

/// Returns whether a list of the query has a matching item. A missing list allows every value.
fn list_allows(list: &Value, matches: impl Fn(&str) -> bool) -> bool {
    let items = list.as_array();
    items.is_none_or(|items| items.iter().any(|it| matches(it.as_str().unwrap())))
}

fn node_matches(id: &str, wanted: &Value) -> bool {
    let node = NODES.iter().find(|(node, ..)| *node == id);
    node.is_some_and(|(.., category)| {
        list_allows(&wanted["ids"], |it| it == id)
            && list_allows(&wanted["categories"], |it| is_subcategory(category, it))
    })
}

/// Ids of nodes of the data set, by the keys of the query's nodes to which they are bound.
type Nodes = BTreeMap<String, String>;

/// Returns every way to bind nodes and edges of the data set to the nodes and edges of the query.
fn find_bindings(graph: &Value) -> Vec<(Nodes, BTreeMap<String, usize>)> {
    let mut partial = vec![(Nodes::new(), BTreeMap::new())];
    for (key, wanted) in graph["edges"].as_object().unwrap() {
        let ends = ["subject", "object"].map(|end| wanted[end].as_str().unwrap());
        let mut next = Vec::new();
        for (nodes, edges) in &partial {
            for index in 0..EDGES.len() {
                let fields = split_edge(index);
                let mut nodes = nodes.clone();
                let mut bound = ends.iter().zip([fields[0], fields[2]]);
                let fits = list_allows(&wanted["predicates"], |it| it == fields[1])
                    && bound.all(|(key, id)| {
                        let node = nodes.entry((*key).to_owned()).or_insert(id.to_owned());
                        node == id && node_matches(id, &graph["nodes"][*key])
                    });
                if fits {
                    let mut edges = edges.clone();
                    edges.insert(key.clone(), index);
                    next.push((nodes, edges));
                }
            }
        }
        partial = next;
    }
    partial
}

/// Returns the entry of a node in the knowledge graph of an answer.
fn knowledge_node(id: &str) -> Value {
    let (_, name, category) = NODES.iter().find(|(node, ..)| *node == id).unwrap();
    json!({
        "name": name, "categories": [category],
        "attributes": [
            {"attribute_type_id": "biolink:xref", "value": [id, format!("x:{name}")]},
            {"attribute_type_id": "biolink:synonym", "value": [name.to_lowercase()]},
            {"attribute_type_id": "biolink:in_taxon", "value": {"any": ["thing"]}},
        ],
    })
}

/// Returns the entry of an edge in the knowledge graph of an answer.
fn knowledge_edge(index: usize) -> Value {
    let fields = split_edge(index);
    let source = fields[3];
    json!({
        "subject": fields[0], "predicate": fields[1], "object": fields[2],
        "sources": [
            {"resource_id": source, "resource_role": "primary_knowledge_source"},
            {"resource_id": "infores:biothings-explorer",
             "resource_role": "aggregator_knowledge_source", "upstream_resource_ids": [source]},
        ],
        "attributes": [
            {"attribute_type_id": "biolink:publications", "value": fields[5..]},
            {"attribute_type_id": "biolink:knowledge_level", "value": "knowledge_assertion"},
            {"attribute_type_id": "biolink:agent_type", "value": "manual_agent"},
        ],
    })
}

/// Returns the answer to a query. Edges between the same nodes belong to one result.
fn answer(graph: &Value) -> Value {
    let binding = |id: &str| json!({"id": id, "attributes": []});
    let (mut nodes, mut edges) = (Map::new(), Map::new());
    let mut bound: Vec<Nodes> = Vec::new();
    let mut results: Vec<Value> = Vec::new();
    for (of_result, by_edge) in find_bindings(graph) {
        for id in of_result.values() {
            nodes.insert(id.clone(), knowledge_node(id));
        }
        let place = bound.iter().position(|other| *other == of_result);
        let place = place.unwrap_or_else(|| {
            let bindings = of_result.iter();
            let bindings = bindings.map(|(key, id)| (key.clone(), json!([binding(id)])));
            results.push(json!({
                "node_bindings": bindings.collect::<Map<_, _>>(),
                "analyses": [{
                    "resource_id": "infores:biothings-explorer", "score": 0.0,
                    "scoring_method": "https://example.org/scoring", "edge_bindings": {},
                }],
            }));
            bound.push(of_result);
            results.len() - 1
        });
        let analysis = &mut results[place]["analyses"][0];
        for (key, index) in by_edge {
            let id = format!("edge-{index}");
            let score = analysis["score"].as_f64().unwrap();
            let of_edge = split_edge(index)[4].parse().unwrap();
            analysis["score"] = json!(score.max(of_edge));
            let of_edge = analysis["edge_bindings"].as_object_mut().unwrap();
            let of_edge = of_edge.entry(key).or_insert_with(|| json!([]));
            let of_edge = of_edge.as_array_mut().unwrap();
            if !of_edge.contains(&binding(&id)) {
                of_edge.push(binding(&id));
            }
            edges.insert(id, knowledge_edge(index));
        }
    }
    json!({
        "message": {
            "query_graph": graph,
            "knowledge_graph": {"nodes": nodes, "edges": edges},
            "auxiliary_graphs": {},
            "results": results,
        },
        "status": "Success",
        "description": "Success.",
        "schema_version": "1.5.0",
        "biolink_version": "4.2.1",
        "workflow": [{"id": "lookup"}],
        "logs": [{"timestamp": "2026-11-21T12:00:00Z", "level": "INFO", "code": null,
        "message": "done"}],
    })
}
