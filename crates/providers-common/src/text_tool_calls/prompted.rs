//! Tools that are described in the prompt, for models and servers without tool support.
//!
//! [`PromptedTools::prepare_request`] converts a request with tools into one without: the
//! instructions describe the tools, and the calls and results of the history become text.
//! [`recover_tool_calls`](crate::text_tool_calls::recover_tool_calls) finds the calls in the
//! answer. An adapter joins both:
//!
//! ```
//! # use switchboard_domain::{ChatRequest, ModelError, ModelStream};
//! # use switchboard_providers_common::text_tool_calls::prompted::PromptedTools;
//! # use switchboard_providers_common::text_tool_calls::recover_tool_calls;
//! # async fn ask(_: &ChatRequest) -> Result<ModelStream, ModelError> { unreachable!() }
//! # async fn stream(request: &ChatRequest) -> Result<ModelStream, ModelError> {
//! let prepared = PromptedTools { constrained: true }.prepare_request(request);
//! let stream = ask(&prepared.request).await?;
//! Ok(recover_tool_calls(stream, prepared.recovery))
//! # }
//! ```
//!
//! The prompt uses the format of Hermes and Qwen (`<tools>`, `<tool_call>`, `<tool_response>`), on
//! which most open models were trained. The answer may contain calls in other formats too.

use std::sync::Arc;

use serde_json::{Value, json};
use switchboard_domain::{
    ChatRequest, Message, Part, ResponseFormat, Role, ToolChoice, ToolChoiceOutcome,
    ToolDefinition, Warning,
};

use crate::{
    request::{emulated_tool_choice, forces_tool_call, relaxed_tool_choice},
    text_tool_calls::{CallRecoverySettings, TextCallFormats, offered_tools::allowed_tools},
};

mod history;
mod schema;

/// Name of the response schema that describes a call.
const SCHEMA_NAME: &str = "tool_call";
/// Stop sequence that keeps the model from writing the result of its own call.
const STOP: &str = "<tool_response";
/// Maximum number of stop sequences that every server accepts. [`STOP`] is not added to a request
/// that already has this number of stop sequences.
const MAX_STOPS: usize = 4;

/// Settings for requests that describe their tools in the prompt instead of the tool list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PromptedTools {
    /// Whether the server enforces a JSON Schema of the answer ([`ResponseFormat::JsonSchema`]). A
    /// required tool call is then enforced with such a schema.
    pub constrained: bool,
}

/// A request without tools that replaces a request with tools.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct PromptedRequest {
    /// Request to send. It has no tools, tool uses or tool results. If the server enforces schemas,
    /// the response format of the request may be a schema that requires or allows a call.
    pub request: ChatRequest,
    /// Treatment of the request's tool choice, such as `Emulated`.
    /// [`recover_tool_calls`](crate::text_tool_calls::recover_tool_calls) reports it in `Started`.
    pub outcome: ToolChoiceOutcome,
    /// Settings for [`recover_tool_calls`](crate::text_tool_calls::recover_tool_calls), with the
    /// warnings to emit.
    pub recovery: CallRecoverySettings,
}

impl PromptedTools {
    /// Converts a request with tools into a request without tools. Outcome of each tool choice:
    ///
    /// | choice | if `constrained` is `true` | if `constrained` is `false` |
    /// |---|---|---|
    /// | `Auto` | `Emulated`: the prompt describes the tools | the same |
    /// | `None` | `Emulated`: the prompt describes no tools | the same |
    /// | `Required`, `Only` | `Emulated`: schema of a call | `Relaxed`: a call is requested |
    ///
    /// With `Only`, only the allowed tools are described. With `Auto`, a response schema and
    /// `constrained`, the answer may be a call or match the schema. A stop sequence is added,
    /// because small models invent the result of their call.
    pub fn prepare_request(self, request: &ChatRequest) -> PromptedRequest {
        let offered: Vec<&ToolDefinition> = allowed_tools(request).map(AsRef::as_ref).collect();
        let mut warnings = Vec::new();
        let outcome = self.tool_choice_outcome(request, &offered, &mut warnings);
        let mut messages = history::convert_tool_messages(&request.messages);
        let response_format = self.response_format(request, &offered);
        let mut sampling = request.sampling.clone();
        if !offered.is_empty() {
            let text = self.build_instructions(request, &offered);
            append_instructions(&mut messages, text);
            if sampling.stop.len() < MAX_STOPS {
                sampling.stop.push(STOP.to_owned());
            }
        }
        let recovery = CallRecoverySettings::for_request(request, TextCallFormats::ALL)
            .with_tool_choice_outcome(outcome.clone(), warnings);
        PromptedRequest {
            request: ChatRequest {
                messages,
                tools: Vec::new(),
                tool_choice: ToolChoice::Auto,
                parallel_tool_use: None,
                response_format,
                sampling,
                ..request.clone()
            },
            outcome,
            recovery,
        }
    }

    fn tool_choice_outcome(
        self,
        request: &ChatRequest,
        offered: &[&ToolDefinition],
        warnings: &mut Vec<Warning>,
    ) -> ToolChoiceOutcome {
        let has_tools = !offered.is_empty();
        let how = match (&request.tool_choice, forces_tool_call(request)) {
            (ToolChoice::None, _) if !request.tools.is_empty() => {
                "the tools were not described to the model"
            }
            (_, false) if !has_tools => return ToolChoiceOutcome::Native,
            (_, false) => "the tools were described in the prompt",
            (_, true) if has_tools && self.constrained => {
                "the answer was constrained to the format of a tool call"
            }
            (_, true) => {
                let why = if has_tools {
                    "a call was requested in the prompt; the model may answer without one"
                } else {
                    "a tool is required but none is declared"
                };
                return relaxed_tool_choice(why, warnings);
            }
        };
        emulated_tool_choice(how)
    }

    fn response_format(self, request: &ChatRequest, offered: &[&ToolDefinition]) -> ResponseFormat {
        let format = &request.response_format;
        if offered.is_empty() {
            return format.clone();
        }
        match (forces_tool_call(request), self.constrained) {
            (true, true) => ResponseFormat::JsonSchema {
                name: SCHEMA_NAME.to_owned(),
                schema: schema::call_schema(offered, None),
            },
            // The model must write a tool call, so the format that the request sets for answers
            // does not apply.
            (true, false) => ResponseFormat::Text,
            (false, true) if let ResponseFormat::JsonSchema { name, schema } = format => {
                ResponseFormat::JsonSchema {
                    name: name.clone(),
                    schema: schema::call_schema(offered, Some(schema)),
                }
            }
            (false, _) => format.clone(),
        }
    }

    fn build_instructions(self, request: &ChatRequest, offered: &[&ToolDefinition]) -> String {
        // The text follows Qwen's template, on which small models were trained. With this text, a
        // model of 1.5 B parameters calls tools; with other text it only mentions them.
        let mut text = String::from(
            "# Tools\n\nYou may call one or more of these tools to assist with the user query. \
             `parameters` is the JSON Schema of a tool's arguments.\n<tools>\n",
        );
        for tool in offered {
            let mut line = json!({
                "name": tool.name,
                "description": tool.description,
                "parameters": schema::compact_schema(&tool.input_schema),
            });
            if let Value::Object(line) = &mut line {
                line.retain(|_, value| value.as_str() != Some(""));
            }
            text.push_str(&line.to_string());
            text.push('\n');
        }
        text.push_str(
            "</tools>\n\nFor each call, return a JSON object with the tool's name and arguments \
             within <tool_call></tool_call> XML tags:\n<tool_call>\n{\"name\": <tool name>, \
             \"arguments\": <JSON object>}\n</tool_call>\n",
        );
        if request.parallel_tool_use == Some(false) {
            text.push_str("Call one tool at a time. ");
        }
        // The prompt does not show the format of tool results, because a small model would begin
        // its answer with a result.
        text.push_str(
            "Then stop and wait for the results. Take unknown values, such as ids, from the \
             results. Never invent a result or an argument, and never call a tool that is not \
             listed.",
        );
        text.push_str(self.call_instruction(request));
        text
    }

    /// Returns the instruction that tells the model whether and how it must call a tool.
    fn call_instruction(self, request: &ChatRequest) -> &'static str {
        let has_format = request.response_format != ResponseFormat::Text;
        match (forces_tool_call(request), self.constrained) {
            (true, true) => {
                "\n\nYour next answer must be one tool call: the JSON object alone, without tags."
            }
            (true, false) => {
                "\n\nYour next answer must be a tool call in this form, and nothing else."
            }
            (false, true) if has_format => {
                "\n\nYour answer is JSON: either one tool call, the JSON object alone without \
                 tags, or the final answer in the requested format."
            }
            (false, _) => " If no tool helps, answer in plain text.",
        }
    }
}

/// Returns whether a request offers tools, or its history has calls or results.
pub fn has_tools_or_calls(request: &ChatRequest) -> bool {
    let is_of_tools = |part: &Part| matches!(part, Part::ToolUse(_) | Part::ToolResult(_));
    let mut parts = request.messages.iter().flat_map(|it| &it.parts);
    !request.tools.is_empty() || parts.any(is_of_tools)
}

/// Converts the calls and results in the history of a request into text, as
/// [`PromptedTools::prepare_request`] does, and leaves the rest of the request unchanged. Used by
/// adapters that constrain the next call themselves.
pub fn convert_tool_history_to_text(request: &ChatRequest) -> ChatRequest {
    ChatRequest {
        messages: history::convert_tool_messages(&request.messages),
        ..request.clone()
    }
}

/// Appends text to the last of the leading system messages, because many templates accept only one
/// system message.
fn append_instructions(messages: &mut Vec<Arc<Message>>, text: String) {
    let leading = messages
        .iter()
        .take_while(|message| message.role == Role::System)
        .count();
    match leading
        .checked_sub(1)
        .and_then(|last| messages.get_mut(last))
    {
        Some(message) => {
            let parts = &mut Arc::make_mut(message).parts;
            parts.push(Part::text(format!("\n\n{text}")));
        }
        None => messages.insert(0, Arc::new(Message::system(text))),
    }
}

#[cfg(test)]
#[path = "prompted/prompted_tests.rs"]
mod tests;
