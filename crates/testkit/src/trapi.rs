//! A fake TRAPI service on loopback. It serves a small data set, validates every query and answer
//! against the published schema, and fails as a test requests.
//!
//! Requires the feature `trapi`.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::missing_panics_doc,
    reason = "a stand-in that breaks its own form fails the test"
)]

mod form;

use std::{
    collections::{BTreeMap, HashMap},
    fmt,
    sync::{Arc, Mutex},
};

use axum::{
    Router,
    body::{Body, Bytes},
    extract::State,
    http::{HeaderMap, StatusCode, Uri, header},
    response::{IntoResponse, Response},
    routing::{get, post},
};
use serde_json::{Map, Value, json};
use tokio::{net::TcpListener, sync::mpsc, task::JoinHandle};

/// A script that selects the reply by the number of the query (from 0).
type Script = Arc<dyn Fn(usize, &Value) -> Reply + Send + Sync>;

/// A reply.
pub enum Reply {
    /// The answer from the data set.
    Knowledge,
    /// A fixed reply: status, headers, body.
    Body(u16, Vec<(&'static str, &'static str)>, Body),
    /// No reply.
    Silence,
}

/// A running service. Dropping it stops the service.
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
    pub fn with(self, name: &'static str, value: &'static str) -> Self {
        match self {
            Self::Body(status, mut headers, body) => {
                headers.push((name, value));
                Self::Body(status, headers, body)
            }
            other => other,
        }
    }
}

impl Service {
    /// Starts a service that answers every query.
    pub async fn good() -> Self {
        Self::scripted(|_, _| Reply::Knowledge).await
    }

    /// Starts a service with a script, which receives the number and the query graph of each query.
    pub async fn scripted(script: impl Fn(usize, &Value) -> Reply + Send + Sync + 'static) -> Self {
        let (tell, seen) = mpsc::unbounded_channel();
        let shared = Arc::new(Shared {
            queries: Mutex::default(),
            metas: Mutex::default(),
            script: Arc::new(script),
            seen: tell,
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

impl fmt::Debug for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Service")
            .field("url", &self.url)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Knowledge => f.write_str("Knowledge"),
            Self::Body(status, ..) => f.debug_tuple("Body").field(status).finish_non_exhaustive(),
            Self::Silence => f.write_str("Silence"),
        }
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.server.abort();
    }
}

/// Reports the cancellation of an unanswered query.
struct Waiting(mpsc::UnboundedSender<Seen>);

impl Drop for Waiting {
    fn drop(&mut self) {
        let _ = self.0.send(Seen::GivenUp);
    }
}

async fn query(State(shared): State<Arc<Shared>>, headers: HeaderMap, body: Bytes) -> Response {
    for (name, expected) in [
        (header::CONTENT_TYPE, "application/json"),
        (header::ACCEPT, "application/json"),
    ] {
        if headers.get(&name).is_none_or(|value| value != expected) {
            return bad(&format!("the header {name} must be {expected}"));
        }
    }
    let Ok(body) = serde_json::from_slice::<Value>(&body) else {
        return bad("the query is not valid JSON");
    };
    if let Err(error) = form::query().validate(&body) {
        return bad(&format!(
            "the query breaks the form at {}: {error}",
            error.instance_path()
        ));
    }
    let graph = &body["message"]["query_graph"];
    for edge in graph["edges"].as_object().unwrap().values() {
        for end in ["subject", "object"] {
            if graph["nodes"].get(edge[end].as_str().unwrap()).is_none() {
                return bad("an edge names a node that is not there");
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
        Reply::Knowledge => {
            let answer = answer(graph);
            if let Err(error) = form::response().validate(&answer) {
                panic!("the stand-in breaks the form: {error}");
            }
            axum::Json(answer).into_response()
        }
        Reply::Body(status, headers, body) => {
            let mut response = body.into_response();
            *response.status_mut() = StatusCode::from_u16(status).unwrap();
            for (name, value) in headers {
                response.headers_mut().insert(name, value.parse().unwrap());
            }
            response
        }
        Reply::Silence => {
            let _waiting = Waiting(shared.seen.clone());
            std::future::pending().await
        }
    }
}

/// TRAPI specifies a string as the body of a 400.
fn bad(why: &str) -> Response {
    (StatusCode::BAD_REQUEST, axum::Json(why.to_owned())).into_response()
}

async fn meta_knowledge_graph(State(shared): State<Arc<Shared>>) -> Response {
    *shared.metas.lock().unwrap() += 1;
    let relation = |subject: &str, predicate: &str, object: &str| json!({"subject": subject, "predicate": predicate, "object": object, "knowledge_types": ["lookup"]});
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
    if let Err(error) = form::meta_knowledge_graph().validate(&graph) {
        panic!("the stand-in breaks the form: {error}");
    }
    axum::Json(graph).into_response()
}

/// Serves the name resolver. Validates its parameters like `FastAPI` and also refuses unknown ones.
async fn lookup(uri: Uri) -> Response {
    let parameters = parameters(uri.query().unwrap_or_default());
    let value = |name: &str| {
        let found = parameters.iter().find(|(key, _)| key == name);
        found.map(|(_, value)| value.clone())
    };
    let known = [
        "string",
        "autocomplete",
        "limit",
        "biolink_type",
        "only_taxa",
    ];
    let limit = value("limit").unwrap_or_default().parse::<usize>();
    let (Some(name), Ok(limit), true) = (
        value("string"),
        limit,
        parameters
            .iter()
            .all(|(key, _)| known.contains(&key.as_str())),
    ) else {
        let detail = json!({"detail": "a parameter is wrong"});
        return (StatusCode::UNPROCESSABLE_ENTITY, axum::Json(detail)).into_response();
    };
    let wanted = value("biolink_type");
    let found = NODES.iter().filter(|(_, label, category)| {
        let category = category.trim_start_matches("biolink:");
        label.to_lowercase().starts_with(&name.to_lowercase())
            && wanted.as_ref().is_none_or(|wanted| wanted == category)
    });
    let found = found.take(limit).map(|(id, label, category)| {
        json!({
            "curie": id, "label": label, "highlighting": {}, "synonyms": [label, label.to_lowercase()],
            "taxa": value("only_taxa").into_iter().collect::<Vec<_>>(),
            "types": [category, "biolink:NamedThing"], "score": 12.5, "clique_identifier_count": 3,
            "explain": null, "debug": null,
        })
    });
    axum::Json(found.collect::<Vec<_>>()).into_response()
}

/// Parses the names and values of a query string.
fn parameters(query: &str) -> Vec<(String, String)> {
    let pairs = query.split('&').filter(|pair| !pair.is_empty());
    pairs
        .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
        .map(|(name, value)| (decoded(name), decoded(value)))
        .collect()
}

/// Decodes form encoding: `+` is a space, and `%` starts a byte in hexadecimal.
fn decoded(text: &str) -> String {
    let text = text.replace('+', " ");
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        let byte = match (first, after.get(..2)) {
            (b'%', Some(digits)) => std::str::from_utf8(digits)
                .ok()
                .and_then(|digits| u8::from_str_radix(digits, 16).ok()),
            _ => None,
        };
        bytes.push(byte.unwrap_or(*first));
        rest = if byte.is_some() { &after[2..] } else { after };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Id, name, category.
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

/// Subject, predicate, object, primary source, publications, score.
#[expect(clippy::type_complexity, reason = "a table, read as one")]
const EDGES: &[(&str, &str, &str, &str, &[&str], f64)] = &[
    (
        "NCBIGene:4353",
        "biolink:interacts_with",
        "NCBIGene:847",
        "infores:biogrid",
        &["PMID:11", "PMID:12"],
        0.8,
    ),
    (
        "NCBIGene:4353",
        "biolink:affects",
        "NCBIGene:847",
        "infores:text-mining",
        &["PMID:12", "PMID:13", "PMID:14"],
        0.6,
    ),
    (
        "NCBIGene:4353",
        "biolink:interacts_with",
        "NCBIGene:6648",
        "infores:string",
        &[],
        0.55,
    ),
    (
        "NCBIGene:4353",
        "biolink:occurs_together_in_literature_with",
        "NCBIGene:1",
        "infores:semmeddb",
        &["PMID:15"],
        0.99,
    ),
    (
        "NCBIGene:4353",
        "biolink:affected_by",
        "CHEBI:16240",
        "infores:ctd",
        &["PMID:16"],
        0.7,
    ),
    (
        "NCBIGene:4353",
        "biolink:participates_in",
        "GO:0006952",
        "infores:goa",
        &["PMID:17"],
        0.65,
    ),
    (
        "NCBIGene:4353",
        "biolink:affects",
        "MONDO:0009640",
        "infores:disgenet",
        &["PMID:18"],
        0.9,
    ),
    (
        "NCBIGene:847",
        "biolink:affects",
        "CHEBI:16240",
        "infores:ctd",
        &["PMID:19"],
        0.5,
    ),
];

/// Returns whether the category matches one of the requested categories.
fn is_a(category: &str, wanted: &str) -> bool {
    let wider: &[&str] = match category {
        "biolink:Disease" => &["biolink:DiseaseOrPhenotypicFeature"],
        "biolink:BiologicalProcess" => &["biolink:BiologicalProcessOrActivity"],
        _ => &[],
    };
    category == wanted || wanted == "biolink:NamedThing" || wider.contains(&wanted)
}

fn node_fits(id: &str, wanted: &Value) -> bool {
    let category = NODES
        .iter()
        .find(|(node, ..)| *node == id)
        .map(|(.., category)| *category);
    let Some(category) = category else {
        return false;
    };
    let ids = wanted["ids"].as_array();
    let categories = wanted["categories"].as_array();
    ids.is_none_or(|ids| ids.iter().any(|it| it == id))
        && categories.is_none_or(|all| all.iter().any(|it| is_a(category, it.as_str().unwrap())))
}

/// A binding of known nodes to the nodes of the query.
type Nodes = BTreeMap<String, String>;

/// Returns every binding of known nodes and edges to the query.
fn matches(graph: &Value) -> Vec<(Nodes, BTreeMap<String, usize>)> {
    let mut partial = vec![(BTreeMap::new(), BTreeMap::new())];
    for (key, wanted) in graph["edges"].as_object().unwrap() {
        let (subject, object) = (
            wanted["subject"].as_str().unwrap(),
            wanted["object"].as_str().unwrap(),
        );
        let mut next = Vec::new();
        for (nodes, edges) in &partial {
            for (index, (from, predicate, to, ..)) in EDGES.iter().enumerate() {
                let predicates = wanted["predicates"].as_array();
                let free = |key: &str, id: &str, nodes: &Nodes| {
                    nodes.get(key).is_none_or(|taken| taken == id)
                };
                if predicates.is_none_or(|all| all.iter().any(|it| it == predicate))
                    && node_fits(from, &graph["nodes"][subject])
                    && node_fits(to, &graph["nodes"][object])
                    && free(subject, from, nodes)
                    && free(object, to, nodes)
                {
                    let mut nodes: Nodes = nodes.clone();
                    nodes.insert(subject.to_owned(), (*from).to_owned());
                    nodes.insert(object.to_owned(), (*to).to_owned());
                    let mut edges: BTreeMap<String, usize> = edges.clone();
                    edges.insert(key.clone(), index);
                    next.push((nodes, edges));
                }
            }
        }
        partial = next;
    }
    partial
}

fn answer(graph: &Value) -> Value {
    let binding = |id: &str| json!({"id": id, "attributes": []});
    let mut nodes = Map::new();
    let mut edges = Map::new();
    // Edges between the same nodes belong to one result.
    let mut results: Vec<(Nodes, BTreeMap<String, Vec<usize>>)> = Vec::new();
    let mut places: HashMap<Vec<String>, usize> = HashMap::new();
    for (bound, by_edge) in matches(graph) {
        for id in bound.values() {
            let (_, name, category) = NODES.iter().find(|(node, ..)| node == id).unwrap();
            nodes.insert(
                id.clone(),
                json!({
                    "name": name, "categories": [category],
                    "attributes": [
                        {"attribute_type_id": "biolink:xref", "value": [id, format!("x:{name}")]},
                        {"attribute_type_id": "biolink:synonym", "value": [name.to_lowercase()]},
                        {"attribute_type_id": "biolink:in_taxon", "value": {"any": ["thing"]}},
                    ],
                }),
            );
        }
        let key: Vec<String> = bound.values().cloned().collect();
        let place = *places.entry(key).or_insert_with(|| {
            results.push((bound, BTreeMap::new()));
            results.len() - 1
        });
        for (key, index) in by_edge {
            let (subject, predicate, object, source, publications, _) = EDGES[index];
            edges.insert(format!("edge-{index}"), json!({
                "subject": subject, "predicate": predicate, "object": object,
                "sources": [
                    {"resource_id": source, "resource_role": "primary_knowledge_source"},
                    {"resource_id": "infores:biothings-explorer",
                     "resource_role": "aggregator_knowledge_source", "upstream_resource_ids": [source]},
                ],
                "attributes": [
                    {"attribute_type_id": "biolink:publications", "value": publications},
                    {"attribute_type_id": "biolink:knowledge_level", "value": "knowledge_assertion"},
                    {"attribute_type_id": "biolink:agent_type", "value": "manual_agent"},
                ],
            }));
            let of_edge = results[place].1.entry(key).or_default();
            if !of_edge.contains(&index) {
                of_edge.push(index);
            }
        }
    }
    let results: Vec<Value> = results
        .into_iter()
        .map(|(bound, by_edge)| {
            let score = by_edge
                .values()
                .flatten()
                .map(|index| EDGES[*index].5)
                .fold(0.0, f64::max);
            let edge_bindings: Map<String, Value> = by_edge
                .into_iter()
                .map(|(key, indices)| {
                    let bindings = indices
                        .iter()
                        .map(|index| binding(&format!("edge-{index}")));
                    (key, Value::Array(bindings.collect()))
                })
                .collect();
            let node_bindings: Map<String, Value> = bound
                .into_iter()
                .map(|(key, id)| (key, json!([binding(&id)])))
                .collect();
            json!({
                "node_bindings": node_bindings,
                "analyses": [{
                    "resource_id": "infores:biothings-explorer", "score": score,
                    "scoring_method": "https://example.org/scoring", "edge_bindings": edge_bindings,
                }],
            })
        })
        .collect();
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
        "logs": [{"timestamp": "2026-11-21T12:00:00Z", "level": "INFO", "code": null, "message": "done"}],
    })
}
