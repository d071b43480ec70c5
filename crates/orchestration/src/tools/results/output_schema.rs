//! Validation of structured results against the tool's output schema.
//!
//! MCP (2025-06-18 and later, "Output Schema") requires clients to validate. The MCP host does;
//! other hosts may not.

use std::{fmt, sync::Arc};

use switchboard_domain::{ToolContent, ToolDefinition, ToolOutput, json_schema::SchemaValidator};

use crate::tools::{arguments::compile, per_definition::PerDefinition};

/// Maximum number of faults in one message.
const MAX_FAULTS: usize = 3;
/// Maximum length of one fault in bytes. A schema can contain long texts.
const MAX_FAULT_BYTES: usize = 300;

/// Compiled output schemas, one per tool definition. Clones share them.
#[derive(Clone, Default)]
pub struct OutputSchemas {
    /// `None` without a schema, and for a schema that cannot be compiled.
    compiled: Arc<PerDefinition<Option<SchemaValidator>>>,
}

impl OutputSchemas {
    /// Returns the faults of a structured result, without its values. Results without a schema,
    /// error results and results without structured content have no faults.
    pub fn faults(&self, definition: &Arc<ToolDefinition>, output: &ToolOutput) -> Vec<String> {
        let Some(structured) = &output.structured else {
            return Vec::new();
        };
        if output.is_error || definition.output_schema.is_none() {
            return Vec::new();
        }
        let validator = self.compiled.of(definition, |definition| {
            definition.output_schema.as_ref().and_then(compile)
        });
        let Some(validator) = &*validator else {
            return Vec::new();
        };
        let errors = match validator.errors(structured) {
            Ok(errors) => errors,
            Err(error) => return vec![error.to_string()],
        };
        let mut faults: Vec<String> = errors
            .iter()
            .take(MAX_FAULTS + 1)
            .map(|fault| {
                let fault_text = shortened(&fault.masked().to_string());
                match fault.instance_path().as_str() {
                    "" => fault_text,
                    path => format!("{path}: {fault_text}"),
                }
            })
            .collect();
        if faults.len() > MAX_FAULTS {
            faults.truncate(MAX_FAULTS);
            faults.push("and more".to_owned());
        }
        faults
    }

    /// Removes structured content that does not match the output schema, and returns the faults.
    /// The tool ran, so its output stays as text, with a note.
    pub fn apply(
        &self,
        definition: &Arc<ToolDefinition>,
        mut output: ToolOutput,
    ) -> (ToolOutput, Vec<String>) {
        let faults = self.faults(definition, &output);
        if faults.is_empty() {
            return (output, faults);
        }
        if let Some(structured) = output.structured.take()
            && output.content.is_empty()
        {
            output
                .content
                .push(ToolContent::text(structured.to_string()));
        }
        output.content.push(ToolContent::text(format!(
            "[the structured content of this result is omitted because it does not match the tool's \
             outputSchema: {}]",
            faults.join("; ")
        )));
        (output, faults)
    }
}

fn shortened(text: &str) -> String {
    if text.len() <= MAX_FAULT_BYTES {
        return text.to_owned();
    }
    let end = text.floor_char_boundary(MAX_FAULT_BYTES);
    format!("{}…", &text[..end])
}

impl fmt::Debug for OutputSchemas {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("OutputSchemas")
            .field(&self.compiled)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn tool(schema: Value) -> Arc<ToolDefinition> {
        let mut tool = ToolDefinition::new("t", "", json!({}));
        tool.output_schema = Some(schema);
        Arc::new(tool)
    }

    fn sum() -> Arc<ToolDefinition> {
        tool(json!({
            "type": "object",
            "properties": {"sum": {"type": "integer"}},
            "required": ["sum"],
        }))
    }

    fn structured(value: Value) -> ToolOutput {
        ToolOutput {
            structured: Some(value),
            ..ToolOutput::default()
        }
    }

    #[test]
    fn valid_structured_content_is_unchanged() {
        let schemas = OutputSchemas::default();
        let good = structured(json!({"sum": 3}));
        let mut error = structured(json!("no"));
        error.is_error = true;
        for output in [good, error, ToolOutput::text("3")] {
            assert_eq!(schemas.apply(&sum(), output.clone()), (output, Vec::new()));
        }
        let without = Arc::new(ToolDefinition::new("t", "", json!({})));
        assert!(schemas.faults(&without, &structured(json!(1))).is_empty());
    }

    #[test]
    fn invalid_structured_content_is_removed_with_a_note() {
        let (output, faults) =
            OutputSchemas::default().apply(&sum(), structured(json!({"sum": "secret"})));
        assert_eq!(faults, ["/sum: value is not of type \"integer\""]);
        assert_eq!(output.structured, None);
        assert_eq!(output.content[0].as_text(), r#"{"sum":"secret"}"#);
        let note = output.content[1].as_text();
        assert!(
            note.starts_with("[the structured content") && note.contains("/sum"),
            "{note}"
        );
        assert!(!output.is_error);

        let mut with_text = structured(json!({}));
        with_text.content.push(ToolContent::text("the sum is 3"));
        let (output, _) = OutputSchemas::default().apply(&sum(), with_text);
        assert_eq!(output.content.len(), 2);
        assert_eq!(output.content[0].as_text(), "the sum is 3");
    }

    #[test]
    fn the_number_and_length_of_faults_are_limited() {
        let tool = tool(json!({"items": {"enum": ["x".repeat(1_000)]}}));
        let faults = OutputSchemas::default().faults(&tool, &structured(json!([1, 2, 3, 4, 5])));
        assert_eq!(faults.len(), MAX_FAULTS + 1);
        assert!(
            faults
                .iter()
                .all(|fault| fault.len() < MAX_FAULT_BYTES + 20)
        );
    }

    #[test]
    fn an_invalid_or_remote_schema_is_ignored() {
        for schema in [
            json!({"type": 7}),
            json!({"$ref": "https://example.invalid/schema.json"}),
        ] {
            let faults = OutputSchemas::default().faults(&tool(schema), &structured(json!(1)));
            assert!(faults.is_empty());
        }
    }

    #[test]
    fn a_schema_is_compiled_once() {
        let (schemas, tool) = (OutputSchemas::default(), sum());
        assert_eq!(schemas.faults(&tool, &structured(json!({}))).len(), 1);
        let compiled = schemas.compiled.of(&tool, |_| panic!("compiled twice"));
        assert!(compiled.is_some());
        assert_eq!(
            schemas.clone().faults(&tool, &structured(json!({}))).len(),
            1
        );
    }
}
