//! What rides on the parts of an answer, so that its items can be sent back as they were. The forms
//! are in the documentation of [the module above](super).

use serde_json::{Value, json};
use switchboard_domain::{JsonObject, ModelId, ProviderState};

/// What of a message the text has no place for.
const MESSAGE: [&str; 3] = ["id", "status", "phase"];
/// What of a piece of a message the text has no place for.
const TEXT: [&str; 1] = ["annotations"];
const REFUSAL: [&str; 1] = ["type"];
/// What of a call the tool use has no place for.
const CALL: [&str; 4] = ["id", "status", "caller", "namespace"];
/// What the API says of an item but does not take back.
const ONLY_SAID: &str = "created_by";

/// The state of a text of a message.
pub(crate) fn of_text(
    model: &ModelId,
    item: &JsonObject,
    content: Option<&JsonObject>,
    after: Option<&str>,
) -> Option<ProviderState> {
    let item = kept(item, &MESSAGE);
    let said = |name: &str| item.contains_key(name);
    if !said("id") && !said("phase") {
        return None;
    }
    let mut data = holding(item, after);
    let content = content.map(|content| match content.get("type") {
        Some(kind) if kind == "refusal" => kept(content, &REFUSAL),
        _ => kept(content, &TEXT),
    });
    if let Some(content) = content.filter(|content| !content.is_empty()) {
        data.insert("content".to_owned(), Value::Object(content));
    }
    Some(ProviderState::minted_by(model, Value::Object(data)))
}

/// The state of a call.
pub(crate) fn of_call(
    model: &ModelId,
    item: &JsonObject,
    after: Option<&str>,
) -> Option<ProviderState> {
    let item = kept(item, &CALL);
    let data = (!item.is_empty()).then(|| Value::Object(holding(item, after)))?;
    Some(ProviderState::minted_by(model, data))
}

/// The state of reasoning; `None` if there is nothing in it that the API takes back.
pub(crate) fn of_reasoning(model: &ModelId, item: &JsonObject) -> Option<ProviderState> {
    goes_back(item).then(|| ProviderState::minted_by(model, Value::Object(whole(item))))
}

/// The state of an item of any other type.
pub(crate) fn of_opaque(model: &ModelId, item: &JsonObject, after: Option<&str>) -> ProviderState {
    ProviderState::minted_by(model, Value::Object(holding(whole(item), after)))
}

/// Whether reasoning holds more than its id, under which the provider knows nothing: nothing is
/// stored.
pub(crate) fn goes_back(item: &JsonObject) -> bool {
    let says = |name: &str| match item.get(name) {
        Some(Value::String(text)) => !text.is_empty(),
        Some(Value::Array(list)) => !list.is_empty(),
        _ => false,
    };
    says("encrypted_content") || says("content")
}

fn whole(item: &JsonObject) -> JsonObject {
    let mut item = item.clone();
    item.shift_remove(ONLY_SAID);
    item
}

/// Those of the named members that have a value.
fn kept(object: &JsonObject, names: &[&str]) -> JsonObject {
    let says_something = |value: &Value| match value {
        Value::Null => false,
        Value::String(text) => !text.is_empty(),
        Value::Array(list) => !list.is_empty(),
        _ => true,
    };
    let members = names.iter().filter_map(|name| object.get_key_value(*name));
    members
        .filter(|(_, value)| says_something(value))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}

fn holding(item: JsonObject, after: Option<&str>) -> JsonObject {
    let mut data = JsonObject::new();
    data.insert("item".to_owned(), Value::Object(item));
    if let Some(after) = after {
        data.insert("after".to_owned(), json!(after));
    }
    data
}

/// The state of a part that the model asked wrote itself, read again.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Own<'a> {
    pub(crate) item: &'a JsonObject,
    pub(crate) content: Option<&'a JsonObject>,
    /// The reasoning without which the item must not be sent under its id.
    pub(crate) after: Option<&'a str>,
}

impl<'a> Own<'a> {
    /// `None` for a state that another model or another wire minted.
    pub(crate) fn of(state: Option<&'a ProviderState>, model: &ModelId) -> Option<Self> {
        let data = state?.for_model(model)?;
        Some(Self {
            item: data.get("item")?.as_object()?,
            content: data.get("content").and_then(Value::as_object),
            after: data.get("after").and_then(Value::as_str),
        })
    }

    /// A text of the item.
    pub(crate) fn text(&self, name: &str) -> Option<&'a str> {
        self.item.get(name).and_then(Value::as_str)
    }

    /// Whether the text is the model's refusal.
    pub(crate) fn is_refusal(&self) -> bool {
        let kind = self.content.and_then(|content| content.get("type"));
        kind.is_some_and(|kind| kind == "refusal")
    }
}
