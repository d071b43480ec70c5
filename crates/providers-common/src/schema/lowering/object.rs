//! Conversion of object schemas to the subset that a dialect accepts.

use std::collections::HashSet;

use serde_json::{Value, json};

use super::{Level, Map, SchemaLowering, SchemaMembers};
use crate::schema::{
    change::ChangeKind,
    dialect_rules::{AdditionalKeyRule, AnyValueRule},
    keywords::child_pointer,
};

impl SchemaLowering<'_, '_> {
    pub(super) fn lower_object(&mut self, mut schema: Map, at: &str, level: Level) -> Map {
        if level.objects >= self.rules.max_objects {
            return self.truncated_schema(&schema, at, "too many nested objects");
        }
        let is_root = at.is_empty();
        if !is_root && self.is_encoded_as_json(&schema) {
            return self.encode_as_text(&schema, at, "an object with any keys", "A JSON object");
        }
        let has_required = schema.get("required").is_some_and(Value::is_array);
        let has_properties = schema.contains_key("properties");
        let mut required: Vec<String> = schema.required_properties().map(str::to_owned).collect();
        let nodes_left = self.rules.max_nodes.saturating_sub(self.nodes);
        let count = schema.get_object("properties").map_or(0, Map::len) + required.len();
        if count > nodes_left && !is_root {
            return self.truncated_schema(&schema, at, "too many properties");
        }
        // The properties are moved, not copied, because they may be large.
        let mut properties = match schema.get_mut("properties") {
            Some(Value::Object(properties)) => std::mem::take(properties),
            _ => Map::new(),
        };
        for name in &required {
            if !properties.contains_key(name) {
                let additional = schema.get_object("additionalProperties");
                properties.set(name, additional.cloned().unwrap_or_default());
            }
        }
        if properties.len() > nodes_left {
            let message = format!("{} properties removed", properties.len() - nodes_left);
            self.report_change(at, ChangeKind::Truncated, message);
            properties = properties.into_iter().take(nodes_left).collect();
        }
        let properties = self.lower_properties(properties, &required, at, level);
        if self.rules.all_required {
            required = properties.keys().cloned().collect();
        } else {
            required.retain(|name| properties.contains_key(name));
        }
        let mut lowered = Map::new();
        let needs_properties = self.rules.additional == AdditionalKeyRule::Forbid
            || (is_root && self.rules.root_properties);
        let may_be_empty = !self.rules.openapi && (has_properties || needs_properties);
        if !properties.is_empty() || may_be_empty {
            lowered.set("properties", properties);
        }
        if has_required || self.rules.all_required || !required.is_empty() {
            lowered.set("required", required);
        }
        self.lower_extra_keys(&mut schema, &mut lowered, at, level);
        self.lower_keywords(schema, at, lowered)
    }

    fn lower_properties(
        &mut self,
        properties: Map,
        required: &[String],
        at: &str,
        level: Level,
    ) -> Map {
        self.nodes += properties.len();
        let required: HashSet<&String> = required.iter().collect();
        let mut lowered = Map::new();
        for (name, property) in properties {
            let at = child_pointer(at, "properties", &name);
            let Value::Object(property) = property else {
                continue;
            };
            let Some(mut property) = self.lower_schema_body(property, &at, level.enter_object())
            else {
                // A property without valid values is omitted. If it was required, the object schema
                // then allows more values.
                if required.contains(&name) {
                    let message = "removed, because no value is valid";
                    self.report_change(&at, ChangeKind::Widened, message);
                }
                continue;
            };
            if self.rules.all_required && !required.contains(&name) {
                self.make_nullable(&mut property);
                let message = "required; null means that the property is absent";
                self.report_change(&at, ChangeKind::Nullable, message);
            }
            lowered.set(&name, property);
        }
        lowered
    }

    /// Converts `additionalProperties` of an object schema as the dialect requires.
    fn lower_extra_keys(&mut self, schema: &mut Map, lowered: &mut Map, at: &str, level: Level) {
        let additional = schema.shift_remove("additionalProperties");
        let has_patterns = has_patterns(schema);
        match (self.rules.additional, additional) {
            (AdditionalKeyRule::Keep | AdditionalKeyRule::Omit, None)
            | (AdditionalKeyRule::Omit, Some(Value::Bool(true))) => {}
            (AdditionalKeyRule::Keep, Some(Value::Object(schema))) => {
                let at = format!("{at}/additionalProperties");
                let schema = self.lower_schema(schema, &at, level.enter_object());
                lowered.set(
                    "additionalProperties",
                    schema.map_or(json!(false), Value::Object),
                );
            }
            (AdditionalKeyRule::Keep, Some(value)) => {
                if value == false && has_patterns {
                    let message = "keys with a pattern became additional keys";
                    self.report_change(at, ChangeKind::Widened, message);
                }
                lowered.set("additionalProperties", value == true || has_patterns);
            }
            (AdditionalKeyRule::Forbid, additional) => {
                lowered.set("additionalProperties", false);
                if has_patterns || additional.is_some_and(|it| it != false) {
                    let message = "additional keys are not supported";
                    self.report_change(at, ChangeKind::Narrowed, message);
                }
            }
            (AdditionalKeyRule::Omit, Some(Value::Bool(false))) => {
                let message = "`additionalProperties: false` removed";
                self.report_change(at, ChangeKind::Dropped, message);
            }
            (AdditionalKeyRule::Omit, Some(value)) => {
                self.describe_rule(schema, "additionalProperties", &value, at);
            }
        }
    }

    /// Returns whether an object without named keys is replaced by a string with JSON text, because
    /// the dialect has no schema for such an object.
    fn is_encoded_as_json(&self, schema: &Map) -> bool {
        let is_closed = schema.is_false("additionalProperties") && !has_patterns(schema);
        let has_keys = schema
            .get_object("properties")
            .is_some_and(|it| !it.is_empty())
            || schema.required_properties().next().is_some();
        self.rules.any_value == AnyValueRule::JsonText
            && (self.rules.openapi || !is_closed)
            && !has_keys
    }
}

fn has_patterns(schema: &Map) -> bool {
    let patterns = schema.get_object("patternProperties");
    patterns.is_some_and(|patterns| !patterns.is_empty())
}
