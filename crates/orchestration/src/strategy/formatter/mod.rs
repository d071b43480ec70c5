//! Formatting phase: the model writes the answer as texts and artifacts.
//!
//! [`FormatState`] selects a [`FormatterMode`], adapts the request to it, and reads the response. A
//! malformed response is repaired. If that fails, the model is called once more with a description
//! of the fault. If the second response is malformed too, its text becomes the answer. With a
//! custom schema, a second malformed response is an error.

mod answer_items;
mod answer_json_schema;
mod custom_schema;
mod format_state;
mod json;
mod mode;
mod partial_answer;
mod prompts;
mod render;

use serde_json::{Value, json};
use switchboard_domain::ToolDefinition;

use crate::AnswerItem;
pub use answer_json_schema::{AnswerSchema, InvalidSchemaError};
pub use format_state::{FormatDecision, FormatState};
pub use mode::FormatterMode;
pub use partial_answer::PartialAnswerReader;
pub use render::render_markdown;

/// Name of the formatter tool, whose input is the answer.
pub const TOOL: &str = "response_formatter";

const DESCRIPTION: &str = "Gives the answer to the user, as a list of texts and artifacts in \
     reading order. `conversation` is a list, never a string.";

/// Returns the definition of the formatter tool [`TOOL`]. Its input schema is `custom_schema`, or
/// [`answer_schema`] without a custom schema.
fn formatter_definition(custom_schema: Option<&Value>) -> ToolDefinition {
    let description = match custom_schema {
        None => DESCRIPTION,
        Some(_) => "Gives the answer to the user, as data in this form.",
    };
    let schema = custom_schema.map_or_else(answer_schema, custom_schema::wrap_in_object_schema);
    ToolDefinition::new(TOOL, description, schema)
}

/// Returns the JSON Schema of an answer that consists of texts and artifacts.
///
/// In the schema, `content` is the last key of an item. Models mostly write keys in the order of
/// the schema, and the content can be streamed only if the other keys are known.
pub fn answer_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "thinking": {
                "type": "string",
                "description": "Optional notes on how the answer was reached. Not part of \
                    the answer."
            },
            "conversation": {
                "type": "array",
                "minItems": 1,
                "description": "The answer in its order.",
                "items": {
                    "anyOf": [
                        {
                            "type": "object",
                            "description": "Text of the answer.",
                            "properties": {
                                "type": {"type": "string", "enum": ["text"]},
                                "content": {"type": "string", "description": "Markdown."}
                            },
                            "required": ["type", "content"],
                            "additionalProperties": false
                        },
                        {
                            "type": "object",
                            "description": "A separate item, such as code, a table, a diagram or a \
                                document.",
                            "properties": {
                                "type": {"type": "string", "enum": ["artifact"]},
                                "artifactType": {
                                    "type": "string",
                                    "description": "text/markdown, code, table, mermaid, chart, \
                                     html, svg, json or another kind."
                                },
                                "title": {"type": "string"},
                                "language": {
                                    "type": "string",
                                    "description": "The programming language, for code."
                                },
                                "content": {
                                    "type": "string",
                                    "description": "The artifact itself, without a code fence \
                                     around it."
                                }
                            },
                            "required": ["type", "artifactType", "title", "content"],
                            "additionalProperties": false
                        }
                    ]
                }
            }
        },
        "required": ["conversation"],
        "additionalProperties": false
    })
}

/// A formatted answer of a model.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct FormattedAnswer {
    /// Texts and artifacts of the answer. The list is never empty.
    pub items: Vec<AnswerItem>,
    /// Notes of the model on how it reached the answer, if it wrote any.
    pub thinking: Option<String>,
    /// Descriptions of the repairs to the model's answer, for a person. Empty if there were none.
    pub repairs: Vec<String>,
    /// Description of the first faults if the answer does not match the custom schema; `None` if it
    /// matches or no custom schema is set.
    pub fault: Option<String>,
}

impl FormattedAnswer {
    /// Returns the answer as Markdown, see [`render_markdown`].
    pub fn to_markdown(&self) -> String {
        render_markdown(&self.items)
    }
}

#[cfg(test)]
#[path = "formatter_tests.rs"]
mod tests;
