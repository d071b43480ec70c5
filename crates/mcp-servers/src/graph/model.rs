//! The nodes and edges of knowledge graphs, in arguments, results and the database: validation,
//! default ids and merging.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::text::{to_single_line, truncate};

/// Maximum length of a node id, in characters. Longer ids are refused.
pub(crate) const MAX_NODE_ID: usize = 200;
/// Maximum length of an edge id, in characters. Longer ids are refused. A default id contains two
/// node ids, a label, a source and qualifiers.
pub(crate) const MAX_EDGE_ID: usize = 1500;
/// Maximum length of a label or type, in characters. Longer ones are truncated.
pub(crate) const MAX_LABEL: usize = 500;
/// Maximum size of the field `data` of a node or edge as JSON, in bytes. Larger data is refused.
pub(crate) const MAX_DATA: usize = 32 * 1024;
/// Maximum number of items in each list of the field `data`, such as `synonyms`, when two versions
/// of a node or edge are merged. Further items are dropped.
pub(crate) const MAX_LIST: usize = 200;

/// A thing, such as a gene, a disease or a drug.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Node {
    /// The id of the node, which edges and other calls contain: a CURIE such as `NCBIGene:4353`, or
    /// another name without spaces.
    #[schemars(length(min = 1, max = 200))]
    pub(crate) id: String,
    /// The display name of the node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 500))]
    pub(crate) label: Option<String>,
    /// The type of the node, such as `Gene` or `Disease`.
    #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 500))]
    pub(crate) kind: Option<String>,
    /// Further data of the node, such as synonyms.
    #[serde(default, skip_serializing_if = "is_default")]
    pub(crate) data: NodeData,
}

/// Further data of a node. Keys that are not listed here are stored unchanged.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
pub(crate) struct NodeData {
    /// All categories of the node, such as `biolink:Gene`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) categories: Vec<String>,
    /// Ids of the node in other databases.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) xrefs: Vec<String>,
    /// Other names of the node.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) synonyms: Vec<String>,
    /// The origin of the node's data, such as `bte`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) source: Option<String>,
    #[serde(flatten)]
    pub(crate) other: Map<String, Value>,
}

/// A relation between two nodes.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Edge {
    /// The id of the edge. By default, it consists of the source, the target, the label, the
    /// primary source and the qualifiers, so that one statement of one source is one edge.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 1500))]
    pub(crate) id: Option<String>,
    /// The id of the source node.
    #[schemars(length(min = 1, max = 200))]
    pub(crate) source: String,
    /// The id of the target node.
    #[schemars(length(min = 1, max = 200))]
    pub(crate) target: String,
    /// The predicate of the edge, such as `affects`.
    #[schemars(length(min = 1, max = 500))]
    pub(crate) label: String,
    /// Provenance and further data of the edge.
    #[serde(default, skip_serializing_if = "is_default")]
    pub(crate) data: EdgeData,
}

/// Provenance and further data of an edge. Keys that are not listed here are stored unchanged.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
pub(crate) struct EdgeData {
    /// The origin of the edge's data, such as `bte`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) source: Option<String>,
    /// The knowledge source of the statement, such as `infores:biogrid`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) primary_source: Option<String>,
    /// Publications that support the statement, such as `PMID:12345`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) publications: Vec<String>,
    /// The level of certainty of the statement, such as `knowledge_assertion` or `prediction`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) knowledge_level: Option<String>,
    /// The kind of agent that found the statement, such as `manual_agent` or `text_mining_agent`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) agent_type: Option<String>,
    /// Qualifiers of the statement, such as `object_direction_qualifier: increased`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) qualifiers: BTreeMap<String, String>,
    /// All knowledge sources between the primary source and this graph.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) provenance: Vec<Provenance>,
    #[serde(flatten)]
    pub(crate) other: Map<String, Value>,
}

/// One knowledge source of a statement.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
pub(crate) struct Provenance {
    /// The information resource, such as `infores:biogrid`.
    pub(crate) resource_id: String,
    /// The role of the resource, such as `primary_knowledge_source`.
    pub(crate) resource_role: String,
    /// The information resources from which this resource took the statement.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) upstream_resource_ids: Vec<String>,
    /// URLs of web pages that contain the statement.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) source_record_urls: Vec<String>,
}

impl Node {
    /// Validates the node and normalizes its label and type. The error describes the problem for
    /// the model.
    pub(crate) fn validate_node(mut self) -> Result<Self, String> {
        check_node_id("id", &self.id)?;
        self.label = self.label.as_deref().and_then(normalize_name);
        let kind = self.kind.as_deref().map(strip_biolink);
        self.kind = kind.and_then(normalize_name);
        check_data_size(&self.data)?;
        Ok(self)
    }

    /// Merges a newer version of the node into this one. The label, the type and other single
    /// values of the newer version replace the older values, unless the newer value is missing.
    /// Lists contain the items of both versions.
    pub(crate) fn merge_node(mut self, newer: Self) -> Self {
        replace_if_some(&mut self.label, newer.label);
        replace_if_some(&mut self.kind, newer.kind);
        let (data, newer) = (&mut self.data, newer.data);
        append_missing_items(&mut data.categories, newer.categories);
        append_missing_items(&mut data.xrefs, newer.xrefs);
        append_missing_items(&mut data.synonyms, newer.synonyms);
        replace_if_some(&mut data.source, newer.source);
        data.other.extend(newer.other);
        self
    }
}

impl Edge {
    /// Validates the edge, normalizes its label, and sets its id if it has none. The error
    /// describes the problem for the model.
    pub(crate) fn validate_edge(mut self) -> Result<Self, String> {
        check_node_id("source", &self.source)?;
        check_node_id("target", &self.target)?;
        self.label = normalize_name(strip_biolink(&self.label)).ok_or("its label is blank")?;
        check_data_size(&self.data)?;
        let id = self.id.take().unwrap_or_else(|| self.default_edge_id());
        if id.chars().any(char::is_control) || id.trim() != id {
            return Err(
                "its id contains control characters, or starts or ends with a space".to_owned(),
            );
        }
        if id.chars().count() > MAX_EDGE_ID {
            return Err(format!(
                "its id would have more than {MAX_EDGE_ID} characters; give it a shorter one"
            ));
        }
        self.id = Some(id);
        Ok(self)
    }

    /// Returns the default id of the edge, in the format of the BTE service: primary source,
    /// source, label, target and `name=value` for each qualifier, joined with `|`.
    pub(crate) fn default_edge_id(&self) -> String {
        let primary = self.data.primary_source.as_deref().unwrap_or("");
        let label = strip_biolink(&self.label);
        let parts = [primary, &self.source, label, &self.target];
        let mut id = parts.map(escape_id_part).join("|");
        for (name, value) in &self.data.qualifiers {
            id.push('|');
            id.push_str(&escape_id_part(&format!("{name}={value}")));
        }
        to_single_line(&id)
    }

    /// Merges a newer version of the edge: its source, target and label replace the older ones, and
    /// its data is merged with the older data.
    pub(crate) fn merge_edge(self, newer: Self) -> Self {
        let mut data = self.data;
        let newer_data = newer.data;
        replace_if_some(&mut data.source, newer_data.source);
        replace_if_some(&mut data.primary_source, newer_data.primary_source);
        append_missing_items(&mut data.publications, newer_data.publications);
        replace_if_some(&mut data.knowledge_level, newer_data.knowledge_level);
        replace_if_some(&mut data.agent_type, newer_data.agent_type);
        data.qualifiers.extend(newer_data.qualifiers);
        append_missing_items(&mut data.provenance, newer_data.provenance);
        data.other.extend(newer_data.other);
        Self { data, ..newer }
    }
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// Removes the prefix `biolink:` of a name, because `biolink:Gene` and `Gene` are equivalent.
pub(crate) fn strip_biolink(name: &str) -> &str {
    let name = name.trim();
    name.strip_prefix("biolink:").unwrap_or(name)
}

/// Converts a label or type to one line of at most [`MAX_LABEL`] characters. Returns `None` for a
/// blank text.
pub(crate) fn normalize_name(text: &str) -> Option<String> {
    let text = truncate(&to_single_line(text), MAX_LABEL);
    (!text.is_empty()).then_some(text)
}

/// Returns whether a text is a valid node id: 1 to [`MAX_NODE_ID`] characters without white space
/// and control characters.
pub(crate) fn is_node_id(id: &str) -> bool {
    !id.is_empty()
        && id.chars().count() <= MAX_NODE_ID
        && !id.chars().any(|it| it.is_whitespace() || it.is_control())
}

fn check_node_id(field: &str, id: &str) -> Result<(), String> {
    if is_node_id(id) {
        return Ok(());
    }
    Err(format!(
        "its {field} is {:?}; an id has 1 to {MAX_NODE_ID} characters and no spaces, such as \
         NCBIGene:4353",
        truncate(id, 60)
    ))
}

fn check_data_size(data: &impl Serialize) -> Result<(), String> {
    let json = serde_json::to_vec(data).map_err(|error| error.to_string())?;
    let size = json.len();
    if size > MAX_DATA {
        return Err(format!(
            "its data has {size} bytes as JSON; at most {MAX_DATA} are allowed"
        ));
    }
    Ok(())
}

/// Replaces `|`, which separates the parts of an edge id, with `%7C`, and `%` with `%25`.
fn escape_id_part(part: &str) -> String {
    part.replace('%', "%25").replace('|', "%7C")
}

fn replace_if_some<T>(old: &mut Option<T>, new: Option<T>) {
    if new.is_some() {
        *old = new;
    }
}

fn append_missing_items<T: PartialEq>(old: &mut Vec<T>, new: Vec<T>) {
    for item in new {
        if old.len() >= MAX_LIST {
            return;
        }
        if !old.contains(&item) {
            old.push(item);
        }
    }
}

#[cfg(test)]
#[path = "model_tests.rs"]
mod tests;
