//! What was said, in the form that the conventions give it. Made only if somebody listens.

use std::sync::Arc;

use serde_json::{Value, json};
use switchboard_domain::{JsonObject, Message, Part, Role, ToolOutput};
use tracing::{Level, Span};

use super::CONTENT;
use crate::observe::audit::{Redactor, SizeLimits};

/// More than in a log, and still no megabytes.
const LIMITS: SizeLimits = SizeLimits {
    text: 16_000,
    items: 200,
    total: 64_000,
};

fn is_wanted() -> bool {
    tracing::enabled!(target: CONTENT, Level::TRACE)
}

fn shown(value: &Value) -> String {
    Redactor::default()
        .with_limits(LIMITS)
        .value(value)
        .to_string()
}

/// The conversation that a model is sent.
pub(super) fn asked(span: &Span, messages: &[Arc<Message>]) {
    if span.is_disabled() || !is_wanted() {
        return;
    }
    let text = shown(&messages.iter().map(|message| in_words(message)).collect());
    tracing::event!(target: CONTENT, parent: span, Level::TRACE, gen_ai.input.messages = text);
}

/// What a model answered.
pub(super) fn answered(span: &Span, message: &Message, finish: &str) {
    if span.is_disabled() || !is_wanted() {
        return;
    }
    let mut message = in_words(message);
    if let Value::Object(fields) = &mut message {
        fields.insert("finish_reason".to_owned(), finish.into());
    }
    let text = shown(&json!([message]));
    tracing::event!(target: CONTENT, parent: span, Level::TRACE, gen_ai.output.messages = text);
}

/// What a tool is given.
pub(super) fn called(span: &Span, input: &JsonObject) {
    if span.is_disabled() || !is_wanted() {
        return;
    }
    let text = shown(&Value::Object(input.clone()));
    tracing::event!(target: CONTENT, parent: span, Level::TRACE, gen_ai.tool.call.arguments = text);
}

/// What a tool gave.
pub(super) fn gave(span: &Span, output: &ToolOutput) {
    if span.is_disabled() || !is_wanted() {
        return;
    }
    let redactor = Redactor::default().with_limits(LIMITS);
    let value = match &output.structured {
        Some(structured) => redactor.value(structured),
        None => redactor.content(&output.content),
    };
    tracing::event!(target: CONTENT, parent: span, Level::TRACE, gen_ai.tool.call.result = value.to_string());
}

/// A message as in the conventions' `gen-ai-input-messages.json`. Media are named, not carried.
fn in_words(message: &Message) -> Value {
    let role = match message.role {
        Role::System => "system",
        Role::User => "user",
        Role::Assistant => "assistant",
        Role::Tool => "tool",
    };
    let parts: Vec<Value> = message.parts.iter().map(part).collect();
    json!({"role": role, "parts": parts})
}

fn part(part: &Part) -> Value {
    match part {
        Part::Text(text) => json!({"type": "text", "content": text.text}),
        Part::Reasoning(reasoning) => json!({"type": "reasoning", "content": reasoning.text}),
        Part::ToolUse(tool_use) => {
            let arguments = match tool_use.input.as_object() {
                Some(object) => Value::Object(object.clone()),
                None => Value::Null,
            };
            json!({
                "type": "tool_call",
                "id": tool_use.id,
                "name": tool_use.name,
                "arguments": arguments,
            })
        }
        Part::ToolResult(result) => json!({
            "type": "tool_call_response",
            "id": result.tool_use_id,
            "response": result.as_text(),
        }),
        other => json!({"type": "generic", "content": format!("[{}]", other.in_words())}),
    }
}
