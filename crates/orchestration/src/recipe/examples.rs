//! Examples of how it is done, as messages.

use std::sync::Arc;

use serde::Serialize;
use serde_json::Value;
use switchboard_domain::{
    JsonObject, Message, Part, Role, ToolDefinition, ToolInput, ToolResult, ToolUse,
};

use super::tools::matches;

/// One example: what the person asks, what is called, and what is answered.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Example {
    /// What the person asks.
    pub user: String,
    /// What is called, in steps; the calls of one step are made together.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<Vec<ExampleCall>>,
    /// What is answered.
    pub answer: String,
}

/// A call in an example.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ExampleCall {
    /// The tool, by its own name or the one that the model knows.
    pub tool: String,
    /// The input.
    pub input: JsonObject,
    /// What the tool gave: text, or data.
    pub result: Value,
    /// The tool failed.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_error: bool,
}

impl ExampleCall {
    pub(super) fn new(tool: String, input: JsonObject, result: Value, is_error: bool) -> Self {
        Self {
            tool,
            input,
            result,
            is_error,
        }
    }
}

impl Example {
    pub(super) fn new(user: String, calls: Vec<Vec<ExampleCall>>, answer: String) -> Self {
        Self {
            user,
            calls,
            answer,
        }
    }
}

/// Examples as messages.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Examples {
    /// The messages: every tool use has its result, and the last one is an answer.
    pub messages: Vec<Message>,
    /// Examples that were left out and why, in words.
    pub left_out: Vec<String>,
}

/// See [`super::Recipe::examples`].
pub(super) fn messages(examples: &[Example], tools: &[Arc<ToolDefinition>]) -> Examples {
    let mut made = Examples::default();
    for (index, example) in examples.iter().enumerate() {
        let number = index + 1;
        let missing = example
            .calls
            .iter()
            .flatten()
            .find(|call| declared(call, tools).is_none());
        if let Some(call) = missing {
            made.left_out.push(format!(
                "example {number} of the recipe is left out: there is no tool `{}`",
                call.tool
            ));
            continue;
        }
        made.messages.push(Message::user(&example.user));
        let mut calls = 0;
        for step in &example.calls {
            let (mut uses, mut results) = (Vec::new(), Vec::new());
            for call in step {
                let Some(name) = declared(call, tools) else {
                    continue;
                };
                calls += 1;
                let id = format!("example_{number}_{calls}");
                let input = ToolInput::from(call.input.clone());
                results.push(call.result(&id, name));
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

/// The name under which the tool of a call is declared.
fn declared<'a>(call: &ExampleCall, tools: &'a [Arc<ToolDefinition>]) -> Option<&'a str> {
    tools
        .iter()
        .find(|tool| matches(&call.tool, tool))
        .map(|tool| tool.name.as_str())
}

impl ExampleCall {
    fn result(&self, id: &str, name: &str) -> ToolResult {
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
