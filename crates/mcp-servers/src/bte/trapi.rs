//! Wire types of TRAPI 1.5 (<https://github.com/NCATSTranslator/ReasonerAPI>,
//! `TranslatorReasonerAPI.yaml` at v1.5.0). Invalid parts of a response are skipped.

use std::collections::BTreeMap;

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, de::DeserializeOwned};
use serde_json::{Map, Value};

// The graph of a query. A doc comment would become part of the input schema of `query_bte`.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct QueryGraph {
    /// The nodes, by a short key such as n0. A node has ids (of particular things), categories (of
    /// unknown things) or both. At least one node has ids.
    pub(super) nodes: BTreeMap<String, QueryNode>,
    /// The relations of the nodes, by a short key such as e0.
    pub(super) edges: BTreeMap<String, QueryEdge>,
}

// A node of a query graph. Empty lists are omitted, because TRAPI does not allow empty lists.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct QueryNode {
    /// CURIEs of known things, such as `NCBIGene:4353`. The query has results for each of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 50))]
    pub(super) ids: Vec<String>,
    /// Biolink categories of the things, such as `biolink:Gene`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 20))]
    pub(super) categories: Vec<String>,
}

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct QueryEdge {
    /// The key of the node that is the subject of the relation.
    pub(super) subject: String,
    /// The key of the node that is the object of the relation.
    pub(super) object: String,
    /// Biolink predicates, such as `biolink:affects`. Omit them unless you need a particular
    /// relation.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 50))]
    pub(super) predicates: Vec<String>,
}

/// The response of a TRAPI service to a query.
#[derive(Debug, Deserialize)]
pub(super) struct Response {
    pub(super) message: Message,
    #[serde(default)]
    pub(super) status: Value,
    #[serde(default)]
    pub(super) description: Value,
    #[serde(default, deserialize_with = "deserialize_valid_items")]
    pub(super) logs: Vec<LogEntry>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Message {
    pub(super) knowledge_graph: Option<ResponseGraph>,
    /// The results. Each one is parsed separately as [`TrapiResult`] to skip invalid ones.
    pub(super) results: Option<Vec<Value>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ResponseGraph {
    /// The nodes by key. Each one is parsed separately as [`KnowledgeNode`] to skip invalid ones.
    pub(super) nodes: Map<String, Value>,
    /// The edges by key. Each one is parsed separately as [`KnowledgeEdge`] to skip invalid ones.
    pub(super) edges: Map<String, Value>,
}

#[derive(Debug, Deserialize)]
pub(super) struct KnowledgeNode {
    pub(super) name: Option<String>,
    pub(super) categories: Option<Vec<String>>,
    #[serde(default, deserialize_with = "deserialize_valid_items")]
    pub(super) attributes: Vec<Attribute>,
}

#[derive(Debug, Deserialize)]
pub(super) struct KnowledgeEdge {
    pub(super) subject: String,
    pub(super) object: String,
    pub(super) predicate: String,
    #[serde(default, deserialize_with = "deserialize_valid_items")]
    pub(super) attributes: Vec<Attribute>,
    #[serde(default, deserialize_with = "deserialize_valid_items")]
    pub(super) qualifiers: Vec<Qualifier>,
    #[serde(default, deserialize_with = "deserialize_valid_items")]
    pub(super) sources: Vec<RetrievalSource>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Attribute {
    pub(super) attribute_type_id: String,
    #[serde(default)]
    pub(super) value: Value,
}

#[derive(Debug, Deserialize)]
pub(super) struct Qualifier {
    pub(super) qualifier_type_id: String,
    pub(super) qualifier_value: String,
}

#[derive(Debug, Deserialize)]
pub(super) struct RetrievalSource {
    pub(super) resource_id: String,
    pub(super) resource_role: String,
    pub(super) upstream_resource_ids: Option<Vec<String>>,
    pub(super) source_record_urls: Option<Vec<String>>,
}

/// A query result: for each node and edge of the query graph, the nodes and edges that match it.
#[derive(Debug, Deserialize)]
pub(super) struct TrapiResult {
    pub(super) node_bindings: BTreeMap<String, Vec<Binding>>,
    #[serde(default, deserialize_with = "deserialize_valid_items")]
    pub(super) analyses: Vec<Analysis>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Analysis {
    pub(super) edge_bindings: BTreeMap<String, Vec<Binding>>,
    /// Score that the service assigned. Higher is better.
    pub(super) score: Option<f64>,
}

/// A reference to a node or an edge by its key in the knowledge graph of the response.
#[derive(Debug, Deserialize)]
pub(super) struct Binding {
    pub(super) id: String,
}

#[derive(Debug, Deserialize)]
pub(super) struct LogEntry {
    pub(super) level: Option<String>,
    pub(super) message: String,
}

/// The response to `GET /meta_knowledge_graph`, which lists the supported relations.
#[derive(Debug, Deserialize)]
pub(super) struct MetaKnowledgeGraph {
    pub(super) nodes: IndexMap<String, MetaNode>,
    #[serde(deserialize_with = "deserialize_valid_items")]
    pub(super) edges: Vec<Relation>,
}

#[derive(Debug, Deserialize)]
pub(super) struct MetaNode {
    #[serde(default)]
    pub(super) id_prefixes: Vec<String>,
}

// A supported relation. A doc comment would become part of the schema of the tool's output.
#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
pub(super) struct Relation {
    /// The category of the relation's subject.
    pub(super) subject: String,
    /// The predicate of the relation, such as `biolink:affects`.
    pub(super) predicate: String,
    /// The category of the relation's object.
    pub(super) object: String,
}

/// Parses one part of a response, such as a node or an edge. Returns `None` for a value that is not
/// a valid `T`.
pub(super) fn parse_response_part<T: DeserializeOwned>(value: Value) -> Option<T> {
    serde_json::from_value(value).ok()
}

/// Deserializes the valid items of a list and skips invalid ones. Returns an empty list for `null`.
pub(super) fn deserialize_valid_items<'de, D, T>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: DeserializeOwned,
{
    let items = Option::<Vec<Value>>::deserialize(deserializer)?;
    Ok(items
        .into_iter()
        .flatten()
        .filter_map(parse_response_part)
        .collect())
}
