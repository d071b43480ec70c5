//! Canonical text of a tool definition.
//!
//! The MCP host hashes this text to detect changed tools, and approvals store its hash. Both must
//! use the same text. This crate does not hash, so that it needs no hash library.

use serde_json::{Value, json};

use crate::ToolDefinition;

/// First line of every canonical text. If you change the format of the text, increase the number in
/// this line. Stored hashes then differ from new hashes, and the tools need a new approval.
const VERSION_PREFIX: &str = "switchboard tool definition 1\n";

impl ToolDefinition {
    /// Returns the original name, title, description, schemas and annotations as one canonical
    /// text, for hashing and comparison.
    ///
    /// Contains the tool's name on its server instead of an alias, and no server name. The order of
    /// keys in the schemas has no effect.
    pub fn canonical_text(&self) -> String {
        let annotations = &self.annotations;
        let definition = json!([
            self.original_name(),
            self.title,
            self.description,
            sort_object_keys(&self.input_schema),
            self.output_schema.as_ref().map(sort_object_keys),
            [
                annotations.read_only,
                annotations.destructive,
                annotations.idempotent,
                annotations.open_world,
            ],
        ]);
        format!("{VERSION_PREFIX}{definition}")
    }
}

fn sort_object_keys(value: &Value) -> Value {
    let mut sorted = value.clone();
    sorted.sort_all_objects();
    sorted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_of_keys_does_not_count_and_every_word_does() {
        let tool = |schema: Value, description: &str| {
            ToolDefinition::new("lend", description, schema).canonical_text()
        };
        let one = tool(json!({"type": "object", "required": ["a"]}), "Lends.");
        let other = tool(json!({"required": ["a"], "type": "object"}), "Lends.");
        assert_eq!(one, other);
        assert_ne!(
            one,
            tool(json!({"type": "object", "required": ["a"]}), "Lends!")
        );
        assert!(one.starts_with(VERSION_PREFIX), "{one}");
    }
}
