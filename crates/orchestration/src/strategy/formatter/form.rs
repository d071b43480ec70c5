//! A form that whoever asks wants the answer to have.

use std::{fmt, sync::Arc};

use serde_json::Value;
use switchboard_domain::{check_depth, json_schema::SchemaValidator};

/// A JSON Schema that an answer is to fit. Cheap to clone.
#[derive(Clone)]
pub struct Form {
    schema: Arc<Value>,
    validator: Arc<SchemaValidator>,
}

/// What was given is no JSON Schema that could be followed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("it is no JSON Schema that can be followed: {reason}")]
pub struct UnfitForm {
    /// Why.
    pub reason: String,
}

impl Form {
    /// The form of this schema. What it refers to must be inside of it: nothing is fetched.
    pub fn new(schema: Value) -> Result<Self, UnfitForm> {
        let unfit = |reason: String| UnfitForm { reason };
        if !schema.is_object() {
            return Err(unfit("it is no object".to_owned()));
        }
        check_depth(&schema).map_err(|too_deep| unfit(format!("it is {too_deep}")))?;
        let validator =
            SchemaValidator::compile(&schema).map_err(|error| unfit(error.to_string()))?;
        Ok(Self {
            schema: Arc::new(schema),
            validator: Arc::new(validator),
        })
    }

    /// Any JSON object.
    pub fn any_object() -> Result<Self, UnfitForm> {
        Self::new(serde_json::json!({"type": "object"}))
    }

    /// The schema.
    pub fn schema(&self) -> &Value {
        &self.schema
    }

    /// Whether a text is JSON that fits.
    pub fn fits(&self, text: &str) -> bool {
        let value = serde_json::from_str(text);
        value.is_ok_and(|value| self.validator.is_valid(&value) == Ok(true))
    }
}

impl fmt::Debug for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Form")
            .field("schema", &self.schema)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_text_fits_or_it_does_not() {
        let form = Form::new(json!({
            "type": "object",
            "properties": {"n": {"$ref": "#/$defs/n"}},
            "required": ["n"],
            "$defs": {"n": {"type": "integer"}},
        }))
        .unwrap();
        assert!(form.fits("{\n  \"n\": 3\n}"));
        for other in [r#"{"n": "3"}"#, "{}", "three", "", "[3]"] {
            assert!(!form.fits(other), "{other}");
        }
        let any = Form::any_object().unwrap();
        assert!(any.fits("{}") && !any.fits("[]"));
    }

    #[test]
    fn what_is_no_schema_is_said_to_be_none() {
        for wrong in [
            json!([1]),
            json!("object"),
            json!({"type": "no such type"}),
            json!({"minimum": "x"}),
            json!({"$ref": "#/$defs/missing"}),
            json!({"$ref": "https://schemas.invalid/one.json"}),
        ] {
            assert!(Form::new(wrong.clone()).is_err(), "{wrong}");
        }
    }
}
