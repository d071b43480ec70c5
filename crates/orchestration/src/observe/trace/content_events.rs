//! Tracing events with the content of messages and tool calls, as OpenTelemetry's semantic
//! conventions define them.

use std::sync::Arc;

use serde_json::{Value, json};
use switchboard_domain::{
    JsonObject, Message, Part, Role, ToolOutput,
    redact::{RedactionLimits, Redactor},
};
use tracing::{Level, Span};

use super::CONTENT;

/// Size limits of the content in tracing events: bytes per text, items per array or object, and
/// approximate bytes in total.
const LIMITS: RedactionLimits = RedactionLimits {
    text: 16_000,
    items: 200,
    total: 64_000,
};

fn is_content_enabled(span: &Span) -> bool {
    !span.is_disabled() && tracing::enabled!(target: CONTENT, Level::TRACE)
}

fn redact_to_text(value: &Value) -> String {
    let redactor = Redactor::default().with_limits(LIMITS);
    redactor.redact_value(value).to_string()
}

/// Emits a tracing event with the messages of a model request. Has no effect unless a subscriber
/// enables the target [`CONTENT`].
pub(super) fn emit_input_messages(span: &Span, messages: &[Arc<Message>]) {
    if is_content_enabled(span) {
        let messages: Value = messages.iter().map(|it| message_to_json(it)).collect();
        let text = redact_to_text(&messages);
        tracing::event!(target: CONTENT, parent: span, Level::TRACE, gen_ai.input.messages = text);
    }
}

/// Emits a tracing event with the message of a model answer. Has no effect unless a subscriber
/// enables the target [`CONTENT`].
pub(super) fn emit_output_message(span: &Span, message: &Message, finish: &str) {
    if is_content_enabled(span) {
        let mut message = message_to_json(message);
        message["finish_reason"] = finish.into();
        let text = redact_to_text(&json!([message]));
        tracing::event!(target: CONTENT, parent: span, Level::TRACE, gen_ai.output.messages = text);
    }
}

/// Emits a tracing event with the input of a tool call. Has no effect unless a subscriber enables
/// the target [`CONTENT`].
pub(super) fn emit_tool_input(span: &Span, input: &JsonObject) {
    if is_content_enabled(span) {
        let text = redact_to_text(&Value::Object(input.clone()));
        tracing::event!(
            target: CONTENT, parent: span, Level::TRACE, gen_ai.tool.call.arguments = text
        );
    }
}

/// Emits a tracing event with the output of a tool call. Has no effect unless a subscriber enables
/// the target [`CONTENT`].
pub(super) fn emit_tool_output(span: &Span, output: &ToolOutput) {
    if is_content_enabled(span) {
        let redactor = Redactor::default().with_limits(LIMITS);
        let text = match &output.structured {
            Some(structured) => redact_to_text(structured),
            None => redactor.redact_content(&output.content).to_string(),
        };
        tracing::event!(
            target: CONTENT, parent: span, Level::TRACE, gen_ai.tool.call.result = text
        );
    }
}

/// Converts a message to the JSON that OpenTelemetry's schema `gen-ai-input-messages.json` defines.
/// Media are replaced by a short description.
fn message_to_json(message: &Message) -> Value {
    let role = match message.role {
        Role::System => "system",
        Role::User => "user",
        Role::Assistant => "assistant",
        Role::Tool => "tool",
    };
    let parts: Vec<Value> = message.parts.iter().map(message_part_to_json).collect();
    json!({"role": role, "parts": parts})
}

fn message_part_to_json(part: &Part) -> Value {
    match part {
        Part::Text(text) => json!({"type": "text", "content": text.text}),
        Part::Reasoning(reasoning) => json!({"type": "reasoning", "content": reasoning.text}),
        Part::ToolUse(tool_use) => json!({
            "type": "tool_call",
            "id": tool_use.id,
            "name": tool_use.name,
            "arguments": tool_use.input.as_object(),
        }),
        Part::ToolResult(result) => json!({
            "type": "tool_call_response",
            "id": result.tool_use_id,
            "response": result.as_text(),
        }),
        other => json!({"type": "generic", "content": format!("[{}]", other.describe_kind())}),
    }
}
