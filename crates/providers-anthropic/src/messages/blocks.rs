//! Assembles content blocks while they are streamed.

use serde_json::Value;
use switchboard_domain::{JsonObject, ModelEvent, ModelId, Opaque, Part, ProviderState};
use switchboard_providers_common::{JsonShapeRestorer, emit_part_state, opaque_block_text};

use super::content::{CITATIONS, CONTAINER};

/// A content block of the stream that has started but has not ended.
#[derive(Debug)]
pub(crate) enum OpenBlock {
    Text {
        part: u32,
        citations: Vec<Value>,
    },
    Reasoning {
        part: u32,
    },
    ToolUse {
        part: u32,
        /// The tool input in the event `content_block_start`: `{}` in a stream, the complete input
        /// in a response without streaming. `None` after the first delta with input.
        input: Option<Value>,
        restorer: JsonShapeRestorer,
    },
    /// A block without its own part type in the domain, such as a call of a server tool. It becomes
    /// one opaque part when it is complete.
    Opaque {
        block: JsonObject,
        input: String,
    },
    /// A tool call without a name, which cannot be executed. Its deltas are ignored.
    Ignored,
}

/// Emits the citations of a text part as the provider state of the part. Later requests to any
/// model of the provider contain this state. Emits nothing without citations.
pub(crate) fn emit_citations(
    model: &ModelId,
    part: u32,
    citations: Vec<Value>,
    events: &mut Vec<ModelEvent>,
) {
    if !citations.is_empty() {
        let mut data = JsonObject::new();
        data.insert(CITATIONS.to_owned(), Value::Array(citations));
        let state = provider_wide_state(model, Value::Object(data));
        emit_part_state(part, state, events);
    }
}

/// Emits the rest of a tool call's input when its content block ends: the complete input if the API
/// did not stream it, else the text that is still buffered.
pub(crate) fn emit_call_input(
    part: u32,
    input: Option<Value>,
    mut restorer: JsonShapeRestorer,
    events: &mut Vec<ModelEvent>,
) {
    let whole = match input {
        None | Some(Value::Null) => String::new(),
        Some(Value::Object(object)) if object.is_empty() => String::new(),
        // Some compatible servers send the input as JSON text instead of an object.
        Some(Value::String(text)) => text,
        Some(other) => other.to_string(),
    };
    for json in [restorer.push(&whole), restorer.restore_buffer()] {
        events.extend(json.map(|json| ModelEvent::ToolInputDelta { index: part, json }));
    }
}

/// Applies a delta of an unknown type to a block. A string is appended to the string field of the
/// same name in the block. Other values replace the field.
pub(crate) fn apply_unknown_delta(block: &mut JsonObject, delta: JsonObject) {
    for (name, value) in delta {
        if name == "type" {
            continue;
        }
        match (block.get_mut(&name), value) {
            (Some(Value::String(text)), Value::String(more)) => text.push_str(&more),
            (_, value) => {
                block.insert(name, value);
            }
        }
    }
}

/// Converts a block, such as a call of a server tool, to an opaque part, because the domain has no
/// other part for it. Every model of the provider accepts this part in later requests. `input` is
/// the streamed input of a tool call as JSON text, or "".
pub(crate) fn to_opaque_part(model: &ModelId, mut block: JsonObject, input: &str) -> Part {
    if let Ok(Value::Object(input)) = serde_json::from_str(input) {
        block.insert("input".to_owned(), Value::Object(input));
    }
    let kind = block.get("type").and_then(Value::as_str);
    Part::Opaque(Opaque {
        kind: kind.unwrap_or("unknown").to_owned(),
        text: opaque_block_text(&block).filter(|_| kind != Some(CONTAINER)),
        provider_state: provider_wide_state(model, Value::Object(block)),
    })
}

/// Returns the fields of a tool call that the domain's tool use does not have, such as `caller`.
pub(crate) fn additional_call_fields(block: &JsonObject) -> JsonObject {
    let is_redundant = |name: &str, value: &Value| match name {
        "type" | "id" | "name" | "input" => true,
        // The caller `direct`, the model itself, is omitted, because it is the default.
        "caller" => value.get("type").is_none_or(|it| it == "direct"),
        _ => value.is_null(),
    };
    let fields = block
        .iter()
        .filter(|(name, value)| !is_redundant(name, value));
    fields
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}

/// Creates a provider state that is sent back to every model of the provider, not only to `model`.
pub(crate) fn provider_wide_state(model: &ModelId, data: Value) -> ProviderState {
    ProviderState {
        provider: model.provider.clone(),
        model: None,
        data,
    }
}
