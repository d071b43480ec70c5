//! The format phase: the model writes the answer as text and artifacts, and nothing else.
//!
//! [`FormatState`] says how the model is brought to use the form ([`FormatterMode`]), changes the
//! request accordingly, and reads the answer. An answer that is not in the form is repaired; if that
//! is not possible the model is told what is wrong, once; and if that does not help, the answer is a
//! text with what the model did say. With a schema of its own, such an answer is an error.

mod form;
mod items;
mod json;
mod mode;
mod own;
mod partial;
mod render;
mod state;
mod words;

use std::sync::{Arc, LazyLock};

use serde_json::{Value, json};
use switchboard_domain::{Message, ToolDefinition};

use crate::AnswerItem;
pub use form::{Form, UnfitForm};
pub use mode::FormatterMode;
pub use partial::{PartialFormatter, TextDelta};
pub use render::render;
pub use state::{FormatDecision, FormatState};

/// The name of the tool through which the answer is given.
pub const TOOL: &str = "response_formatter";

const DESCRIPTION: &str = "Gives the answer to the user, as a list of texts and artifacts in the \
     order in which they are to be read. `conversation` is a list, never a string.";

/// The declaration of [`TOOL`]; the same `Arc` each time.
pub fn definition() -> Arc<ToolDefinition> {
    static DEFINITION: LazyLock<Arc<ToolDefinition>> =
        LazyLock::new(|| Arc::new(ToolDefinition::new(TOOL, DESCRIPTION, schema())));
    Arc::clone(&DEFINITION)
}

/// The form of an answer as JSON Schema.
///
/// What must be known before the content can be shown while it is written comes before it: models
/// mostly write the keys in this order.
pub fn schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "thinking": {
                "type": "string",
                "description": "Optional notes on how the answer was reached. Not part of the answer."
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
                            "description": "Something that stands on its own, such as code, a table, a diagram or a document.",
                            "properties": {
                                "type": {"type": "string", "enum": ["artifact"]},
                                "artifactType": {
                                    "type": "string",
                                    "description": "text/markdown, code, table, mermaid, chart, html, svg, json or another kind."
                                },
                                "title": {"type": "string"},
                                "language": {
                                    "type": "string",
                                    "description": "The programming language, for code."
                                },
                                "content": {
                                    "type": "string",
                                    "description": "The artifact itself, without a code fence around it."
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

/// An answer that was read.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Formatted {
    /// The answer in its order; never empty.
    pub items: Vec<AnswerItem>,
    /// What the model noted beside it.
    pub thinking: Option<String>,
    /// What was not as asked for and how it was read, for a person. Empty if all was well.
    pub repairs: Vec<String>,
    /// The answer as data, if it has a schema of its own and fits it. `items` holds it as text.
    pub value: Option<Value>,
}

impl Formatted {
    /// The answer as plain text, see [`render()`].
    pub fn answer(&self) -> String {
        render(&self.items)
    }

    /// The answer as a message for the history. The use of the formatter itself does not belong
    /// there: it would need a result, and later answers would imitate it.
    pub fn message(&self) -> Message {
        Message::assistant(self.answer())
    }
}

#[cfg(test)]
#[path = "formatter_tests.rs"]
mod tests;
