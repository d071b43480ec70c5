//! The form of an elicitation: a flat object of strings, numbers, booleans and choices (MCP
//! 2025-11-25 and 2026-07-28, "Elicitation", "Requested Schema").

use serde_json::{Map, Value};
use switchboard_domain::{
    JsonObject, check_depth,
    json_schema::{Draft, SchemaOptions, SchemaValidator},
};

/// Maximum number of validation errors in the message that asks a person to correct a form.
const MAX_ERRORS: usize = 5;

/// Form of an elicitation: its fields, and the validator of its flat JSON Schema.
pub(super) struct Form {
    properties: Map<String, Value>,
    validator: SchemaValidator,
}

impl Form {
    /// Parses the schema of an elicitation form. Returns an error with the reason if it is invalid.
    pub(super) fn parse(schema: &Value) -> Result<Self, String> {
        check_depth(schema).map_err(|too_deep| format!("the form is {too_deep}"))?;
        let properties = schema.get("properties").and_then(Value::as_object);
        let properties = properties.ok_or("the form has no `properties`")?.clone();
        if let Some((name, _)) = properties.iter().find(|(_, field)| !is_field_schema(field)) {
            return Err(format!(
                "field `{name}` of the form is not a string, number, boolean or choice"
            ));
        }
        let mut schema = schema.clone();
        if let Some(schema) = schema.as_object_mut() {
            // The JSON Schema dialect in `$schema` is ignored, because the keywords of elicitation
            // forms mean the same in every dialect.
            schema.remove("$schema");
        }
        let options = SchemaOptions {
            draft: Some(Draft::Draft202012),
            assert_formats: Some(true),
        };
        let validator = SchemaValidator::compile_with_options(&schema, options)
            .map_err(|error| format!("the form is invalid: {error}"))?;
        Ok(Self {
            properties,
            validator,
        })
    }

    /// Completes and validates the values of a form. Missing values get the defaults of their
    /// fields. Removes `null` values and values of unknown fields. Returns an error with the reason
    /// for invalid values.
    pub(super) fn complete_form(&self, mut given: JsonObject) -> Result<JsonObject, String> {
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
        let errors = self.validator.list_errors(&filled);
        let errors = errors.map_err(|error| error.to_string())?;
        let errors = errors.iter().take(MAX_ERRORS);
        let errors = errors.map(|error| match error.instance_path().as_str() {
            "" => error.to_string(),
            path => format!("{}: {error}", path.trim_start_matches('/')),
        });
        let errors: Vec<String> = errors.collect();
        match filled {
            Value::Object(filled) if errors.is_empty() => Ok(filled),
            _ => Err(errors.join("; ")),
        }
    }
}

fn is_field_schema(field: &Value) -> bool {
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
            other => panic!("not an object: {other}"),
        }
    }

    fn form() -> Form {
        Form::parse(&json!({
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
    fn missing_fields_have_their_defaults() {
        let sent = form().complete_form(JsonObject::new()).unwrap();
        let expected =
            json!({"name": "Ada", "age": 36, "share": 0.5, "agreed": false, "colour": "red"});
        assert_eq!(Value::Object(sent), expected);
        // An emptied field and an unknown field are not sent.
        let given =
            json!({"age": null, "colour": "blue", "size": "l", "days": ["tu"], "pin": 1234});
        let sent = form().complete_form(object(given)).unwrap();
        let expected = json!({
            "name": "Ada", "share": 0.5, "agreed": false, "colour": "blue", "size": "l", "days": ["tu"],
        });
        assert_eq!(Value::Object(sent), expected);
    }

    #[test]
    fn invalid_content_is_rejected() {
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
            let why = form().complete_form(object(given.clone())).unwrap_err();
            assert!(why.contains(expected), "{given}: {why}");
        }
    }

    #[test]
    fn a_form_has_one_level() {
        for (schema, expected) in [
            (json!(null), "no `properties`"),
            (json!({"type": "object"}), "no `properties`"),
            (
                json!({"properties": {"a": {"type": "object"}}}),
                "field `a` of the form",
            ),
            (
                json!({"properties": {"a": {"$ref": "http://h/s"}}}),
                "field `a` of the form",
            ),
            (
                json!({"properties": {"a": {"type": "array", "items": {"type": "string"}}}}),
                "field `a`",
            ),
            (
                json!({"properties": {"a": {"type": "string", "minLength": "x"}}}),
                "is invalid",
            ),
            (json!({"properties": {"a": 7}}), "field `a` of the form"),
        ] {
            let why = Form::parse(&schema).err().unwrap_or_default();
            assert!(why.contains(expected), "{schema}: {why}");
        }
        assert!(Form::parse(&json!({"properties": {}})).is_ok());
    }
}
