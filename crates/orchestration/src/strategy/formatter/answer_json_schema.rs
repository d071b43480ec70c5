//! JSON Schemas that callers require for answers.

use std::sync::Arc;

use serde_json::Value;
use switchboard_domain::{check_depth, json_schema::SchemaValidator};

/// A compiled JSON Schema for answers. Cheap to clone.
#[derive(Debug, Clone)]
pub struct AnswerSchema {
    schema: Arc<Value>,
    validator: Arc<SchemaValidator>,
}

/// Error about a JSON Schema that is invalid or not supported.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the JSON Schema of the answer cannot be used: {reason}")]
pub struct InvalidSchemaError {
    /// Reason why the schema cannot be used.
    pub reason: String,
}

impl AnswerSchema {
    /// Compiles a JSON Schema. Returns an error for an invalid schema, and for references to other
    /// documents, because nothing is fetched.
    pub fn new(schema: Value) -> Result<Self, InvalidSchemaError> {
        let unfit = |reason: String| InvalidSchemaError { reason };
        if !schema.is_object() {
            return Err(unfit("it must be a JSON object".to_owned()));
        }
        check_depth(&schema).map_err(|too_deep| unfit(format!("it is {too_deep}")))?;
        let validator =
            SchemaValidator::compile(&schema).map_err(|error| unfit(error.to_string()))?;
        Ok(Self {
            schema: Arc::new(schema),
            validator: Arc::new(validator),
        })
    }

    /// Returns a schema that accepts any JSON object.
    pub fn new_any_object_schema() -> Result<Self, InvalidSchemaError> {
        Self::new(serde_json::json!({"type": "object"}))
    }

    /// Returns the JSON Schema as a JSON value.
    pub fn json_schema(&self) -> &Value {
        &self.schema
    }

    /// Returns whether a text is JSON that matches the schema. Returns `false` for a text that is
    /// not JSON.
    pub fn accepts_json_text(&self, text: &str) -> bool {
        let value = serde_json::from_str(text);
        value.is_ok_and(|value| self.validator.is_valid(&value) == Ok(true))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_text_is_checked_against_the_schema() {
        let form = AnswerSchema::new(json!({
            "type": "object",
            "properties": {"n": {"$ref": "#/$defs/n"}},
            "required": ["n"],
            "$defs": {"n": {"type": "integer"}},
        }))
        .unwrap();
        assert!(form.accepts_json_text("{\n  \"n\": 3\n}"));
        for other in [r#"{"n": "3"}"#, "{}", "three", "", "[3]"] {
            assert!(!form.accepts_json_text(other), "{other}");
        }
        let any = AnswerSchema::new_any_object_schema().unwrap();
        assert!(any.accepts_json_text("{}") && !any.accepts_json_text("[]"));
    }

    #[test]
    fn an_invalid_schema_is_refused() {
        for wrong in [
            json!([1]),
            json!("object"),
            json!({"type": "no such type"}),
            json!({"minimum": "x"}),
            json!({"$ref": "#/$defs/missing"}),
            json!({"$ref": "https://schemas.invalid/one.json"}),
        ] {
            assert!(AnswerSchema::new(wrong.clone()).is_err(), "{wrong}");
        }
    }
}
