//! Examples in the form of OpenAI's messages.

use serde::Deserialize;
use serde_json::{Value, json};

use super::RecipeError;

const ORDER: &str =
    "expected messages in the order user, assistant with calls, tool for each call, assistant";

/// A message with `role`, `content`, `tool_calls` and `tool_call_id`.
#[derive(Deserialize)]
struct Message {
    role: String,
    #[serde(default)]
    content: String,
    #[serde(default)]
    tool_calls: Vec<ToolCall>,
    #[serde(default)]
    tool_call_id: String,
}

#[derive(Deserialize)]
struct ToolCall {
    #[serde(default)]
    id: String,
    function: Function,
}

#[derive(Deserialize)]
struct Function {
    name: String,
    #[serde(default = "no_arguments")]
    arguments: Value,
}

fn no_arguments() -> Value {
    json!({})
}

/// An example that is being built.
struct Draft {
    user: String,
    calls: Vec<Vec<Value>>,
    answer: Option<String>,
    /// Ids of the calls of the last step and whether they have a result.
    open: Vec<(String, bool)>,
}

/// Converts messages to examples in our form.
pub(super) fn examples_from_messages(items: &[Value], path: &str) -> Result<Value, RecipeError> {
    let mut drafts: Vec<Draft> = Vec::new();
    for (index, item) in items.iter().enumerate() {
        let path = format!("{path}[{index}]");
        let misplaced = || RecipeError::new(path.as_str(), ORDER);
        let message = Message::deserialize(item)
            .map_err(|error| RecipeError::new(&path, error.to_string()))?;
        let is_text = !message.content.trim().is_empty();
        if message.role == "user" {
            if !is_text || drafts.last().is_some_and(|draft| draft.answer.is_none()) {
                return Err(misplaced());
            }
            drafts.push(Draft {
                user: message.content,
                calls: Vec::new(),
                answer: None,
                open: Vec::new(),
            });
            continue;
        }
        let draft = drafts.last_mut().filter(|draft| draft.answer.is_none());
        let draft = draft.ok_or_else(misplaced)?;
        let is_complete = draft.open.iter().all(|(_, has_result)| *has_result);
        match message.role.as_str() {
            "assistant" if is_complete && !message.tool_calls.is_empty() => {
                draft.open.clear();
                let calls = message.tool_calls.into_iter().map(|call| {
                    draft.open.push((call.id, false));
                    let Function { name, arguments } = call.function;
                    json!({"tool": name, "input": arguments})
                });
                let calls = calls.collect();
                draft.calls.push(calls);
            }
            "assistant" if is_complete && is_text => draft.answer = Some(message.content),
            "tool" if is_text => {
                // Results can be in any order.
                let open = (*message.tool_call_id).to_owned();
                let position = draft
                    .open
                    .iter()
                    .position(|it| *it == (open.clone(), false));
                let position = position.ok_or_else(misplaced)?;
                let step = draft.calls.last_mut().ok_or_else(misplaced)?;
                step[position]["result"] = message.content.into();
                draft.open[position].1 = true;
            }
            _ => return Err(misplaced()),
        }
    }
    if drafts.last().is_some_and(|draft| draft.answer.is_none()) {
        let message = "the last message must be an answer of the assistant";
        return Err(RecipeError::new(path, message));
    }
    let examples = drafts
        .into_iter()
        .map(|draft| json!({"user": draft.user, "calls": draft.calls, "answer": draft.answer}));
    Ok(examples.collect())
}
