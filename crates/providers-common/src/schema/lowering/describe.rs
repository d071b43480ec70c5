//! Descriptions and replacements of constraints that a dialect does not support.

use serde_json::{Value, json};

use super::{Map, SchemaLowering, SchemaMembers, text, types::all_types};
use crate::schema::{
    change::ChangeKind,
    dialect_rules::{AnyValueRule, MAX_RECURSION},
    keywords::{implied_types, is_annotation, type_names},
    normalize::add_null_value,
};

impl SchemaLowering<'_, '_> {
    /// Describes a keyword's constraint as text in the schema's description.
    pub(super) fn describe_rule(&mut self, out: &mut Map, keyword: &str, value: &Value, at: &str) {
        if let Some(sentence) = text::describe_keyword(keyword, value) {
            text::append_text(out, &sentence);
            if !is_annotation(keyword) {
                let message = format!("`{keyword}` moved to the description");
                self.report_change(at, ChangeKind::Described, message);
            }
        }
    }

    /// Adds an annotation to `out` if the dialect accepts it. Otherwise moves its text to the
    /// description of `out`, or drops it if it has no meaning for a model.
    pub(super) fn put_annotation(&mut self, out: &mut Map, keyword: &str, value: &Value, at: &str) {
        match keyword {
            "description" => text::prepend_text(out, value),
            _ if self.rules.keeps_keyword(keyword) => out.set(keyword, value.clone()),
            // The title is dropped, because it mostly repeats the name of the property.
            "title" => {}
            _ => self.describe_rule(out, keyword, value, at),
        }
    }

    /// Returns the schema of a string that replaces `schema`, for a provider that does not support
    /// `schema`. The model writes the value as JSON text. `text`, such as "Any JSON value", is
    /// added to the description. The warning about the change begins with `what`, such as "any
    /// value".
    pub(super) fn encode_as_text(&mut self, schema: &Map, at: &str, what: &str, text: &str) -> Map {
        let message = format!("{what} is written as JSON text");
        self.report_change(at, ChangeKind::Encoded, message);
        self.string_schema(schema, at, text)
    }

    /// Returns the schema of a string that contains JSON text, or null if `schema` allows null.
    fn string_schema(&mut self, schema: &Map, at: &str, sentence: &str) -> Map {
        let name = if self.rules.openapi {
            "STRING"
        } else {
            "string"
        };
        let mut out = Map::new();
        out.set("type", name);
        let types = schema.get_types();
        if types.len() > 1 && types.contains(&"null") {
            self.make_nullable(&mut out);
        }
        for (keyword, value) in schema {
            match keyword.as_str() {
                "type" => {}
                _ if is_annotation(keyword) => self.put_annotation(&mut out, keyword, value, at),
                _ => self.describe_rule(&mut out, keyword, value, at),
            }
        }
        text::append_text(&mut out, &format!("{sentence}, written as JSON text."));
        out
    }

    /// Returns a replacement for a schema that exceeds a size limit. It keeps the type and the
    /// description and lists the keys. The message of the reported change begins with `excess`,
    /// such as "too many properties".
    pub(super) fn truncated_schema(&mut self, schema: &Map, at: &str, excess: &str) -> Map {
        let message = format!("{excess}: the nested schema is not enforced");
        self.report_change(at, ChangeKind::Truncated, message);
        // Only a chain of `$ref`s is followed. `allOf` is not merged here, because copies of many
        // large schemas would take long.
        let mut schema = schema;
        for _ in 0..MAX_RECURSION {
            let target = schema
                .get_text("$ref")
                .and_then(|it| self.normal.find_def(it));
            let Some(target) = target else { break };
            schema = target;
        }
        let types = schema
            .get("type")
            .cloned()
            .or_else(|| implied_types(schema));
        let any = (self.rules.any_value == AnyValueRule::AllTypes).then(all_types);
        let mut stub = Map::new();
        stub.extend(types.or(any).map(|types| ("type".to_owned(), types)));
        let sentence = match stub.get_types().as_slice() {
            ["object"] => "A JSON object",
            ["array"] => "A JSON array",
            _ => "Any JSON value",
        };
        for keyword in ["title", "description"] {
            if let Some(value) = schema.get(keyword) {
                stub.set(keyword, value.clone());
            }
        }
        let keys = text::object_summary(schema);
        if keys != "{}" {
            text::append_text(&mut stub, &format!("Its keys: {keys}."));
        }
        if self.rules.any_value == AnyValueRule::JsonText {
            return self.string_schema(&stub, at, sentence);
        }
        if !self.rules.keeps_keyword("title") {
            stub.shift_remove("title");
        }
        stub
    }

    /// Makes a converted schema allow null.
    pub(super) fn make_nullable(&self, schema: &mut Map) {
        if self.rules.openapi {
            schema.set("nullable", true);
        } else if let Some(Value::Array(alternatives)) = schema.get_mut("anyOf") {
            let has_null = |alternative: &Value| {
                let types = alternative.get("type").map(type_names);
                types.is_some_and(|types| types.contains(&"null"))
            };
            if !alternatives.iter().any(has_null) {
                alternatives.push(json!({"type": "null"}));
            }
        } else if schema.contains_key("$ref") {
            let reference = std::mem::take(schema);
            schema.set("anyOf", json!([reference, {"type": "null"}]));
        } else {
            add_null_value(schema);
        }
    }
}
