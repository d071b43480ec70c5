//! Wire types of TRAPI 1.5 (<https://github.com/NCATSTranslator/ReasonerAPI>,
//! `TranslatorReasonerAPI.yaml` at v1.5.0). Responses may contain single invalid nodes, edges or
//! results, which are skipped.

use std::{collections::BTreeMap, fmt, marker::PhantomData};

use serde::{
    Deserialize, Deserializer, Serialize,
    de::{IgnoredAny, MapAccess, Visitor},
};
use serde_json::Value;

/// The body of `POST /query`.
#[derive(Debug, Serialize)]
pub(super) struct Query<'a> {
    message: QueryMessage<'a>,
    submitter: &'static str,
}

#[derive(Debug, Serialize)]
struct QueryMessage<'a> {
    query_graph: &'a QueryGraph,
}

/// A query as a graph with unknown nodes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct QueryGraph {
    pub(super) nodes: BTreeMap<String, QueryNode>,
    pub(super) edges: BTreeMap<String, QueryEdge>,
}

/// A known node (`ids`) or an unknown node of a category. TRAPI does not allow empty lists.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub(super) struct QueryNode {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) ids: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) categories: Vec<String>,
}

/// A relation of two nodes of the query.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct QueryEdge {
    pub(super) subject: String,
    pub(super) object: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) predicates: Vec<String>,
}

impl<'a> Query<'a> {
    pub(super) fn new(query_graph: &'a QueryGraph) -> Self {
        Self {
            message: QueryMessage { query_graph },
            submitter: "switchboard",
        }
    }
}

/// The response to a query.
#[derive(Debug, Deserialize)]
pub(super) struct Response {
    pub(super) message: Message,
    #[serde(default)]
    pub(super) status: Lenient<String>,
    #[serde(default)]
    pub(super) description: Lenient<String>,
    #[serde(default)]
    pub(super) logs: Items<LogEntry>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Message {
    #[serde(default)]
    pub(super) knowledge_graph: Option<KnowledgeGraph>,
    #[serde(default)]
    pub(super) results: Items<ResultEntry>,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct KnowledgeGraph {
    #[serde(default)]
    pub(super) nodes: Entries<KnowledgeNode>,
    #[serde(default)]
    pub(super) edges: Entries<KnowledgeEdge>,
}

#[derive(Debug, Deserialize)]
pub(super) struct KnowledgeNode {
    pub(super) name: Option<String>,
    #[serde(default)]
    pub(super) categories: Option<Vec<String>>,
    #[serde(default)]
    pub(super) attributes: Items<Attribute>,
}

#[derive(Debug, Deserialize)]
pub(super) struct KnowledgeEdge {
    pub(super) subject: String,
    pub(super) object: String,
    pub(super) predicate: String,
    #[serde(default)]
    pub(super) attributes: Items<Attribute>,
    #[serde(default)]
    pub(super) qualifiers: Items<Qualifier>,
    #[serde(default)]
    pub(super) sources: Items<RetrievalSource>,
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
    #[serde(default)]
    pub(super) upstream_resource_ids: Option<Vec<String>>,
    #[serde(default)]
    pub(super) source_record_urls: Option<Vec<String>>,
}

/// One result: the nodes bound to the query nodes, and the supporting edges.
#[derive(Debug, Deserialize)]
pub(super) struct ResultEntry {
    pub(super) node_bindings: BTreeMap<String, Vec<Binding>>,
    #[serde(default)]
    pub(super) analyses: Items<Analysis>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Analysis {
    pub(super) edge_bindings: BTreeMap<String, Vec<Binding>>,
    /// Higher is better.
    #[serde(default)]
    pub(super) score: Option<f64>,
}

/// The key of a node or edge of the knowledge graph.
#[derive(Debug, Deserialize)]
pub(super) struct Binding {
    pub(super) id: String,
}

#[derive(Debug, Deserialize)]
pub(super) struct LogEntry {
    #[serde(default)]
    pub(super) level: Option<String>,
    pub(super) message: String,
}

/// The response to `GET /meta_knowledge_graph`: the supported relations.
#[derive(Debug, Deserialize)]
pub(super) struct MetaKnowledgeGraph {
    pub(super) nodes: Entries<MetaNode>,
    pub(super) edges: Items<MetaEdge>,
}

#[derive(Debug, Deserialize)]
pub(super) struct MetaNode {
    #[serde(default)]
    pub(super) id_prefixes: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(super) struct MetaEdge {
    pub(super) subject: String,
    pub(super) predicate: String,
    pub(super) object: String,
}

/// A value, or `None` for another form.
#[derive(Debug)]
pub(super) struct Lenient<T>(pub(super) Option<T>);

/// The valid items of a list. `null` is an empty list.
#[derive(Debug)]
pub(super) struct Items<T> {
    pub(super) valid: Vec<T>,
    /// Number of invalid items.
    pub(super) invalid: usize,
}

/// The valid entries of a dictionary, in their order. `null` is an empty dictionary.
#[derive(Debug)]
pub(super) struct Entries<T> {
    pub(super) valid: Vec<(String, T)>,
    /// Number of invalid items.
    pub(super) invalid: usize,
}

impl<T> Default for Lenient<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<T> Default for Items<T> {
    fn default() -> Self {
        Self {
            valid: Vec::new(),
            invalid: 0,
        }
    }
}

impl<T> Default for Entries<T> {
    fn default() -> Self {
        Self {
            valid: Vec::new(),
            invalid: 0,
        }
    }
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Either<T> {
    Valid(T),
    Invalid(IgnoredAny),
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Lenient<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(match Either::<T>::deserialize(deserializer)? {
            Either::Valid(value) => Self(Some(value)),
            Either::Invalid(IgnoredAny) => Self(None),
        })
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Items<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let items = Option::<Vec<Lenient<T>>>::deserialize(deserializer)?.unwrap_or_default();
        let number = items.len();
        let valid: Vec<T> = items.into_iter().filter_map(|item| item.0).collect();
        Ok(Self {
            invalid: number - valid.len(),
            valid,
        })
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Entries<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Each<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Each<T> {
            type Value = Entries<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a dictionary")
            }

            fn visit_unit<E>(self) -> Result<Entries<T>, E> {
                Ok(Entries::default())
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Entries<T>, A::Error> {
                let mut entries = Entries::default();
                while let Some((key, value)) = map.next_entry::<String, Lenient<T>>()? {
                    match value.0 {
                        Some(value) => entries.valid.push((key, value)),
                        None => entries.invalid += 1,
                    }
                }
                Ok(entries)
            }
        }
        deserializer.deserialize_any(Each(PhantomData))
    }
}
