//! Conversion of examples that are written as OpenAI chat messages.

use serde::Deserialize;
use serde_json::{Value, json};

use super::RecipeError;

#[derive(Deserialize)]
#[serde(tag = "role", rename_all = "snake_case")]
enum OpenAiMessage {
    User {
        content: String,
    },
    Assistant {
        #[serde(default)]
        content: String,
        #[serde(default)]
        tool_calls: Vec<OpenAiToolCall>,
    },
    Tool {
        tool_call_id: String,
        #[serde(default)]
        content: String,
    },
}

#[derive(Deserialize)]
struct OpenAiToolCall {
    id: String,
    function: OpenAiFunction,
}

#[derive(Deserialize)]
struct OpenAiFunction {
    name: String,
    /// Arguments of the tool call as JSON text, as OpenAI's API represents them.
    arguments: String,
}

/// Converts OpenAI chat messages to few-shot examples as a recipe file contains them. Returns an
/// error if the messages are in the wrong order or if the arguments of a tool call are not JSON. A
/// missing tool result or final answer causes an error later, when the examples are deserialized.
pub(super) fn examples_from_openai_messages(items: &[Value]) -> Result<Value, RecipeError> {
    let mut examples: Vec<Value> = Vec::new();
    // Ids of the tool calls in the latest assistant message, which `tool` messages refer to.
    let mut ids: Vec<String> = Vec::new();
    for (index, item) in items.iter().enumerate() {
        let error = |message: String| RecipeError::new(format!("examples[{index}]"), message);
        let message = OpenAiMessage::deserialize(item).map_err(|fault| error(fault.to_string()))?;
        let open = examples.last_mut().filter(|it| it.get("answer").is_none());
        match (message, open) {
            (OpenAiMessage::User { content }, None) => {
                examples.push(json!({"user": content, "calls": []}));
            }
            (
                OpenAiMessage::Assistant {
                    content,
                    tool_calls,
                },
                Some(example),
            ) => {
                if tool_calls.is_empty() {
                    example["answer"] = content.into();
                    continue;
                }
                ids.clear();
                let mut step = Vec::new();
                for OpenAiToolCall { id, function } in tool_calls {
                    let input: Value = serde_json::from_str(&function.arguments)
                        .map_err(|fault| error(format!("invalid arguments: {fault}")))?;
                    step.push(json!({"tool": function.name, "input": input}));
                    ids.push(id);
                }
                if let Some(steps) = example["calls"].as_array_mut() {
                    steps.push(step.into());
                }
            }
            (
                OpenAiMessage::Tool {
                    tool_call_id,
                    content,
                },
                Some(example),
            ) => {
                // Results of parallel tool calls can be in any order, so the id selects the call.
                let call = ids.iter().position(|id| *id == tool_call_id);
                let steps = example["calls"].as_array_mut();
                let step = steps.and_then(|steps| steps.last_mut());
                let (Some(call), Some(step)) = (call, step) else {
                    return Err(error(format!("no call has the id `{tool_call_id}`")));
                };
                step[call]["result"] = content.into();
            }
            _ => {
                return Err(error(
                    "expected messages in the order user, assistant with calls, tool for each \
                     call, assistant"
                        .to_owned(),
                ));
            }
        }
    }
    Ok(examples.into())
}
