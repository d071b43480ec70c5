//! Reasoning that is sent back to the server that created it.
//!
//! The state of a reasoning part is `{"field": <the field of its text>, "details": [<OpenRouter's
//! reasoning_details>], "blocks": [<LiteLLM's thinking_blocks>]}`. Every field is optional.

use serde_json::{Value, json};
use switchboard_domain::{JsonObject, ModelId, ProviderState, Reasoning};

use super::wire::ReasoningFields;

/// Fields of a reasoning block whose text is streamed in pieces: `text` and `summary` of
/// OpenRouter, and `thinking` of Anthropic's blocks in LiteLLM. A string in another field is never
/// split, so a later value replaces an earlier one.
const TEXT_FIELDS: [&str; 3] = ["text", "summary", "thinking"];
/// Types of reasoning blocks that arrive in one chunk, so that no later piece continues them.
const ENCRYPTED_TYPES: [&str; 2] = ["reasoning.encrypted", "redacted_thinking"];

/// Blocks of a reasoning part, assembled from streamed pieces. The blocks may be signed or
/// encrypted, so later requests must contain them unchanged.
#[derive(Debug, Default)]
pub(crate) struct ReasoningBlocks(Vec<JsonObject>);

impl ReasoningBlocks {
    /// Adds a streamed piece to the last block, or as a new block if it does not continue the last
    /// one.
    pub(crate) fn push_piece(&mut self, piece: JsonObject) {
        let Some(last) = self
            .0
            .last_mut()
            .filter(|last| piece_continues_block(last, &piece))
        else {
            self.0.push(piece);
            return;
        };
        for (name, value) in piece {
            match (last.get_mut(&name), value) {
                (_, Value::Null) => {}
                (Some(Value::String(text)), Value::String(more)) => {
                    if TEXT_FIELDS.contains(&name.as_str()) {
                        text.push_str(&more);
                    } else if !more.is_empty() {
                        *text = more;
                    }
                }
                (_, value) => {
                    last.insert(name, value);
                }
            }
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn take_blocks(&mut self) -> Option<Vec<JsonObject>> {
        Some(std::mem::take(&mut self.0)).filter(|blocks| !blocks.is_empty())
    }
}

/// Returns whether the piece `next` continues the reasoning block `last`. A block that already has
/// a signature is continued only by a piece without text.
fn piece_continues_block(last: &JsonObject, next: &JsonObject) -> bool {
    let is_same = |name: &str| last.get(name) == next.get(name);
    let text = |name: &str| last.get(name).and_then(Value::as_str).unwrap_or_default();
    let is_encrypted = ENCRYPTED_TYPES.contains(&text("type"));
    let is_unsigned = text("signature").is_empty();
    !is_encrypted
        && is_same("type")
        && is_same("index")
        && (is_unsigned || readable_text(next).is_empty())
}

/// Returns the text of a reasoning piece, or "" if the piece is encrypted or a signature.
pub(crate) fn readable_text(piece: &JsonObject) -> &str {
    let mut texts = TEXT_FIELDS
        .iter()
        .filter_map(|name| piece.get(*name)?.as_str());
    texts.next().unwrap_or_default()
}

/// Builds the provider state of a reasoning part, and empties `details` and `blocks`. `field` is
/// the name of the response field that contained the reasoning text. Returns `None` if `field` is
/// `None` and both lists of blocks are empty.
pub(crate) fn take_provider_state(
    model: &ModelId,
    field: Option<&'static str>,
    details: &mut ReasoningBlocks,
    blocks: &mut ReasoningBlocks,
) -> Option<ProviderState> {
    let mut data = JsonObject::new();
    let fields = [
        ("field", field.map(|field| json!(field))),
        (
            "details",
            details.take_blocks().map(|details| json!(details)),
        ),
        ("blocks", blocks.take_blocks().map(|blocks| json!(blocks))),
    ];
    for (name, value) in fields {
        if let Some(value) = value {
            data.insert(name.to_owned(), value);
        }
    }
    (!data.is_empty()).then(|| ProviderState::new_for_model(model, Value::Object(data)))
}

/// Adds a reasoning part to `fields`, the reasoning fields of an assistant message. Returns `false`
/// and adds nothing if another model than `model` created the part, or if its provider state
/// contains nothing that can be sent back.
pub(crate) fn replay_reasoning<'a>(
    reasoning: &'a Reasoning,
    model: &ModelId,
    fields: &mut ReasoningFields<'a>,
) -> bool {
    let state = reasoning.provider_state.as_ref();
    let Some(data) = state.and_then(|state| state.data_for_model(model)) else {
        return false;
    };
    let list = |name: &str| {
        let list = data.get(name).and_then(Value::as_array);
        list.filter(|list| !list.is_empty())
    };
    // The text of the reasoning is not sent with its blocks, because the blocks contain it.
    if let Some(details) = list("details") {
        fields.reasoning_details.extend(details);
        return true;
    }
    if let Some(blocks) = list("blocks") {
        fields.thinking_blocks.extend(blocks);
        return true;
    }
    let field = match data.get("field").and_then(Value::as_str) {
        Some("reasoning_content") => &mut fields.reasoning_content,
        Some("reasoning") => &mut fields.reasoning,
        _ => return false,
    };
    field.push("", reasoning.text.as_str());
    true
}

#[cfg(test)]
#[path = "reasoning_tests.rs"]
mod tests;
