//! Conversion of few-shot examples to messages.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use switchboard_domain::{
    JsonObject, Message, Part, Role, ToolDefinition, ToolInput, ToolResult, ToolUse,
};

use super::tools::matches_tool;
use crate::tools::arguments::InputValidators;

/// A few-shot example of a recipe: a question, tool calls and an answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Example {
    /// Question that the user asks in the example.
    pub user: String,
    /// Tool calls of the example. Each inner list contains the parallel calls of one model
    /// response.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<Vec<ExampleCall>>,
    /// Answer that the model gives in the example.
    pub answer: String,
}

/// A tool call in a few-shot example, with its result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct ExampleCall {
    /// Name of the tool on its server, or the name that the model sees.
    pub tool: String,
    /// Input that the model passes to the tool in the example.
    #[serde(default)]
    pub input: JsonObject,
    /// Result that the tool returns in the example: a text or structured content.
    pub result: Value,
    /// Whether the example shows a failed call, whose result is an error.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_error: bool,
}

/// Converts the examples of a recipe to messages. See [`super::Recipe::example_messages`].
pub(super) fn convert_examples(
    examples: &[Example],
    tools: &[Arc<ToolDefinition>],
    validators: &InputValidators,
) -> (Vec<Message>, Vec<String>) {
    let (mut messages, mut problems) = (Vec::new(), Vec::new());
    for (index, example) in (1..).zip(examples) {
        let names = example.calls.iter().flatten();
        let names = names.map(|call| call.find_declared_name(tools, validators));
        let names = match names.collect::<Result<Vec<&str>, String>>() {
            Ok(names) => names,
            Err(problem) => {
                problems.push(format!("recipe example {index} was omitted: {problem}"));
                continue;
            }
        };
        let mut names = (1..).zip(names);
        messages.push(Message::user(&example.user));
        for step in example.calls.iter().filter(|step| !step.is_empty()) {
            let (mut uses, mut results) = (Vec::new(), Vec::new());
            for (call, (number, name)) in step.iter().zip(names.by_ref()) {
                let id = format!("example_{index}_{number}");
                let input = ToolInput::from(call.input.clone());
                results.push(call.to_tool_result(&id, name));
                uses.push(Part::ToolUse(ToolUse::new(id, name, input)));
            }
            messages.push(Message::new(Role::Assistant, uses));
            messages.push(Message::from_tool_results(results));
        }
        messages.push(Message::assistant(&example.answer));
    }
    (messages, problems)
}

impl ExampleCall {
    /// Returns the name by which the model calls the tool. Returns an error message if the tool is
    /// not in `tools`, or if the input of the call does not match the tool's input schema.
    fn find_declared_name<'a>(
        &self,
        tools: &'a [Arc<ToolDefinition>],
        validators: &InputValidators,
    ) -> Result<&'a str, String> {
        let name = &self.tool;
        let tool = tools.iter().find(|tool| matches_tool(name, tool));
        let tool = tool.ok_or_else(|| format!("tool `{name}` is not available"))?;
        // A failed call may be the example of an invalid input, so its input is not checked.
        if !self.is_error {
            let valid = validators.validate_input(tool, &self.input.clone().into());
            valid.map_err(|faults| format!("the input of tool `{name}` is invalid: {faults}"))?;
        }
        Ok(&tool.name)
    }

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
