//! Whether a tool's structured result is what its `outputSchema` promised.
//!
//! The specification (2025-06-18 and later, "Output Schema") has servers conform and clients validate.
//! What does not conform is not handed on as data, for whoever reads data relies on its shape; but the
//! tool ran, and what it said is not lost: it stays, or comes, as content, with a note.

use std::sync::{Arc, OnceLock};

use switchboard_domain::{ToolContent, ToolDefinition, ToolOutput, json_schema::SchemaValidator};

/// Faults named in one note at most.
const MOST_FAULTS: usize = 3;
/// Bytes kept of one fault: a schema may hold long texts.
const FAULT_BYTES: usize = 300;

/// What a tool with an `outputSchema` promises. Compiled when first needed.
pub(crate) struct Promise {
    tool: Arc<ToolDefinition>,
    /// `None` for a schema that cannot be used: then nothing is promised.
    validator: OnceLock<Option<SchemaValidator>>,
}

impl Promise {
    /// Nothing for a tool without the schema.
    pub(crate) fn of(tool: &Arc<ToolDefinition>) -> Option<Self> {
        tool.output_schema.as_ref()?;
        Some(Self {
            tool: tool.clone(),
            validator: OnceLock::new(),
        })
    }

    /// The output with its structured part only if that is as promised. A tool that says it failed has
    /// promised nothing.
    pub(crate) fn hold(&self, mut output: ToolOutput) -> ToolOutput {
        if output.is_error {
            return output;
        }
        let (Some(structured), Some(validator)) = (&output.structured, self.validator()) else {
            return output;
        };
        let errors = validator.errors(structured);
        let listed = errors.iter().flatten().take(MOST_FAULTS + 1);
        let mut faults: Vec<String> = listed
            .map(|fault| {
                let place = fault.instance_path().to_string();
                // Without the value, which stands in the content.
                let what = shortened(&fault.masked().to_string());
                if place.is_empty() {
                    what
                } else {
                    format!("{place}: {what}")
                }
            })
            .chain(errors.as_ref().err().map(ToString::to_string))
            .collect();
        if faults.is_empty() {
            return output;
        }
        if faults.len() > MOST_FAULTS {
            faults.truncate(MOST_FAULTS);
            faults.push("and more".to_owned());
        }
        let faults = faults.join("; ");
        tracing::warn!(
            tool = self.tool.name,
            faults,
            "a result breaks its outputSchema"
        );
        if output.content.is_empty() {
            output
                .content
                .push(ToolContent::text(structured.to_string()));
        }
        output.content.push(ToolContent::text(format!(
            "[the structured form of this result is left out: it is not what the tool's outputSchema \
             promises: {faults}]"
        )));
        output.structured = None;
        output
    }

    fn validator(&self) -> Option<&SchemaValidator> {
        let validator = self.validator.get_or_init(|| {
            let schema = self.tool.output_schema.as_ref()?;
            SchemaValidator::compile(schema)
                .map_err(|error| {
                    let error = shortened(&error.to_string());
                    tracing::debug!(
                        tool = self.tool.name,
                        error,
                        "its outputSchema is of no use"
                    );
                })
                .ok()
        });
        validator.as_ref()
    }
}

fn shortened(text: &str) -> String {
    if text.len() <= FAULT_BYTES {
        return text.to_owned();
    }
    let end = text.floor_char_boundary(FAULT_BYTES);
    format!("{}…", &text[..end])
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn held(schema: Value, output: &ToolOutput) -> ToolOutput {
        let mut tool = ToolDefinition::new("t", "", json!({}));
        tool.output_schema = Some(schema);
        let promise = Promise::of(&Arc::new(tool)).unwrap();
        promise.hold(output.clone())
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
    fn what_is_as_promised_passes() {
        let good = output(json!({"n": 1, "list": ["a", 2]}));
        assert_eq!(held(schema(), &good), good);
        // Without a tool that promises there is nothing to hold.
        assert!(Promise::of(&Arc::new(ToolDefinition::new("t", "", json!({})))).is_none());
    }

    #[test]
    fn what_is_not_as_promised_is_no_data_any_more_and_nothing_is_lost() {
        let bad = held(schema(), &output(json!({"n": "sk-secret", "list": [1]})));
        assert_eq!(bad.structured, None);
        let [
            ToolContent::Text { text: said },
            ToolContent::Text { text: note },
        ] = bad.content.as_slice()
        else {
            panic!("{bad:?}");
        };
        assert_eq!(said, "said");
        assert!(
            note.contains("/n: ") && note.contains("/list/0: "),
            "{note}"
        );
        assert!(!note.contains("sk-secret"), "{note}");

        let silent = ToolOutput {
            structured: Some(json!({"m": 1})),
            ..ToolOutput::default()
        };
        let bad = held(schema(), &silent);
        assert_eq!(bad.content[0], ToolContent::text(r#"{"m":1}"#));
        assert_eq!((bad.content.len(), bad.structured), (2, None));
    }

    #[test]
    fn a_failure_promises_nothing() {
        let failed = ToolOutput {
            is_error: true,
            ..output(json!("no such customer"))
        };
        assert_eq!(held(schema(), &failed), failed);
    }

    #[test]
    fn a_schema_of_no_use_holds_nobody_up_and_nothing_is_fetched() {
        let any = output(json!({"n": "x"}));
        for schema in [
            json!({"$ref": "http://127.0.0.1:1/schema.json"}),
            json!({"$ref": "file:///etc/passwd"}),
            json!({"type": 7}),
            // Look-behind is not linear.
            json!({"properties": {"n": {"pattern": "(?<!a)b"}}}),
        ] {
            assert_eq!(held(schema.clone(), &any), any, "{schema}");
        }
    }

    #[test]
    fn many_and_long_faults_are_cut_short() {
        let names: Vec<String> = (0..10).map(|n| "ä".repeat(200) + &n.to_string()).collect();
        let bad = held(json!({"required": names}), &output(json!({})));
        let note = bad.content[1].as_text();
        assert!(note.contains("…") && note.ends_with("and more]"), "{note}");
        assert!(note.len() < 1500, "{}", note.len());
    }
}
