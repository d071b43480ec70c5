//! What a tool's definition is, in a few characters, so that a change of it is seen.
//!
//! A tool is approved for what it says it is. A server may say something else tomorrow, or in the next
//! minute; whoever approves sees it by the fingerprint.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use switchboard_domain::ToolDefinition;

/// The fingerprints of tools as they were seen, by server and by the tools' own names. Stored between
/// runs, it is how a definition that has changed since is found:
/// [`HostOptions::known_tools`](crate::HostOptions::known_tools).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct KnownTools(pub BTreeMap<String, BTreeMap<String, String>>);

impl KnownTools {
    /// The fingerprint of a tool when it was last seen.
    pub fn get(&self, server: &str, tool: &str) -> Option<&str> {
        self.0.get(server)?.get(tool).map(String::as_str)
    }

    /// Those of one server.
    pub(crate) fn of(&self, server: &str) -> impl Iterator<Item = (&str, &str)> {
        let tools = self.0.get(server).into_iter().flatten();
        tools.map(|(tool, fingerprint)| (tool.as_str(), fingerprint.as_str()))
    }
}

/// A tool whose definition is not what it was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ToolChange {
    /// The server.
    pub server: String,
    /// The tool's own name.
    pub tool: String,
    /// Its name in the catalog.
    pub name: String,
    /// The [`fingerprint`] of what it was when it was first seen in this run, or as it was known from
    /// before.
    pub before: String,
    /// That of what it is now.
    pub now: String,
}

/// A tool's definition as 64 hexadecimal digits: SHA-256 of its
/// [identity](ToolDefinition::identity).
pub fn fingerprint(tool: &ToolDefinition) -> String {
    let digest = Sha256::digest(tool.identity());
    digest
        .iter()
        .flat_map(|byte| [byte >> 4, byte & 15])
        .filter_map(|digit| char::from_digit(u32::from(digit), 16))
        .collect()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use serde_json::json;
    use switchboard_domain::{ToolAnnotations, ToolOrigin};

    use super::*;

    fn tool() -> ToolDefinition {
        let schema =
            json!({"type": "object", "properties": {"id": {"type": "string", "minLength": 1}}});
        let mut tool = ToolDefinition::new("s__read", "Reads.", schema);
        tool.origin = Some(ToolOrigin {
            server: "s".to_owned(),
            tool: "read".to_owned(),
        });
        tool
    }

    #[test]
    fn it_is_the_same_in_every_version() {
        // Stored: a change of it makes every tool of every user a changed one.
        assert_eq!(
            fingerprint(&tool()),
            "ce4c06d338f377e241079ef20d1ad6aba8a8f33245182c00fd06a8ca8cf463bd"
        );
    }

    #[test]
    fn neither_the_server_nor_the_order_of_keys_counts() {
        let mut other = tool();
        other.name = "t__read".to_owned();
        other.origin = Some(ToolOrigin {
            server: "t".to_owned(),
            tool: "read".to_owned(),
        });
        other.input_schema =
            json!({"properties": {"id": {"minLength": 1, "type": "string"}}, "type": "object"});
        assert_eq!(fingerprint(&tool()), fingerprint(&other));
    }

    #[test]
    fn every_part_of_the_definition_counts() {
        let changes: [fn(&mut ToolDefinition); 10] = [
            |_| {},
            |tool| tool.origin.as_mut().unwrap().tool = "write".to_owned(),
            |tool| tool.title = Some("Read".to_owned()),
            |tool| tool.description.push_str(" And sends."),
            |tool| tool.input_schema["properties"]["id"]["minLength"] = json!(2),
            |tool| tool.output_schema = Some(json!({})),
            |tool| tool.annotations.read_only = Some(true),
            |tool| tool.annotations.destructive = Some(true),
            |tool| tool.annotations.idempotent = Some(true),
            |tool| {
                tool.annotations = ToolAnnotations {
                    open_world: Some(false),
                    ..ToolAnnotations::default()
                };
            },
        ];
        let all: HashSet<String> = changes
            .iter()
            .map(|change| {
                let mut tool = tool();
                change(&mut tool);
                fingerprint(&tool)
            })
            .collect();
        assert_eq!(all.len(), changes.len());
    }

    #[test]
    fn what_is_stored_is_read_again() {
        let tools = BTreeMap::from([("read".to_owned(), fingerprint(&tool()))]);
        let known = KnownTools(BTreeMap::from([("s".to_owned(), tools)]));
        let stored = serde_json::to_string(&known).unwrap();
        let read: KnownTools = serde_json::from_str(&stored).unwrap();
        assert_eq!(read, known);
        assert_eq!(known.get("s", "read"), Some(fingerprint(&tool()).as_str()));
        assert_eq!(known.get("s", "write"), None);
        assert_eq!(known.get("t", "read"), None);
    }
}
