//! Validation of structured tool results against the `outputSchema` of the tool.
//!
//! The specification (2025-06-18 and later, "Output Schema") requires servers to conform and
//! clients to validate. An invalid structured result is removed, because its consumers rely on the
//! schema. The result remains as text content, with a note.

use std::sync::{Arc, OnceLock};

use switchboard_domain::{ToolContent, ToolDefinition, ToolOutput, json_schema::SchemaValidator};

use crate::primitives::error::shorten;

/// Maximum number of validation errors in the note about an invalid structured result.
const MAX_ERRORS: usize = 3;

/// JSON Schema that a tool declares for its structured results. The validator is created when the
/// first result is checked.
pub(crate) struct OutputSchema {
    tool: Arc<ToolDefinition>,
    /// Validator of the schema. `None` if the schema is invalid: results are then not checked.
    validator: OnceLock<Option<SchemaValidator>>,
}

impl OutputSchema {
    /// Creates the output schema of a tool. Returns `None` if the tool declares no output schema.
    pub(crate) fn new(tool: &Arc<ToolDefinition>) -> Option<Self> {
        tool.output_schema.as_ref()?;
        Some(Self {
            tool: tool.clone(),
            validator: OnceLock::new(),
        })
    }

    /// Removes the structured content of a tool output if it does not match the schema, and adds
    /// the validation errors as text content. Outputs that report an error are not checked.
    pub(crate) fn check_output(&self, mut output: ToolOutput) -> ToolOutput {
        if output.is_error {
            return output;
        }
        let (Some(structured), Some(validator)) = (&output.structured, self.compile_validator())
        else {
            return output;
        };
        let errors = validator.list_errors(structured);
        let listed = errors.iter().flatten().take(MAX_ERRORS + 1);
        let mut messages: Vec<String> = listed
            .map(|error| {
                // The message omits the invalid value, because the text content already shows it.
                let message = shorten(&error.masked().to_string());
                match error.instance_path().as_str() {
                    "" => message,
                    path => format!("{path}: {message}"),
                }
            })
            .chain(errors.as_ref().err().map(ToString::to_string))
            .collect();
        if messages.is_empty() {
            return output;
        }
        if messages.len() > MAX_ERRORS {
            messages.truncate(MAX_ERRORS);
            messages.push("and more".to_owned());
        }
        let messages = messages.join("; ");
        tracing::warn!(
            tool = self.tool.name,
            messages,
            "a structured result does not match its outputSchema"
        );
        let content = &mut output.content;
        if content.is_empty() {
            content.push(ToolContent::text(structured.to_string()));
        }
        output.content.push(ToolContent::text(format!(
            "[the structured result was removed because it does not match the tool's outputSchema: \
             {messages}]"
        )));
        output.structured = None;
        output
    }

    fn compile_validator(&self) -> Option<&SchemaValidator> {
        let validator = self.validator.get_or_init(|| {
            let schema = self.tool.output_schema.as_ref()?;
            SchemaValidator::compile(schema)
                .map_err(|error| {
                    let error = shorten(&error.to_string());
                    tracing::debug!(tool = self.tool.name, error, "an outputSchema is invalid");
                })
                .ok()
        });
        validator.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn checked(schema: Value, output: &ToolOutput) -> ToolOutput {
        let mut tool = ToolDefinition::new("t", "", json!({}));
        tool.output_schema = Some(schema);
        let schema = OutputSchema::new(&Arc::new(tool)).unwrap();
        schema.check_output(output.clone())
    }

    fn output(structured: Value) -> ToolOutput {
        ToolOutput {
            structured: Some(structured),
            ..ToolOutput::text("said")
        }
    }

    fn schema() -> Value {
        json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "properties": {"n": {"type": "integer"}, "list": {"prefixItems": [{"type": "string"}]}},
            "required": ["n"],
        })
    }

    #[test]
    fn valid_results_are_unchanged() {
        let good = output(json!({"n": 1, "list": ["a", 2]}));
        assert_eq!(checked(schema(), &good), good);
        assert!(OutputSchema::new(&Arc::new(ToolDefinition::new("t", "", json!({})))).is_none());
    }

    #[test]
    fn invalid_results_are_kept_as_text_only() {
        let bad = checked(schema(), &output(json!({"n": "sk-secret", "list": [1]})));
        assert_eq!(bad.structured, None);
        let [
            ToolContent::Text { text: content },
            ToolContent::Text { text: note },
        ] = bad.content.as_slice()
        else {
            panic!("{bad:?}");
        };
        assert_eq!(content, "said");
        assert!(
            note.contains("/n: ") && note.contains("/list/0: "),
            "{note}"
        );
        assert!(!note.contains("sk-secret"), "{note}");

        let silent = ToolOutput {
            structured: Some(json!({"m": 1})),
            ..ToolOutput::default()
        };
        let bad = checked(schema(), &silent);
        assert_eq!(bad.content[0], ToolContent::text(r#"{"m":1}"#));
        assert_eq!((bad.content.len(), bad.structured), (2, None));
    }

    #[test]
    fn the_schema_does_not_apply_to_errors() {
        let failed = ToolOutput {
            is_error: true,
            ..output(json!("no such customer"))
        };
        assert_eq!(checked(schema(), &failed), failed);
    }

    #[test]
    fn invalid_schemas_are_ignored_and_references_are_not_fetched() {
        let any = output(json!({"n": "x"}));
        for schema in [
            json!({"$ref": "http://127.0.0.1:1/schema.json"}),
            json!({"$ref": "file:///etc/passwd"}),
            json!({"type": 7}),
            // Look-behind is not linear.
            json!({"properties": {"n": {"pattern": "(?<!a)b"}}}),
        ] {
            assert_eq!(checked(schema.clone(), &any), any, "{schema}");
        }
    }
}
