//! Nodes and edges as tools take and give them, and how two descriptions of the same thing become
//! one.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The longest id of a node, in characters.
pub(crate) const MAX_NODE_ID: usize = 200;
/// The longest id of an edge, in characters: two nodes, a label, a source and qualifiers fit in.
pub(crate) const MAX_EDGE_ID: usize = 1500;
/// The longest label or type, in characters.
pub(crate) const MAX_LABEL: usize = 500;
/// The most that `data` of one node or edge may take as JSON, in bytes.
pub(crate) const MAX_DATA: usize = 32 * 1024;
/// The most items that a list in `data` grows to when descriptions are joined.
pub(crate) const MAX_LIST: usize = 200;

/// A thing: a gene, a disease, a drug, or whatever the conversation is about.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Node {
    /// What the node is called in edges and in other calls: a CURIE such as `NCBIGene:4353`, or any
    /// other name without spaces.
    #[schemars(length(min = 1, max = 200))]
    pub(crate) id: String,
    /// Its name for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 500))]
    pub(crate) label: Option<String>,
    /// What kind of thing it is, such as `Gene` or `Disease`.
    #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 500))]
    pub(crate) kind: Option<String>,
    /// More about it.
    #[serde(default, skip_serializing_if = "NodeData::is_empty")]
    pub(crate) data: NodeData,
}

/// More about a node. Other keys are kept as they are.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
pub(crate) struct NodeData {
    /// Every category that it has, such as `biolink:Gene`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) categories: Vec<String>,
    /// Its ids elsewhere.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) xrefs: Vec<String>,
    /// Its other names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) synonyms: Vec<String>,
    /// Where it was learnt, such as `bte`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) source: Option<String>,
    #[serde(flatten)]
    pub(crate) other: Map<String, Value>,
}

/// A statement about two things.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Edge {
    /// What the edge is called. Without it, it is made of the source, the target, the label and the
    /// primary source, so that the same statement of the same source stays one edge.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 1500))]
    pub(crate) id: Option<String>,
    /// The id of the node that the statement is about.
    #[schemars(length(min = 1, max = 200))]
    pub(crate) source: String,
    /// The id of the node at the other end.
    #[schemars(length(min = 1, max = 200))]
    pub(crate) target: String,
    /// How the two are related (the predicate), such as `affects`.
    #[schemars(length(min = 1, max = 500))]
    pub(crate) label: String,
    /// Where it is from, and more about it.
    #[serde(default, skip_serializing_if = "EdgeData::is_empty")]
    pub(crate) data: EdgeData,
}

/// Where an edge is from, and more about it. Other keys are kept as they are.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
pub(crate) struct EdgeData {
    /// How it was learnt, such as `bte`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) source: Option<String>,
    /// Who states it, such as `infores:biogrid`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) primary_source: Option<String>,
    /// Publications that support it, such as `PMID:12345`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) publications: Vec<String>,
    /// How firm it is, such as `knowledge_assertion` or `prediction`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) knowledge_level: Option<String>,
    /// Who found it, such as `manual_agent` or `text_mining_agent`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) agent_type: Option<String>,
    /// What narrows it, such as `object_direction_qualifier: increased`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) qualifiers: BTreeMap<String, String>,
    /// The way it took from who states it to here.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) provenance: Vec<Provenance>,
    #[serde(flatten)]
    pub(crate) other: Map<String, Value>,
}

/// One station on the way of a statement.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
pub(crate) struct Provenance {
    /// The information resource, such as `infores:biogrid`.
    pub(crate) resource_id: String,
    /// What it did, such as `primary_knowledge_source`.
    pub(crate) resource_role: String,
    /// Where it had it from.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) upstream_resource_ids: Vec<String>,
    /// Pages on which it can be read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) source_record_urls: Vec<String>,
}

impl Node {
    /// Brings it into the form in which it is kept, or says what is wrong with it.
    pub(crate) fn check(mut self) -> Result<Self, String> {
        check_node_id("id", &self.id)?;
        self.label = self.label.as_deref().and_then(name);
        self.kind = self.kind.as_deref().map(plain).and_then(name);
        check_data(&self.data)?;
        Ok(self)
    }

    /// What it is with what `newer` says of it: what is not said stays, lists are joined.
    pub(crate) fn join(mut self, newer: Self) -> Self {
        replace(&mut self.label, newer.label);
        replace(&mut self.kind, newer.kind);
        let (data, newer) = (&mut self.data, newer.data);
        extend(&mut data.categories, newer.categories);
        extend(&mut data.xrefs, newer.xrefs);
        extend(&mut data.synonyms, newer.synonyms);
        replace(&mut data.source, newer.source);
        data.other.extend(newer.other);
        self
    }
}

impl Edge {
    /// Brings it into the form in which it is kept, or says what is wrong with it.
    pub(crate) fn check(mut self) -> Result<Self, String> {
        check_node_id("source", &self.source)?;
        check_node_id("target", &self.target)?;
        self.label = name(plain(&self.label)).ok_or("its label is blank")?;
        check_data(&self.data)?;
        let id = self.id.take().unwrap_or_else(|| self.made_id());
        if id.chars().any(char::is_control) || id.trim() != id {
            return Err("its id has control characters or begins or ends with a space".to_owned());
        }
        if id.chars().count() > MAX_EDGE_ID {
            return Err(format!(
                "its id would have more than {MAX_EDGE_ID} characters; give it a shorter one"
            ));
        }
        self.id = Some(id);
        Ok(self)
    }

    /// The same for the same statement of the same source, as in the system that this follows:
    /// `primary source|source|label|target`, then the qualifiers.
    pub(crate) fn made_id(&self) -> String {
        let primary = self.data.primary_source.as_deref().unwrap_or("");
        let mut id = [primary, &self.source, plain(&self.label), &self.target]
            .map(escape)
            .join("|");
        for (name, value) in &self.data.qualifiers {
            id.push('|');
            id.push_str(&escape(&format!("{name}={value}")));
        }
        one_line(&id)
    }

    /// What it is with what `newer` says of it. The ends and the label are the newer ones.
    pub(crate) fn join(self, newer: Self) -> Self {
        let mut data = self.data;
        let said = newer.data;
        replace(&mut data.source, said.source);
        replace(&mut data.primary_source, said.primary_source);
        extend(&mut data.publications, said.publications);
        replace(&mut data.knowledge_level, said.knowledge_level);
        replace(&mut data.agent_type, said.agent_type);
        data.qualifiers.extend(said.qualifiers);
        extend(&mut data.provenance, said.provenance);
        data.other.extend(said.other);
        Self { data, ..newer }
    }
}

impl NodeData {
    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl EdgeData {
    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Biolink's own names without their prefix: `biolink:Gene` and `Gene` are the same.
pub(crate) fn plain(name: &str) -> &str {
    let name = name.trim();
    name.strip_prefix("biolink:").unwrap_or(name)
}

/// A label or a type as it is kept; none if nothing is left of it.
pub(crate) fn name(text: &str) -> Option<String> {
    let text = cut(&one_line(text), MAX_LABEL);
    (!text.is_empty()).then_some(text)
}

/// Names come from far away: without control characters, so that each stays on its line.
pub(crate) fn one_line(text: &str) -> String {
    let text = text.replace(|it: char| it.is_control(), " ");
    text.trim().to_owned()
}

/// At most so many characters; `…` stands for what is missing.
pub(crate) fn cut(text: &str, most: usize) -> String {
    if text.chars().nth(most).is_none() {
        return text.to_owned();
    }
    let kept: String = text.chars().take(most.saturating_sub(1)).collect();
    format!("{kept}…")
}

/// Whether a node may be called this.
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
        cut(id, 60)
    ))
}

fn check_data(data: &impl Serialize) -> Result<(), String> {
    let size = serde_json::to_vec(data)
        .map_err(|error| error.to_string())?
        .len();
    if size > MAX_DATA {
        return Err(format!(
            "its data has {size} bytes as JSON; at most {MAX_DATA} are possible"
        ));
    }
    Ok(())
}

/// `|` joins the parts of an id, so it must not be in one.
fn escape(part: &str) -> String {
    part.replace('%', "%25").replace('|', "%7C")
}

fn replace<T>(old: &mut Option<T>, new: Option<T>) {
    if new.is_some() {
        *old = new;
    }
}

fn extend<T: PartialEq>(old: &mut Vec<T>, new: Vec<T>) {
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
