//! Arrays.

use serde_json::{Value, json};

use super::{Level, Lower};
use crate::schema::{
    Map,
    change::{Change, ChangeKind},
    merge,
    normal::walk,
};

/// Gives every array `items` that are a schema: "array schema missing items".
pub(super) fn give_items(schema: &mut Map, at: &str, changes: &mut Vec<Change>) {
    walk::every_mut(schema, at, &mut |schema, at| {
        let types = schema.get("type").map(merge::names).unwrap_or_default();
        let is_array = types.contains(&"array") || schema.contains_key("prefixItems");
        match schema.get("items") {
            None if is_array => {
                let message = "an array says what its items are: any value";
                changes.push(Change::new(at, ChangeKind::Rewritten, message));
                schema.insert("items".to_owned(), json!({}));
            }
            Some(Value::Bool(_)) => {
                let message = "`items: false` is `maxItems`";
                changes.push(Change::new(at, ChangeKind::Rewritten, message));
                schema.insert("items".to_owned(), json!({}));
                limit(schema, listed(schema));
            }
            _ => {}
        }
    });
}

/// How many items are listed one by one.
fn listed(schema: &Map) -> usize {
    let listed = schema.get("prefixItems").and_then(Value::as_array);
    listed.map_or(0, Vec::len)
}

/// `items: false` as a number of items.
fn limit(schema: &mut Map, listed: usize) {
    let most = listed as u64;
    let said = schema.get("maxItems").and_then(Value::as_u64);
    let most = said.map_or(most, |said| said.min(most));
    schema.insert("maxItems".to_owned(), json!(most));
}

impl Lower<'_, '_> {
    pub(super) fn array(&mut self, mut schema: Map, at: &str, level: Level) -> Map {
        let count = listed(&schema);
        if schema.get("items") == Some(&json!(false)) {
            schema.shift_remove("items");
            limit(&mut schema, count);
            self.report(at, ChangeKind::Rewritten, "`items: false` is `maxItems`");
        }
        let mut structural = Map::new();
        let prefix = match schema.get_mut("prefixItems") {
            Some(Value::Array(prefix)) if self.rules.tuples => std::mem::take(prefix),
            Some(Value::Array(prefix)) => prefix.clone(),
            _ => Vec::new(),
        };
        if !prefix.is_empty() && !self.rules.tuples {
            self.tuple(&prefix, &mut schema, at);
        } else if !prefix.is_empty() {
            let lowered = prefix.into_iter().enumerate().map(|(index, item)| {
                let at = format!("{at}/prefixItems/{index}");
                let item = match item {
                    Value::Object(item) => self.node(item, &at, level.down()),
                    _ => None,
                };
                Value::Object(item.unwrap_or_default())
            });
            let lowered: Value = lowered.collect();
            structural.insert("prefixItems".to_owned(), lowered);
        }
        let items = match schema.get_mut("items") {
            Some(Value::Object(items)) => Some(std::mem::take(items)),
            _ if self.rules.needs_items => Some(Map::new()),
            _ => None,
        };
        if let Some(items) = items {
            let items_at = format!("{at}/items");
            let lowered = self.node(items, &items_at, level.down());
            let lowered = lowered.unwrap_or_else(|| {
                // No item is valid, so there is none; the wire wants to hear of items all the same.
                limit(&mut schema, count);
                self.any(Map::new(), &items_at)
            });
            structural.insert("items".to_owned(), Value::Object(lowered));
        }
        self.keywords_with(schema, at, structural)
    }

    /// A tuple as an array whose items are any of what it lists, with the positions in words.
    fn tuple(&mut self, prefix: &[Value], schema: &mut Map, at: &str) {
        schema.shift_remove("prefixItems");
        let rest = schema.shift_remove("items");
        let message = "a tuple is an array of any of its items, their order is said";
        self.report(at, ChangeKind::Described, message);
        let mut arms: Vec<Value> = Vec::new();
        for item in prefix.iter().chain(rest.as_ref()) {
            if !arms.contains(item) {
                arms.push(item.clone());
            }
        }
        let items = match arms.as_slice() {
            [one] => one.clone(),
            _ => json!({ "anyOf": arms }),
        };
        schema.insert("items".to_owned(), items);
        let positions: Vec<String> = prefix
            .iter()
            .enumerate()
            .map(|(index, item)| format!("{}: {}", index + 1, summary(item)))
            .collect();
        let sentence = format!("In this order: {}.", positions.join("; "));
        crate::schema::words::append(schema, &sentence);
    }
}

/// What an item of a tuple is, in a few words.
fn summary(item: &Value) -> String {
    let text = |keyword: &str| item.get(keyword).and_then(Value::as_str);
    let types = item.get("type").map(merge::names).unwrap_or_default();
    match text("description").or_else(|| text("title")) {
        Some(text) => crate::schema::words::excerpt(text.trim_end_matches('.')),
        None if types.is_empty() => crate::schema::words::excerpt(&item.to_string()),
        None => types.join(" or "),
    }
}
