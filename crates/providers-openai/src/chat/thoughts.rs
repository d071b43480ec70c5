//! Reasoning that goes back to the server that wrote it.
//!
//! The state on a reasoning part is `{"field": <where its text came>, "details": [<OpenRouter's
//! reasoning_details>], "blocks": [<LiteLLM's thinking_blocks>]}`; each only if there is something
//! to say.

use serde_json::{Value, json};
use switchboard_domain::{JsonObject, ModelId, ProviderState, Reasoning};

use super::wire::Thoughts;

/// The fields with text, which comes in pieces: of OpenRouter, and of Anthropic's blocks in LiteLLM.
const TEXTS: [&str; 3] = ["text", "summary", "thinking"];
/// The types of what comes whole.
const SEALED: [&str; 2] = ["reasoning.encrypted", "redacted_thinking"];

/// Signed or encrypted reasoning, put together from a stream, to be sent back unchanged.
#[derive(Debug, Default)]
pub(crate) struct Details(Vec<JsonObject>);

impl Details {
    /// Takes the next piece.
    pub(crate) fn push(&mut self, detail: JsonObject) {
        let Some(last) = self.0.last_mut().filter(|last| continues(last, &detail)) else {
            self.0.push(detail);
            return;
        };
        for (name, value) in detail {
            match (last.get_mut(&name), value) {
                (_, Value::Null) => {}
                (Some(Value::String(said)), Value::String(more)) => {
                    if TEXTS.contains(&name.as_str()) {
                        said.push_str(&more);
                    } else if !more.is_empty() {
                        *said = more;
                    }
                }
                (_, value) => {
                    last.insert(name, value);
                }
            }
        }
    }

    fn take(&mut self) -> Option<Vec<JsonObject>> {
        Some(std::mem::take(&mut self.0)).filter(|details| !details.is_empty())
    }
}

/// Whether a piece goes on with the text before it. A signature closes a text.
fn continues(last: &JsonObject, next: &JsonObject) -> bool {
    let same = |name: &str| last.get(name) == next.get(name);
    let text = |name: &str| last.get(name).and_then(Value::as_str).unwrap_or_default();
    let is_sealed = SEALED.contains(&text("type"));
    let is_open = text("signature").is_empty();
    !is_sealed && same("type") && same("index") && (is_open || readable(next).is_empty())
}

/// What a person may read of a piece.
pub(crate) fn readable(detail: &JsonObject) -> &str {
    let texts = TEXTS.iter().filter_map(|name| detail.get(*name)?.as_str());
    texts.into_iter().next().unwrap_or_default()
}

/// The state of a part of `model` whose text came in `field`. Takes the details and the blocks.
pub(crate) fn state(
    model: &ModelId,
    field: Option<&'static str>,
    details: &mut Details,
    blocks: &mut Details,
) -> Option<ProviderState> {
    let mut data = JsonObject::new();
    let known = [
        ("field", field.map(|field| json!(field))),
        ("details", details.take().map(|details| json!(details))),
        ("blocks", blocks.take().map(|blocks| json!(blocks))),
    ];
    for (name, value) in known {
        if let Some(value) = value {
            data.insert(name.to_owned(), value);
        }
    }
    (!data.is_empty()).then(|| ProviderState::minted_by(model, Value::Object(data)))
}

/// Puts a reasoning part that `model` wrote into its message; `false` if another wrote it, or in a
/// form that does not go back.
pub(crate) fn replay<'a>(
    reasoning: &'a Reasoning,
    model: &ModelId,
    thoughts: &mut Thoughts<'a>,
) -> bool {
    let state = reasoning.provider_state.as_ref();
    let Some(data) = state.and_then(|state| state.for_model(model)) else {
        return false;
    };
    let list = |name: &str| {
        let list = data.get(name).and_then(Value::as_array);
        list.filter(|list| !list.is_empty())
    };
    // The text is in them.
    if let Some(details) = list("details") {
        thoughts.reasoning_details.extend(details);
        return true;
    }
    if let Some(blocks) = list("blocks") {
        thoughts.thinking_blocks.extend(blocks);
        return true;
    }
    let field = match data.get("field").and_then(Value::as_str) {
        Some("reasoning_content") => &mut thoughts.reasoning_content,
        Some("reasoning") => &mut thoughts.reasoning,
        _ => return false,
    };
    field.push("", reasoning.text.as_str());
    true
}

#[cfg(test)]
#[path = "thoughts_tests.rs"]
mod tests;
