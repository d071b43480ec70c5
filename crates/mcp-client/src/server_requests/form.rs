//! A form that a server wants to be filled in: one level of strings, numbers, booleans and choices
//! (2025-11-25 and 2026-07-28, "Elicitation", "Requested Schema").

use serde_json::{Map, Value};
use switchboard_domain::{
    JsonObject, check_depth,
    json_schema::{Draft, SchemaOptions, SchemaValidator},
};

/// Faults named at once.
const MOST_FAULTS: usize = 5;

/// A form that a person can fill in.
pub(super) struct Form {
    properties: Map<String, Value>,
    validator: SchemaValidator,
}

impl Form {
    /// Fails with what is wrong with a schema that is no form.
    pub(super) fn read(schema: &Value) -> Result<Self, String> {
        check_depth(schema).map_err(|too_deep| format!("its form is {too_deep}"))?;
        let properties = schema.get("properties").and_then(Value::as_object);
        let properties = properties.ok_or("its form has no `properties`")?.clone();
        if let Some((name, _)) = properties.iter().find(|(_, field)| !is_a_field(field)) {
            return Err(format!(
                "`{name}` of its form is no text, number, yes or no, or choice"
            ));
        }
        let mut schema = schema.clone();
        if let Some(schema) = schema.as_object_mut() {
            // Forms are the same in every dialect.
            schema.remove("$schema");
        }
        let options = SchemaOptions {
            draft: Some(Draft::Draft202012),
            assert_formats: Some(true),
        };
        let validator = SchemaValidator::compile_with(&schema, options)
            .map_err(|error| format!("its form cannot be used: {error}"))?;
        Ok(Self {
            properties,
            validator,
        })
    }

    /// What is sent of what a person filled in: the form's fields only, with the defaults of those they
    /// did not touch. `null` is a field that they left empty. Fails with what does not fit.
    pub(super) fn fill(&self, mut given: JsonObject) -> Result<JsonObject, String> {
        let mut filled = JsonObject::new();
        for (name, field) in &self.properties {
            let value = given
                .remove(name)
                .or_else(|| field.get("default").cloned())
                .unwrap_or_default();
            if !value.is_null() {
                filled.insert(name.clone(), value);
            }
        }
        let filled = Value::Object(filled);
        let faults: Vec<String> = self
            .validator
            .errors(&filled)
            .map_err(|error| error.to_string())?
            .iter()
            .take(MOST_FAULTS)
            .map(|fault| match fault.instance_path().to_string() {
                place if place.is_empty() => fault.to_string(),
                place => format!("{}: {fault}", place.trim_start_matches('/')),
            })
            .collect();
        match filled {
            Value::Object(filled) if faults.is_empty() => Ok(filled),
            _ => Err(faults.join("; ")),
        }
    }
}

fn is_a_field(field: &Value) -> bool {
    let is_choice = |field: &Value| {
        ["enum", "oneOf", "anyOf"]
            .iter()
            .any(|key| field.get(key).is_some_and(Value::is_array))
    };
    match field.get("type").and_then(Value::as_str) {
        Some("string" | "number" | "integer" | "boolean") => true,
        Some("array") => field.get("items").is_some_and(is_choice),
        Some(_) => false,
        None => is_choice(field),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(value: Value) -> JsonObject {
        match value {
            Value::Object(object) => object,
            other => panic!("no object: {other}"),
        }
    }

    fn form() -> Form {
        Form::read(&json!({
            "$schema": "http://json-schema.org/draft-07/schema#",
            "type": "object",
            "properties": {
                "name": {"type": "string", "minLength": 2, "default": "Ada"},
                "mail": {"type": "string", "format": "email"},
                "age": {"type": "integer", "minimum": 0, "default": 36},
                "share": {"type": "number", "default": 0.5},
                "agreed": {"type": "boolean", "default": false},
                "colour": {"type": "string", "enum": ["red", "blue"], "default": "red"},
                "size": {"oneOf": [{"const": "s", "title": "Small"}, {"const": "l"}]},
                "days": {"type": "array", "maxItems": 1, "items": {"type": "string", "enum": ["mo", "tu"]}},
            },
            "required": ["name", "agreed"],
        }))
        .unwrap()
    }

    #[test]
    fn defaults_are_sent_for_what_was_not_touched() {
        let sent = form().fill(JsonObject::new()).unwrap();
        let expected =
            json!({"name": "Ada", "age": 36, "share": 0.5, "agreed": false, "colour": "red"});
        assert_eq!(Value::Object(sent), expected);
        // Emptied on purpose, and something that was not asked.
        let given =
            json!({"age": null, "colour": "blue", "size": "l", "days": ["tu"], "pin": 1234});
        let sent = form().fill(object(given)).unwrap();
        let expected = json!({
            "name": "Ada", "share": 0.5, "agreed": false, "colour": "blue", "size": "l", "days": ["tu"],
        });
        assert_eq!(Value::Object(sent), expected);
    }

    #[test]
    fn what_does_not_fit_is_not_sent() {
        for (given, expected) in [
            (json!({"name": "A"}), "name: "),
            (json!({"name": null}), "\"name\" is a required property"),
            (json!({"mail": "nobody"}), "mail: "),
            (json!({"age": -1}), "age: "),
            (json!({"age": "36"}), "age: "),
            (json!({"agreed": "yes"}), "agreed: "),
            (json!({"colour": "green"}), "colour: "),
            (json!({"size": "m"}), "size: "),
            (json!({"days": ["mo", "tu"]}), "days: "),
            (json!({"days": ["we"]}), "days/0: "),
        ] {
            let why = form().fill(object(given.clone())).unwrap_err();
            assert!(why.contains(expected), "{given}: {why}");
        }
    }

    #[test]
    fn a_form_is_one_level_deep() {
        for (schema, expected) in [
            (json!(null), "no `properties`"),
            (json!({"type": "object"}), "no `properties`"),
            (
                json!({"properties": {"a": {"type": "object"}}}),
                "`a` of its form",
            ),
            (
                json!({"properties": {"a": {"$ref": "http://h/s"}}}),
                "`a` of its form",
            ),
            (
                json!({"properties": {"a": {"type": "array", "items": {"type": "string"}}}}),
                "`a`",
            ),
            (
                json!({"properties": {"a": {"type": "string", "minLength": "x"}}}),
                "cannot be used",
            ),
            (json!({"properties": {"a": 7}}), "`a` of its form"),
        ] {
            let why = Form::read(&schema).err().unwrap_or_default();
            assert!(why.contains(expected), "{schema}: {why}");
        }
        assert!(Form::read(&json!({"properties": {}})).is_ok());
    }
}
