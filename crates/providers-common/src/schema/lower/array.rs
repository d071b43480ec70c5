//! Arrays.

use serde_json::{Value, json};

use super::{Level, Lowering, Map, SchemaMembers};
use crate::schema::keywords::limit_array_length;

impl Lowering<'_, '_> {
    pub(super) fn array(&mut self, mut schema: Map, at: &str, level: Level) -> Map {
        let prefix_length = schema.list("prefixItems").len();
        if schema.is_false("items") {
            schema.shift_remove("items");
            limit_array_length(&mut schema, prefix_length);
        }
        let mut lowered = Map::new();
        if prefix_length > 0 && !self.rules.keeps("prefixItems") {
            self.tuple(&mut schema, at);
        } else if let Some(Value::Array(prefix)) = schema.get_mut("prefixItems") {
            let prefix = std::mem::take(prefix).into_iter().enumerate();
            let items = prefix.map(|(index, item)| {
                let Value::Object(item) = item else {
                    return Value::Object(Map::new());
                };
                let at = format!("{at}/prefixItems/{index}");
                Value::Object(self.schema(item, &at, level.in_array()).unwrap_or_default())
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
            let items = self.schema(items, &at, level.in_array());
            let items = items.unwrap_or_else(|| {
                // No item is valid after the prefix, so that the array must end there.
                limit_array_length(&mut schema, prefix_length);
                self.any_value(Map::new(), &at)
            });
            lowered.set("items", items);
        }
        self.keywords(schema, at, lowered)
    }

    /// Converts a tuple to an array that allows any of its items, and describes the order of the
    /// items.
    fn tuple(&mut self, schema: &mut Map, at: &str) {
        let prefix = schema.shift_remove("prefixItems").unwrap_or_default();
        let rest = schema.shift_remove("items");
        let items: Vec<&Value> = prefix
            .as_array()
            .into_iter()
            .flatten()
            .chain(&rest)
            .collect();
        schema.set("items", json!({ "anyOf": items }));
        self.describe(schema, "prefixItems", &prefix, at);
    }
}
