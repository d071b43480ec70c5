//! Conversion of few-shot examples to messages.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use switchboard_domain::{
    JsonObject, Message, Part, Role, ToolDefinition, ToolInput, ToolResult, ToolUse,
};

use super::tools::matches;

/// A few-shot example: a question, tool calls and an answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Example {
    /// Question of the user.
    pub user: String,
    /// Tool calls of the example, in steps. The calls of one step are parallel.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<Vec<ExampleCall>>,
    /// Answer of the model.
    pub answer: String,
}

/// A tool call of an example.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct ExampleCall {
    /// Name of the tool on its server, or the name that the model sees.
    pub tool: String,
    /// Input of the tool call.
    #[serde(default)]
    pub input: JsonObject,
    /// Result of the tool call: a text or structured content.
    pub result: Value,
    /// Whether the result of the tool call is an error.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_error: bool,
}

/// Few-shot examples as messages of a conversation.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ExampleMessages {
    /// Messages of the examples. Every tool use has a result, and the last message is an answer.
    pub messages: Vec<Message>,
    /// Messages that explain why examples are omitted.
    pub omitted: Vec<String>,
}

/// Converts the examples of a recipe to messages. See [`super::Recipe::example_messages`].
pub(super) fn convert_examples(
    examples: &[Example],
    tools: &[Arc<ToolDefinition>],
) -> ExampleMessages {
    let mut made = ExampleMessages::default();
    for (index, example) in examples.iter().enumerate() {
        let number = index + 1;
        let missing = example
            .calls
            .iter()
            .flatten()
            .find(|call| find_declared_name(call, tools).is_none());
        if let Some(call) = missing {
            made.omitted.push(format!(
                "example {number} of the recipe is omitted because the tool `{}` does not exist",
                call.tool
            ));
            continue;
        }
        made.messages.push(Message::user(&example.user));
        let mut calls = 0;
        for step in &example.calls {
            let (mut uses, mut results) = (Vec::new(), Vec::new());
            for call in step {
                let Some(name) = find_declared_name(call, tools) else {
                    continue;
                };
                calls += 1;
                let id = format!("example_{number}_{calls}");
                let input = ToolInput::from(call.input.clone());
                results.push(call.to_tool_result(&id, name));
                uses.push(Part::ToolUse(ToolUse::new(id, name, input)));
            }
            if !uses.is_empty() {
                made.messages.push(Message::new(Role::Assistant, uses));
                made.messages.push(Message::tool_results(results));
            }
        }
        made.messages.push(Message::assistant(&example.answer));
    }
    made
}

/// Returns the name that the model sees for the tool of a call, or `None` if there is no such tool.
fn find_declared_name<'a>(call: &ExampleCall, tools: &'a [Arc<ToolDefinition>]) -> Option<&'a str> {
    tools
        .iter()
        .find(|tool| matches(&call.tool, tool))
        .map(|tool| tool.name.as_str())
}

impl ExampleCall {
    fn to_tool_result(&self, id: &str, name: &str) -> ToolResult {
        let text = match &self.result {
            Value::String(text) => text.clone(),
            data => data.to_string(),
        };
        ToolResult {
            structured: Some(&self.result)
                .filter(|result| result.is_object())
                .map(|data| Arc::new(data.clone())),
            is_error: self.is_error,
            ..ToolResult::text(id, name, text)
        }
    }
}
