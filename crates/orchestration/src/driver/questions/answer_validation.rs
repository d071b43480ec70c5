//! Validation of a person's answer to a question of a tool server (MCP elicitation).

use serde_json::Value;
use switchboard_domain::{
    ElicitationAnswer, ElicitationForm, JsonObject,
    json_schema::{Draft, SchemaOptions, SchemaValidator},
};

use super::OpenQuestion;
use crate::tools::arguments::describe_faults;

impl OpenQuestion {
    /// Validates a person's answer against the form of the question. The error describes the faults
    /// of the answer.
    ///
    /// Missing fields get their default values, and fields that are not in the form are ignored. If
    /// the schema of the form cannot be compiled, every answer is valid, and only the server can
    /// detect faults.
    pub fn validate_answer(&self, answer: &ElicitationAnswer) -> Result<(), String> {
        let ElicitationAnswer::Accept { content } = answer else {
            return Ok(());
        };
        let ElicitationForm::Fields { schema } = &self.question.form else {
            return Ok(());
        };
        let Some(validator) = compile_form_schema(schema) else {
            return Ok(());
        };
        let completed = Value::Object(fill_default_values(schema, content));
        if validator.is_valid(&completed) == Ok(true) {
            return Ok(());
        }
        Err(describe_faults(&validator, &completed))
    }
}

fn compile_form_schema(schema: &Value) -> Option<SchemaValidator> {
    let mut schema = schema.clone();
    // The JSON Schema draft that the form declares is ignored, because forms use only keywords that
    // have the same meaning in every draft.
    schema.as_object_mut()?.remove("$schema");
    let options = SchemaOptions {
        draft: Some(Draft::Draft202012),
        assert_formats: Some(true),
    };
    SchemaValidator::compile_with_options(&schema, options).ok()
}

fn fill_default_values(schema: &Value, content: &JsonObject) -> JsonObject {
    let Some(fields) = schema.get("properties").and_then(Value::as_object) else {
        return content.clone();
    };
    let values = fields.iter().filter_map(|(name, field)| {
        let value = content.get(name).or_else(|| field.get("default"))?;
        // A `null` value means that the person left the field empty.
        (!value.is_null()).then(|| (name.clone(), value.clone()))
    });
    values.collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn question(schema: &Value) -> OpenQuestion {
        let question =
            json!({"server": "s", "message": "Who?", "form": "fields", "schema": schema});
        OpenQuestion {
            id: "q".into(),
            question: serde_json::from_value(question).unwrap(),
        }
    }

    fn accept(content: &Value) -> ElicitationAnswer {
        let content = content.as_object().cloned().unwrap();
        ElicitationAnswer::Accept { content }
    }

    #[test]
    fn an_invalid_answer_is_refused_with_its_faults() {
        let question = question(&json!({
            "$schema": "http://json-schema.org/draft-07/schema#",
            "type": "object",
            "properties": {
                "name": {"type": "string", "minLength": 2},
                "mail": {"type": "string", "format": "email"},
                "colour": {"type": "string", "enum": ["red", "blue"], "default": "red"},
            },
            "required": ["name", "colour"],
        }));
        for (content, expected) in [
            (json!({"name": "A"}), "name: "),
            (json!({}), "\"name\" is a required property"),
            (json!({"name": null}), "\"name\" is a required property"),
            (json!({"name": "Ada", "mail": "nobody"}), "mail: "),
            (json!({"name": "Ada", "colour": "green"}), "colour: "),
        ] {
            let why = question.validate_answer(&accept(&content)).unwrap_err();
            assert!(why.contains(expected), "{content}: {why}");
        }
        for content in [
            json!({"name": "Ada"}),
            json!({"name": "Ada", "mail": null, "pin": 7}),
        ] {
            assert_eq!(question.validate_answer(&accept(&content)), Ok(()));
        }
        assert_eq!(
            question.validate_answer(&ElicitationAnswer::Decline),
            Ok(())
        );
    }

    #[test]
    fn a_form_that_cannot_be_compiled_accepts_every_answer() {
        for schema in [
            json!(null),
            json!({"properties": {"a": {"minLength": "x"}}}),
        ] {
            assert_eq!(
                question(&schema).validate_answer(&accept(&json!({"a": 7}))),
                Ok(())
            );
        }
    }
}
