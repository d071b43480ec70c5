//! Changes to the tool names and schemas of a request, and their reversal in the answer.

use std::{collections::HashMap, sync::Arc};

use serde_json::Value;
use switchboard_domain::{DEFAULT_MAX_TOOL_INPUT_BYTES as MAX_BUFFERED_BYTES, ToolDefinition};

use crate::{
    schema::{Dialect, restore_answer},
    tool_names::ToolNames,
};

/// The changes to tool names and schemas that a provider's API required for one request, and their
/// reversal in the answer.
///
/// For example, a schema that was changed for OpenAI's strict mode makes the model write `null` for
/// a missing property. The mapping removes this `null`.
#[derive(Debug, Clone, Default)]
pub struct ToolMapping {
    names: Option<ToolNames>,
    tools: HashMap<String, JsonShapeRestorer>,
    answer: JsonShapeRestorer,
}

impl ToolMapping {
    /// Sets the names under which the request's tools were sent.
    pub fn set_tool_names(&mut self, names: ToolNames) {
        self.names = Some(names).filter(ToolNames::has_aliases);
    }

    /// Adds a tool whose schema was converted to `dialect`, a subset of JSON Schema.
    /// [`input_restorer`](Self::input_restorer) then restores the inputs of its calls.
    pub fn add_tool(&mut self, tool: &ToolDefinition, dialect: Dialect) {
        let restorer = JsonShapeRestorer::new(&tool.input_schema, dialect);
        self.tools.insert(tool.name.clone(), restorer);
    }

    /// Sets the declared schema of a structured answer, which was converted to `dialect`.
    pub fn set_answer_schema(&mut self, schema: &Value, dialect: Dialect) {
        self.answer = JsonShapeRestorer::new(schema, dialect);
    }

    /// Returns whether all names and schemas were sent unchanged.
    pub fn is_empty(&self) -> bool {
        self.names.is_none() && self.tools.is_empty() && self.answer.0.is_none()
    }

    /// Returns the declared name of the tool that was sent under the name `sent`. Returns `sent` if
    /// it is not an alias.
    pub fn declared_name<'a>(&'a self, sent: &'a str) -> &'a str {
        let names = self.names.as_ref();
        names.map_or(sent, |names| names.declared_name(sent))
    }

    /// Returns a converter that restores the input of one call to the shape of the declared schema.
    /// `tool` is the declared name of the called tool. If its schema was sent unchanged, the
    /// converter returns all text unchanged.
    pub fn input_restorer(&self, tool: &str) -> JsonShapeRestorer {
        self.tools.get(tool).cloned().unwrap_or_default()
    }

    /// Returns a converter that restores the text of a structured answer to the shape of the
    /// declared schema. If the schema was sent unchanged, the converter returns all text unchanged.
    pub fn answer_restorer(&self) -> JsonShapeRestorer {
        self.answer.clone()
    }
}

/// Converter of streamed JSON text to the shape that the declared schema requires.
///
/// If the schema was sent unchanged, the text passes through. Otherwise it is buffered until it is
/// complete.
#[derive(Debug, Clone, Default)]
pub struct JsonShapeRestorer(Option<JsonTextBuffer>);

#[derive(Debug, Clone)]
struct JsonTextBuffer {
    schema: Arc<Value>,
    dialect: Dialect,
    text: String,
}

impl JsonShapeRestorer {
    fn new(schema: &Value, dialect: Dialect) -> Self {
        Self(Some(JsonTextBuffer {
            schema: Arc::new(schema.clone()),
            dialect,
            text: String::new(),
        }))
    }

    /// Returns whether [`push`](Self::push) buffers text instead of returning it.
    pub fn is_buffering(&self) -> bool {
        self.0.is_some()
    }

    /// Adds streamed text. Returns the text that can be emitted now, or `None` if there is none.
    ///
    /// Buffering ends when the text is not a JSON object or exceeds the maximum size of a tool
    /// input. The whole buffer is then returned unchanged.
    pub fn push(&mut self, more: &str) -> Option<String> {
        let text = match &mut self.0 {
            None => more.to_owned(),
            Some(buffer) => {
                buffer.text.push_str(more);
                let start = buffer.text.trim_start();
                let may_be_object = start.is_empty() || start.starts_with('{');
                if may_be_object && buffer.text.len() <= MAX_BUFFERED_BYTES {
                    return None;
                }
                return self.take_raw_buffer();
            }
        };
        (!text.is_empty()).then_some(text)
    }

    /// Ends the buffering and returns the buffered text in the shape of the declared schema, or
    /// unchanged if it is not JSON. Returns `None` if no text is buffered.
    pub fn restore_buffer(&mut self) -> Option<String> {
        let buffer = self.0.take()?;
        let text = match serde_json::from_str::<Value>(&buffer.text) {
            Ok(value) => restore_answer(&buffer.schema, buffer.dialect, value).to_string(),
            Err(_) => buffer.text,
        };
        (!text.is_empty()).then_some(text)
    }

    /// Ends the buffering and returns the buffered text unchanged, for an answer that was
    /// interrupted. Returns `None` if no text is buffered.
    pub fn take_raw_buffer(&mut self) -> Option<String> {
        let text = self.0.take()?.text;
        (!text.is_empty()).then_some(text)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn restorer() -> JsonShapeRestorer {
        let schema = json!({"type": "object", "properties": {"a": {"type": "string"}}});
        let mut mapping = ToolMapping::default();
        mapping.set_answer_schema(&schema, Dialect::OpenAiStrict);
        mapping.answer_restorer()
    }

    #[test]
    fn text_of_an_unchanged_schema_passes_through() {
        let mut restorer = ToolMapping::default().input_restorer("f");
        assert_eq!(restorer.push("{\"a\""), Some("{\"a\"".to_owned()));
        assert_eq!(restorer.push(""), None);
        assert_eq!(restorer.restore_buffer(), None);
    }

    #[test]
    fn an_object_is_buffered_and_restored() {
        let mut restorer = restorer();
        for piece in [" ", "{\"a\":", "null}"] {
            assert_eq!(restorer.push(piece), None);
        }
        assert_eq!(restorer.restore_buffer().as_deref(), Some("{}"));
        assert_eq!(restorer.restore_buffer(), None);
    }

    #[test]
    fn text_that_is_not_an_object_is_emitted_as_it_arrives() {
        let mut restorer = restorer();
        assert_eq!(restorer.push(" \n"), None);
        assert_eq!(restorer.push("I "), Some(" \nI ".to_owned()));
        assert_eq!(restorer.push("see"), Some("see".to_owned()));
        assert_eq!(restorer.restore_buffer(), None);
    }

    #[test]
    fn an_interrupted_object_is_emitted_unchanged() {
        let mut restorer = restorer();
        assert_eq!(restorer.push("{\"a\":nu"), None);
        assert_eq!(restorer.take_raw_buffer().as_deref(), Some("{\"a\":nu"));
    }

    #[test]
    fn a_text_that_is_too_long_for_an_input_is_emitted() {
        let mut restorer = restorer();
        assert_eq!(restorer.push("{"), None);
        let long = "x".repeat(MAX_BUFFERED_BYTES);
        assert!(restorer.push(&long).is_some_and(|it| it.len() > long.len()));
    }
}
