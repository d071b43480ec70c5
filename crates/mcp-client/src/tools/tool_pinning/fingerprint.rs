//! Fingerprints of tool definitions, which show whether a definition has changed. A person approves
//! a tool because of its definition, but the server can change the definition at any time.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use switchboard_domain::ToolDefinition;

/// Pinned fingerprints of tool definitions, by server name and by the name of the tool on its
/// server. The application loads them with [`ToolPinFile::load`](crate::ToolPinFile::load) and
/// passes them to the host in [`HostOptions::tool_pins`](crate::HostOptions::tool_pins).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ToolPins(pub BTreeMap<String, BTreeMap<String, String>>);

impl ToolPins {
    /// Returns the pinned fingerprint of a tool. Returns `None` if the tool is not pinned.
    pub fn get(&self, server: &str, tool: &str) -> Option<&str> {
        self.0.get(server)?.get(tool).map(String::as_str)
    }

    /// Returns the pinned fingerprints of one server, by the name of the tool on this server.
    pub(crate) fn server_pins(&self, server: &str) -> impl Iterator<Item = (&str, &str)> {
        let tools = self.0.get(server).into_iter().flatten();
        tools.map(|(tool, fingerprint)| (tool.as_str(), fingerprint.as_str()))
    }
}

/// Tool whose current definition differs from the pinned one: the first definition that the host
/// received, or the last one that a person accepted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ToolChange {
    /// Configured name of the server that offers the tool.
    pub server: String,
    /// Original name of the tool on its server.
    pub tool: String,
    /// Catalog name of the tool, by which models call it.
    pub name: String,
    /// Pinned [`fingerprint`] of the tool's definition.
    pub before: String,
    /// Fingerprint of the tool's current definition.
    pub now: String,
}

/// Returns the fingerprint of a tool definition: the SHA-256 hash of its [canonical
/// text](ToolDefinition::canonical_text), as 64 hexadecimal digits.
pub fn fingerprint(tool: &ToolDefinition) -> String {
    to_hex(&Sha256::digest(tool.canonical_text()))
}

/// Encodes bytes as lowercase hexadecimal digits.
pub(crate) fn to_hex(bytes: &[u8]) -> String {
    let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    let digits = digits.filter_map(|digit| char::from_digit(u32::from(digit), 16));
    digits.collect()
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
    fn fingerprints_are_stable() {
        // Fingerprints are stored: another algorithm would change every tool of every user.
        assert_eq!(
            fingerprint(&tool()),
            "ce4c06d338f377e241079ef20d1ad6aba8a8f33245182c00fd06a8ca8cf463bd"
        );
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
}
