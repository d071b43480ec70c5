//! What a tool's definition is, in a few characters: a yes is a yes to one definition.

use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use switchboard_domain::ToolDefinition;

/// Hashed in front of everything else. A change of what is hashed needs another one, and every yes is
/// asked for again.
const KIND: &[u8] = b"switchboard tool definition 1\n";

/// A tool's definition as 64 hexadecimal digits: SHA-256 of its own name, title, description, schemas and
/// annotations. Not of the server's name or the alias; and the order of keys does not count.
///
/// The MCP host tells changes by the same digits
/// ([`ToolHostChange::ToolRedefined`](switchboard_domain::ToolHostChange::ToolRedefined)).
pub fn fingerprint(tool: &ToolDefinition) -> String {
    let name = tool
        .origin
        .as_ref()
        .map_or(tool.name.as_str(), |origin| origin.tool.as_str());
    let annotations = &tool.annotations;
    let definition = json!([
        name,
        tool.title,
        tool.description,
        sorted(&tool.input_schema),
        tool.output_schema.as_ref().map(sorted),
        [
            annotations.read_only,
            annotations.destructive,
            annotations.idempotent,
            annotations.open_world,
        ],
    ]);
    let digest = Sha256::new()
        .chain_update(KIND)
        .chain_update(definition.to_string())
        .finalize();
    digest
        .iter()
        .flat_map(|byte| [byte >> 4, byte & 15])
        .filter_map(|digit| char::from_digit(u32::from(digit), 16))
        .collect()
}

/// The same with the keys of every object in the order of the alphabet.
fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(object) => {
            let mut entries: Vec<_> = object.iter().collect();
            entries.sort_unstable_by_key(|(key, _)| *key);
            let entries = entries
                .into_iter()
                .map(|(key, value)| (key.clone(), sorted(value)));
            Value::Object(entries.collect())
        }
        Value::Array(items) => items.iter().map(sorted).collect(),
        other => other.clone(),
    }
}
