//! A small bundled data set that replaces services that cannot be reached.

use std::collections::{BTreeSet, HashSet};

use indexmap::{IndexMap, IndexSet};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{
    biolink::{CATEGORIES, PREDICATES, normalize_category},
    client::BteError,
    name_lookup::ResolverMatch,
    trapi::{
        Message, MetaKnowledgeGraph, MetaNode, QueryGraph, QueryNode, Relation, Response,
        ResponseGraph,
    },
};
use crate::text::truncate;

/// The organism of all genes of the sample.
const HUMAN: &str = "NCBITaxon:9606";
/// Knowledge source that the provenance of every edge contains, so that users recognize edges of
/// the sample.
const SOURCE: &str = "infores:switchboard-sample";

/// The sample data set.
#[derive(Debug, Deserialize)]
pub(super) struct Sample {
    /// Maps each predicate to its inverse, such as `biolink:affects` to `biolink:affected_by`.
    inverses: IndexMap<String, String>,
    /// Maps the field `kind` of a node, such as `Gene`, to the categories of the node. The most
    /// specific category comes first.
    kinds: IndexMap<String, Vec<String>>,
    nodes: IndexMap<String, SampleNode>,
    edges: Vec<SampleEdge>,
}

#[derive(Debug, Deserialize)]
struct SampleNode {
    name: String,
    kind: String,
    #[serde(default)]
    synonyms: Vec<String>,
}

/// An edge of the sample: its subject, predicate, object and primary source.
#[derive(Debug, Deserialize)]
struct SampleEdge(String, String, String, String);

impl Sample {
    pub(super) fn load() -> Result<Self, serde_json::Error> {
        serde_json::from_str(include_str!("../../data/bte-sample.json"))
    }

    fn categories(&self, id: &str) -> &[String] {
        let kind = self
            .nodes
            .get(id)
            .and_then(|node| self.kinds.get(&node.kind));
        kind.map_or(&[], Vec::as_slice)
    }

    /// Finds nodes by a part of their id, name or synonyms. Nodes with exactly this id, name or
    /// synonym come first. Ignores case.
    pub(super) fn find_names(
        &self,
        name: &str,
        category: Option<&str>,
        taxon: Option<&str>,
    ) -> Result<Vec<ResolverMatch>, BteError> {
        let category = category.and_then(normalize_category);
        Self::check_is_known("category", category.as_ref(), &self.known_categories())?;
        let wanted = name.trim().to_lowercase();
        let mut found = Vec::new();
        for (id, node) in &self.nodes {
            let mut names = vec![id.to_lowercase(), node.name.to_lowercase()];
            names.extend(node.synonyms.iter().map(|it| it.to_lowercase()));
            let categories = self.categories(id);
            let taxon_of_gene = (node.kind == "Gene").then(|| HUMAN.to_owned());
            let taxa: Vec<String> = taxon_of_gene.into_iter().collect();
            if names.iter().any(|it| it.contains(&wanted))
                && category.as_ref().is_none_or(|it| categories.contains(it))
                && taxon.is_none_or(|taxon| taxa.is_empty() || taxa[0] == taxon)
            {
                let entry = ResolverMatch {
                    curie: id.clone(),
                    label: Some(node.name.clone()),
                    types: categories.to_vec(),
                    taxa,
                    synonyms: node.synonyms.clone(),
                };
                found.push((!names.contains(&wanted), entry));
            }
        }
        found.sort_by_key(|(is_partial, _)| *is_partial);
        Ok(found.into_iter().map(|(_, entry)| entry).collect())
    }

    /// Returns the response to a query with two nodes and one edge. Returns an error for any other
    /// query.
    pub(super) fn query(&self, query: &QueryGraph) -> Result<Response, BteError> {
        let ends = query.edges.iter().next().and_then(|(key, edge)| {
            let (subject, object) = (&edge.subject, &edge.object);
            Some((
                key,
                edge,
                query.nodes.get(subject)?,
                query.nodes.get(object)?,
            ))
        });
        let Some((key, edge, subject, object)) = ends.filter(|_| query.edges.len() == 1) else {
            let problem = "The sample data answer only queries with two nodes and one edge.";
            return Err(BteError::permanent_failure(problem.to_owned()));
        };
        self.check_node(subject)?;
        self.check_node(object)?;
        let pairs = self.inverses.iter().flat_map(|(one, other)| [one, other]);
        let known = pairs.map(String::as_str).chain(PREDICATES).collect();
        Self::check_is_known("predicate", &edge.predicates, &known)?;
        let is_wanted =
            |predicate: &String| edge.predicates.is_empty() || edge.predicates.contains(predicate);
        let (mut nodes, mut edges, mut results) = (Map::new(), Map::new(), Vec::new());
        for (number, found) in self.edges.iter().enumerate() {
            let SampleEdge(from, predicate, to, source) = found;
            let inverse = self.inverses.get(predicate);
            let bound = if is_wanted(predicate)
                && self.matches_query_node(subject, from)
                && self.matches_query_node(object, to)
            {
                (from, to)
            } else if inverse.is_some_and(is_wanted)
                && self.matches_query_node(subject, to)
                && self.matches_query_node(object, from)
            {
                (to, from)
            } else {
                continue;
            };
            for id in [from, to] {
                let node = self.nodes.get(id).map(|node| {
                    json!({"name": node.name, "categories": self.categories(id), "attributes": [
                        {"attribute_type_id": "biolink:synonym", "value": node.synonyms},
                    ]})
                });
                nodes.insert(id.clone(), node.unwrap_or_default());
            }
            let id = format!("sample-{number}");
            let statement = json!({
                "subject": from, "predicate": predicate, "object": to,
                "sources": [
                    {"resource_id": source, "resource_role": "primary_knowledge_source"},
                    {"resource_id": SOURCE, "resource_role": "aggregator_knowledge_source",
                     "upstream_resource_ids": [source]},
                ],
            });
            edges.insert(id.clone(), statement);
            results.push(json!({
                "node_bindings": {
                    &edge.subject: [{"id": bound.0}],
                    &edge.object: [{"id": bound.1}],
                },
                "analyses": [{"edge_bindings": {key: [{"id": id}]}}],
            }));
        }
        Ok(Response {
            message: Message {
                knowledge_graph: Some(ResponseGraph { nodes, edges }),
                results: Some(results),
            },
            status: Value::Null,
            description: Value::Null,
            logs: Vec::new(),
        })
    }

    /// Returns the relations between the most specific categories of the sample.
    pub(super) fn meta_knowledge_graph(&self) -> MetaKnowledgeGraph {
        let mut prefixes: IndexMap<String, IndexSet<String>> = IndexMap::new();
        for id in self.nodes.keys() {
            if let (Some(category), Some((prefix, _))) =
                (self.categories(id).first(), id.split_once(':'))
            {
                let known = prefixes.entry(category.clone()).or_default();
                known.insert(prefix.to_owned());
            }
        }
        let mut seen = HashSet::new();
        let category = |id: &str| self.categories(id).first().cloned().unwrap_or_default();
        let relations = self
            .edges
            .iter()
            .map(|SampleEdge(from, predicate, to, _)| Relation {
                subject: category(from),
                predicate: predicate.clone(),
                object: category(to),
            });
        let is_new = |it: &Relation| {
            seen.insert((it.subject.clone(), it.predicate.clone(), it.object.clone()))
        };
        MetaKnowledgeGraph {
            edges: relations.filter(is_new).collect(),
            nodes: prefixes
                .into_iter()
                .map(|(category, prefixes)| {
                    let id_prefixes = prefixes.into_iter().collect();
                    (category, MetaNode { id_prefixes })
                })
                .collect(),
        }
    }

    fn matches_query_node(&self, node: &QueryNode, id: &String) -> bool {
        let categories = self.categories(id);
        (node.ids.is_empty() || node.ids.contains(id))
            && (node.categories.is_empty()
                || node.categories.iter().any(|it| categories.contains(it)))
    }

    fn known_categories(&self) -> BTreeSet<&str> {
        let own = self.kinds.values().flatten().map(String::as_str);
        own.chain(CATEGORIES).collect()
    }

    /// Returns an error if the sample contains none of the node's ids, or if one of its categories
    /// is unknown.
    fn check_node(&self, node: &QueryNode) -> Result<(), BteError> {
        Self::check_is_known("category", &node.categories, &self.known_categories())?;
        if node.ids.is_empty() || node.ids.iter().any(|id| self.nodes.contains_key(id)) {
            return Ok(());
        }
        let names: Vec<&str> = self.nodes.values().map(|node| node.name.as_str()).collect();
        Err(BteError::permanent_failure(format!(
            "The sample data do not contain {}. They contain only {}.",
            truncate(&node.ids.join(" or "), 200),
            names.join(", ")
        )))
    }

    fn check_is_known<'a>(
        what: &str,
        names: impl IntoIterator<Item = &'a String>,
        known: &BTreeSet<&str>,
    ) -> Result<(), BteError> {
        let mut names = names.into_iter();
        let Some(unknown) = names.find(|name| !known.contains(name.as_str())) else {
            return Ok(());
        };
        let known: Vec<&str> = known.iter().copied().collect();
        Err(BteError::permanent_failure(format!(
            "The {what} {:?} is unknown. Known in the sample data: {}.",
            truncate(unknown, 60),
            known.join(", ")
        )))
    }
}

#[cfg(test)]
#[path = "sample_tests.rs"]
mod tests;
