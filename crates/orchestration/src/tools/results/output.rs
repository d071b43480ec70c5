//! Whether a structured result is what the tool's `outputSchema` promised.
//!
//! MCP (2025-06-18 and later, "Output Schema") has clients validate it, and our MCP host does. Other hosts
//! may not, so that it is looked at here for all of them.

use std::{fmt, sync::Arc};

use switchboard_domain::{ToolContent, ToolDefinition, ToolOutput, json_schema::SchemaValidator};

use crate::tools::{arguments::compile, per_definition::PerDefinition};

/// Faults named of one result at most.
const MOST_FAULTS: usize = 3;
/// Bytes kept of one fault: a schema may hold long texts.
const FAULT_BYTES: usize = 300;

/// Compiled output schemas, one for each tool definition, compiled when first needed. A clone is the same
/// set. Nothing is ever fetched for a schema.
#[derive(Clone, Default)]
pub struct OutputSchemas {
    /// `None` without a schema, and for one that cannot be used: then nothing is promised.
    compiled: Arc<PerDefinition<Option<SchemaValidator>>>,
}

impl OutputSchemas {
    /// What is wrong with the structured part of a result, each fault with its place and without the
    /// value. Nothing is wrong without a schema, with a result that says it is an error, and with one that
    /// has no structured part: many servers give the text alone, and the model reads that.
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
            .take(MOST_FAULTS + 1)
            .map(|fault| {
                let what = shortened(&fault.masked().to_string());
                match fault.instance_path().as_str() {
                    "" => what,
                    place => format!("{place}: {what}"),
                }
            })
            .collect();
        if faults.len() > MOST_FAULTS {
            faults.truncate(MOST_FAULTS);
            faults.push("and more".to_owned());
        }
        faults
    }

    /// The result without a structured part that is not as promised, and what was wrong with it. Whoever
    /// reads data relies on its shape; but the tool ran, so that what it said stays, or comes, as text, with
    /// a note.
    pub fn hold(
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
            "[the structured form of this result is left out: it is not what the tool's outputSchema \
             promises: {}]",
            faults.join("; ")
        )));
        (output, faults)
    }
}

fn shortened(text: &str) -> String {
    if text.len() <= FAULT_BYTES {
        return text.to_owned();
    }
    let end = text.floor_char_boundary(FAULT_BYTES);
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
    fn what_is_as_promised_stays_as_it_is() {
        let schemas = OutputSchemas::default();
        let good = structured(json!({"sum": 3}));
        let mut error = structured(json!("no"));
        error.is_error = true;
        for output in [good, error, ToolOutput::text("3")] {
            assert_eq!(schemas.hold(&sum(), output.clone()), (output, Vec::new()));
        }
        let without = Arc::new(ToolDefinition::new("t", "", json!({})));
        assert!(schemas.faults(&without, &structured(json!(1))).is_empty());
    }

    #[test]
    fn what_breaks_its_promise_is_told_and_taken_out() {
        let (output, faults) =
            OutputSchemas::default().hold(&sum(), structured(json!({"sum": "secret"})));
        assert_eq!(faults, ["/sum: value is not of type \"integer\""]);
        assert_eq!(output.structured, None);
        assert_eq!(output.content[0].as_text(), r#"{"sum":"secret"}"#);
        let note = output.content[1].as_text();
        assert!(
            note.starts_with("[the structured form") && note.contains("/sum"),
            "{note}"
        );
        assert!(!output.is_error);

        let mut with_text = structured(json!({}));
        with_text.content.push(ToolContent::text("the sum is 3"));
        let (output, _) = OutputSchemas::default().hold(&sum(), with_text);
        assert_eq!(output.content.len(), 2);
        assert_eq!(output.content[0].as_text(), "the sum is 3");
    }

    #[test]
    fn few_and_short_faults_are_named() {
        let tool = tool(json!({"items": {"enum": ["x".repeat(1_000)]}}));
        let faults = OutputSchemas::default().faults(&tool, &structured(json!([1, 2, 3, 4, 5])));
        assert_eq!(faults.len(), MOST_FAULTS + 1);
        assert!(faults.iter().all(|fault| fault.len() < FAULT_BYTES + 20));
    }

    #[test]
    fn a_schema_that_cannot_be_used_promises_nothing_and_is_never_fetched() {
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
