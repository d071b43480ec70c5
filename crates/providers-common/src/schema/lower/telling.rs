//! What cannot be said in the schema, in words; and what stands for a schema that is not gone into.

use serde_json::{Value, json};

use super::{Lower, types::implied_types};
use crate::schema::{
    Map,
    change::ChangeKind,
    merge,
    rules::{Any, MAX_UNROLL},
    words,
};

impl Lower<'_, '_> {
    /// A value that the wire has no schema for, as JSON text in a string.
    pub(super) fn json_text(&mut self, schema: &Map, at: &str, what: &str, sentence: &str) -> Map {
        let message = format!("{what} is written as JSON text");
        self.report(at, ChangeKind::Encoded, message);
        let nullable = schema.get("type").is_some_and(|types| {
            let names = merge::names(types);
            names.len() > 1 && names.contains(&"null")
        });
        let mut out = Map::new();
        out.insert("type".to_owned(), self.string());
        if nullable {
            self.make_nullable(&mut out);
        }
        let mut rest = schema.clone();
        rest.retain(|keyword, _| {
            !matches!(keyword.as_str(), "type" | "properties" | "format" | "enum")
        });
        let mut told = Map::new();
        for (keyword, value) in &rest {
            if merge::is_annotation(keyword) {
                self.annotation(&mut told, keyword, value, at);
            } else {
                self.tell(&mut told, keyword, value, at);
            }
        }
        if let Some(properties) = schema.get("properties")
            && properties.as_object().is_some_and(|it| !it.is_empty())
        {
            let keys = format!("Its keys: {}.", words::form(schema));
            words::append(&mut told, &keys);
        }
        words::append(&mut told, &format!("{sentence}, written as JSON text."));
        out.extend(told);
        out
    }

    /// The name of the type of strings.
    pub(super) fn string(&self) -> Value {
        json!(if self.rules.openapi {
            "STRING"
        } else {
            "string"
        })
    }

    /// What stands for a schema that is not gone into.
    pub(super) fn cut(&mut self, schema: &Map, at: &str, why: &str) -> Map {
        let message = format!("{why}: what is within is not held to its schema");
        self.report(at, ChangeKind::Truncated, message);
        // Only looked at: a copy of each of many large schemas would take long.
        let mut schema = schema;
        for _ in 0..MAX_UNROLL {
            let reference = schema.get("$ref").and_then(Value::as_str);
            match reference.and_then(|reference| self.normal.target(reference)) {
                Some(target) => schema = target,
                None => break,
            }
        }
        let types = schema
            .get("type")
            .cloned()
            .or_else(|| implied_types(schema));
        let mut stub = Map::new();
        for keyword in ["title", "description"] {
            if let Some(text) = schema.get(keyword) {
                self.annotation(&mut stub, keyword, text, at);
            }
        }
        let keys = words::form(schema);
        if keys != "{}" {
            words::append(&mut stub, &format!("Its keys: {keys}."));
        }
        if self.rules.any == Any::JsonText {
            let what = match types.as_ref().map(merge::names).as_deref() {
                Some(["object"]) => "A JSON object",
                Some(["array"]) => "A JSON array",
                _ => "Any JSON value",
            };
            words::append(&mut stub, &format!("{what}, written as JSON text."));
            stub.shift_insert(0, "type".to_owned(), self.string());
            if let Some(types) = &types
                && merge::names(types).contains(&"null")
            {
                self.make_nullable(&mut stub);
            }
            return stub;
        }
        match (types, self.rules.any) {
            (Some(types), _) => {
                stub.shift_insert(0, "type".to_owned(), types);
            }
            (None, Any::AllTypes) => {
                let types = ["string", "number", "boolean", "null", "object", "array"];
                stub.shift_insert(0, "type".to_owned(), json!(types));
            }
            (None, _) => {}
        }
        stub
    }

    /// Says a keyword in the description.
    pub(super) fn tell(&mut self, out: &mut Map, keyword: &str, value: &Value, at: &str) {
        if let Some(sentence) = words::sentence(keyword, value) {
            words::append(out, &sentence);
            let message = format!("`{keyword}` is said in the description");
            self.report(at, ChangeKind::Described, message);
        } else {
            let message = format!("`{keyword}` left out");
            self.report(at, ChangeKind::Noise, message);
        }
    }

    /// An annotation: kept, told, or left out.
    pub(super) fn annotation(&mut self, out: &mut Map, keyword: &str, value: &Value, at: &str) {
        match keyword {
            "description" => words::prepend(out, value),
            _ if self.rules.keeps(keyword) => {
                out.insert(keyword.to_owned(), value.clone());
            }
            // It mostly repeats the name of the property.
            "title" => {
                self.report(at, ChangeKind::Noise, "`title` left out");
            }
            _ => {
                let sentence = words::sentence(keyword, value);
                let message = match &sentence {
                    Some(_) => format!("`{keyword}` is said in the description"),
                    None => format!("`{keyword}` left out"),
                };
                // Nothing is enforced by an annotation, so nothing is lost.
                let kind = match sentence {
                    Some(_) => ChangeKind::Rewritten,
                    None => ChangeKind::Noise,
                };
                if let Some(sentence) = sentence {
                    words::append(out, &sentence);
                }
                self.report(at, kind, message);
            }
        }
    }

    /// Adds null to what is taken already.
    pub(super) fn make_nullable(&self, schema: &mut Map) {
        if self.rules.openapi {
            if let Some(Value::Array(arms)) = schema.get_mut("anyOf") {
                for arm in arms.iter_mut().filter_map(Value::as_object_mut) {
                    arm.insert("nullable".to_owned(), json!(true));
                }
            } else {
                schema.insert("nullable".to_owned(), json!(true));
            }
            return;
        }
        let null = json!({"type": "null"});
        if let Some(Value::Array(arms)) = schema.get_mut("anyOf") {
            let says_null = |arm: &Value| {
                let types = arm.get("type").map(merge::names);
                types.is_some_and(|names| names.contains(&"null"))
            };
            if !arms.iter().any(says_null) {
                arms.push(null);
            }
            return;
        }
        if schema.contains_key("$ref") {
            let reference = Value::Object(std::mem::take(schema));
            schema.insert("anyOf".to_owned(), Value::Array(vec![reference, null]));
            return;
        }
        if let Some(Value::Array(values)) = schema.get_mut("enum")
            && !values.contains(&Value::Null)
        {
            values.push(Value::Null);
        }
        if let Some(constant) = schema.get("const").filter(|it| !it.is_null()).cloned() {
            schema.insert("enum".to_owned(), Value::Array(vec![constant, Value::Null]));
            schema.shift_remove("const");
        }
        match schema.get_mut("type") {
            Some(Value::String(name)) if name != "null" => {
                let name = std::mem::take(name);
                schema.insert("type".to_owned(), json!([name, "null"]));
            }
            Some(Value::Array(names)) if !names.contains(&json!("null")) => {
                names.push(json!("null"));
            }
            _ => {}
        }
    }
}
