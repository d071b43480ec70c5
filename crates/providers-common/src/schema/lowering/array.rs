//! Conversion of array schemas to the subset that a dialect accepts.

use serde_json::{Value, json};

use super::{Level, Map, SchemaLowering, SchemaMembers};
use crate::schema::keywords::limit_array_length;

impl SchemaLowering<'_, '_> {
    pub(super) fn lower_array(&mut self, mut schema: Map, at: &str, level: Level) -> Map {
        let prefix_length = schema.get_array("prefixItems").len();
        if schema.is_false("items") {
            schema.shift_remove("items");
            limit_array_length(&mut schema, prefix_length);
        }
        let mut lowered = Map::new();
        if prefix_length > 0 && !self.rules.keeps_keyword("prefixItems") {
            self.lower_tuple(&mut schema, at);
        } else if let Some(Value::Array(prefix)) = schema.get_mut("prefixItems") {
            let prefix = std::mem::take(prefix).into_iter().enumerate();
            let items = prefix.map(|(index, item)| {
                let Value::Object(item) = item else {
                    return Value::Object(Map::new());
                };
                let at = format!("{at}/prefixItems/{index}");
                Value::Object(
                    self.lower_schema(item, &at, level.enter_array())
                        .unwrap_or_default(),
                )
            });
            let items: Value = items.collect();
            lowered.set("prefixItems", items);
        }
        let items = match schema.get_mut("items") {
            Some(Value::Object(items)) => Some(std::mem::take(items)),
            _ => self.rules.needs_items.then(Map::new),
        };
        if let Some(items) = items {
            let at = format!("{at}/items");
            let items = self.lower_schema(items, &at, level.enter_array());
            let items = items.unwrap_or_else(|| {
                // No value is valid for `items`, so the array must end after the items of
                // `prefixItems`.
                limit_array_length(&mut schema, prefix_length);
                self.lower_any_value(Map::new(), &at)
            });
            lowered.set("items", items);
        }
        self.lower_keywords(schema, at, lowered)
    }

    /// Converts a tuple (`prefixItems`) to an array whose elements may match any item schema of the
    /// tuple, and describes the order of the items as text.
    fn lower_tuple(&mut self, schema: &mut Map, at: &str) {
        let prefix = schema.shift_remove("prefixItems").unwrap_or_default();
        let rest = schema.shift_remove("items");
        let items: Vec<&Value> = prefix
            .as_array()
            .into_iter()
            .flatten()
            .chain(&rest)
            .collect();
        schema.set("items", json!({ "anyOf": items }));
        self.describe_rule(schema, "prefixItems", &prefix, at);
    }
}
