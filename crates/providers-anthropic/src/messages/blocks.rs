//! A block of an answer while it is being written.

use serde_json::Value;
use switchboard_domain::{JsonObject, ModelEvent, ModelId, Opaque, Part, PartStart, ProviderState};

use super::{content::CITATIONS, restore::Held, words::words};

/// A block that has begun and not ended.
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
        /// The input said at the beginning; `{}` in a stream, the whole one in a whole body.
        input: Option<Value>,
        /// What has come of an input that is to be given another shape.
        held: Option<Held>,
    },
    /// A block of the API's own. It takes no deltas in the domain, so that it is kept here until
    /// it is whole.
    Opaque {
        block: JsonObject,
        input: String,
    },
    /// A call without a name: what comes of it is not read.
    LeftOut,
}

/// What comes before the end of a text: what it cites. Any model of the provider may read it again.
pub(crate) fn cite(
    model: &ModelId,
    part: u32,
    citations: Vec<Value>,
    events: &mut Vec<ModelEvent>,
) {
    if !citations.is_empty() {
        let mut data = JsonObject::new();
        data.insert(CITATIONS.to_owned(), Value::Array(citations));
        let state = for_any_model(model, Value::Object(data));
        let state = Box::new(state);
        events.push(ModelEvent::PartState { index: part, state });
    }
}

/// What comes before the end of a call: its input, where it was said at once or held back.
pub(crate) fn give_input(
    part: u32,
    input: Option<Value>,
    held: Option<Held>,
    events: &mut Vec<ModelEvent>,
) {
    let said = match input {
        None | Some(Value::Null) => None,
        Some(Value::Object(object)) if object.is_empty() => None,
        // Some servers say it as text.
        Some(Value::String(text)) => Some(text),
        Some(other) => Some(other.to_string()),
    };
    let json = match held {
        Some(mut held) => {
            let too_long = said.and_then(|said| held.push(&said));
            too_long.unwrap_or_else(|| held.restored())
        }
        None => said.unwrap_or_default(),
    };
    if !json.is_empty() {
        events.push(ModelEvent::ToolInputDelta { index: part, json });
    }
}

/// Takes a delta of a block of the API's own that has no form here: text is appended, anything else
/// replaces what was said before.
pub(crate) fn merge(block: &mut JsonObject, delta: JsonObject) {
    for (name, value) in delta {
        if name == "type" {
            continue;
        }
        match (block.get_mut(&name), value) {
            (Some(Value::String(said)), Value::String(more)) => said.push_str(&more),
            (_, value) => {
                block.insert(name, value);
            }
        }
    }
}

/// A block of the API's own as a part. Any model of the provider may read it again.
pub(crate) fn opaque(
    model: &ModelId,
    index: u32,
    mut block: JsonObject,
    input: &str,
    events: &mut Vec<ModelEvent>,
) {
    if let Ok(Value::Object(input)) = serde_json::from_str(input) {
        block.insert("input".to_owned(), Value::Object(input));
    }
    let kind = block.get("type").and_then(Value::as_str);
    let part = Part::Opaque(Opaque {
        kind: kind.unwrap_or("unknown").to_owned(),
        text: words(&block),
        provider_state: for_any_model(model, Value::Object(block)),
    });
    events.push(ModelEvent::PartStarted {
        index,
        part: PartStart::Whole {
            part: Box::new(part),
        },
    });
    events.push(ModelEvent::PartFinished { index });
}

/// The fields of a call that the domain has no place for, where they say something.
pub(crate) fn more_of_call(block: &JsonObject) -> JsonObject {
    let says_nothing = |name: &str, value: &Value| match name {
        "type" | "id" | "name" | "input" => true,
        // Called by the model itself, which is what holds anyway.
        "caller" => value.get("type").is_none_or(|it| it == "direct"),
        _ => value.is_null(),
    };
    let fields = block
        .iter()
        .filter(|(name, value)| !says_nothing(name, value));
    fields
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}

pub(crate) fn for_any_model(model: &ModelId, data: Value) -> ProviderState {
    ProviderState {
        provider: model.provider.clone(),
        model: None,
        data,
    }
}
