//! What a tool's definition says, in one form: two definitions that say the same have the same text.
//!
//! The MCP host tells by it that a tool has changed, and an approval is a yes to it. Both hash it, and both
//! must mean the same; the hash itself is theirs, so that this crate needs none.

use serde_json::{Value, json};

use crate::ToolDefinition;

/// Stands before everything else. A change of what follows needs another one: what is stored then reads
/// as changed, and is asked about again.
const KIND: &str = "switchboard tool definition 1\n";

impl ToolDefinition {
    /// Its own name, title, description, schemas and annotations as one text, to be hashed and compared
    /// only. Not the server's name or the alias; and the order of keys does not count.
    pub fn identity(&self) -> String {
        let name = self
            .origin
            .as_ref()
            .map_or(self.name.as_str(), |origin| origin.tool.as_str());
        let annotations = &self.annotations;
        let definition = json!([
            name,
            self.title,
            self.description,
            sorted(&self.input_schema),
            self.output_schema.as_ref().map(sorted),
            [
                annotations.read_only,
                annotations.destructive,
                annotations.idempotent,
                annotations.open_world,
            ],
        ]);
        format!("{KIND}{definition}")
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_of_keys_does_not_count_and_every_word_does() {
        let tool = |schema: Value, description: &str| {
            ToolDefinition::new("lend", description, schema).identity()
        };
        let one = tool(json!({"type": "object", "required": ["a"]}), "Lends.");
        let other = tool(json!({"required": ["a"], "type": "object"}), "Lends.");
        assert_eq!(one, other);
        assert_ne!(
            one,
            tool(json!({"type": "object", "required": ["a"]}), "Lends!")
        );
        assert!(one.starts_with(KIND), "{one}");
    }
}
