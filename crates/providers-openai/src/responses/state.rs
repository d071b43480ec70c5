//! The [`ProviderState`](switchboard_domain::ProviderState) of message parts, with which later
//! requests send output items back unchanged. [`responses`](super) documents its JSON.

use serde_json::{Value, json};
use switchboard_domain::{JsonObject, ModelId, ProviderState};

/// Fields of a message item that are stored in the provider state of a text part, because the part
/// itself has no such fields.
const MESSAGE_FIELDS: [&str; 3] = ["id", "status", "phase"];
/// Fields of a text in a message item's `content` that are stored in the provider state of a text
/// part, because the part itself has no such fields.
const TEXT_FIELDS: [&str; 1] = ["annotations"];
/// Fields of a refusal in a message item's `content` that are stored in the provider state of a
/// text part.
const REFUSAL_FIELDS: [&str; 1] = ["type"];
/// Fields of a call item that are stored in the provider state of a tool use, because the tool use
/// itself has no such fields.
const CALL_FIELDS: [&str; 4] = ["id", "status", "caller", "namespace"];
/// Field of an output item that the API sends but does not accept in requests.
const OUTPUT_ONLY_FIELD: &str = "created_by";

/// Returns the provider state of a text part from the message item `item`. `after` is the id of the
/// reasoning item that precedes `item`. Returns `None` if `item` has neither an id nor a phase.
pub(crate) fn text_part_state(
    model: &ModelId,
    item: &JsonObject,
    content: Option<&JsonObject>,
    after: Option<&str>,
) -> Option<ProviderState> {
    let item = select_fields(item, &MESSAGE_FIELDS);
    if !item.contains_key("id") && !item.contains_key("phase") {
        return None;
    }
    let mut data = build_state_data(item, after);
    let content = content.map(|content| match content.get("type") {
        Some(kind) if kind == "refusal" => select_fields(content, &REFUSAL_FIELDS),
        _ => select_fields(content, &TEXT_FIELDS),
    });
    if let Some(content) = content.filter(|content| !content.is_empty()) {
        data.insert("content".to_owned(), Value::Object(content));
    }
    Some(ProviderState::new_for_model(model, Value::Object(data)))
}

/// Returns the data of the JSON item `item` that later requests must repeat, such as its id. `item`
/// is a tool call, and `after` is the id of the reasoning item before it. Returns `None` if `item`
/// has no field of `CALL_FIELDS`.
pub(crate) fn tool_call_state(
    model: &ModelId,
    item: &JsonObject,
    after: Option<&str>,
) -> Option<ProviderState> {
    let item = select_fields(item, &CALL_FIELDS);
    let data = (!item.is_empty()).then(|| Value::Object(build_state_data(item, after)))?;
    Some(ProviderState::new_for_model(model, data))
}

/// Returns the provider state of a reasoning part. Returns `None` if the item contains neither
/// encrypted nor readable reasoning, because the API would not accept such an item.
pub(crate) fn reasoning_part_state(model: &ModelId, item: &JsonObject) -> Option<ProviderState> {
    is_replayable_reasoning(item)
        .then(|| ProviderState::new_for_model(model, Value::Object(strip_created_by(item))))
}

/// Returns the provider state of an opaque part: `item` without `created_by`. `after` is the id of
/// the reasoning item that precedes `item`.
pub(crate) fn opaque_part_state(
    model: &ModelId,
    item: &JsonObject,
    after: Option<&str>,
) -> ProviderState {
    ProviderState::new_for_model(
        model,
        Value::Object(build_state_data(strip_created_by(item), after)),
    )
}

/// Returns whether a reasoning item contains its reasoning, encrypted or as text. A summary is not
/// enough. With the id alone the API cannot find the reasoning, because the provider does not store
/// it.
pub(crate) fn is_replayable_reasoning(item: &JsonObject) -> bool {
    let has = |name: &str| match item.get(name) {
        Some(Value::String(text)) => !text.is_empty(),
        Some(Value::Array(list)) => !list.is_empty(),
        _ => false,
    };
    has("encrypted_content") || has("content")
}

/// Returns a copy of an item without `created_by`, which the API does not accept in requests.
fn strip_created_by(item: &JsonObject) -> JsonObject {
    let mut item = item.clone();
    item.shift_remove(OUTPUT_ONLY_FIELD);
    item
}

/// Returns the fields of `object` that are in `names` and are not null, "" or an empty list.
fn select_fields(object: &JsonObject, names: &[&str]) -> JsonObject {
    let is_set = |value: &Value| match value {
        Value::Null => false,
        Value::String(text) => !text.is_empty(),
        Value::Array(list) => !list.is_empty(),
        _ => true,
    };
    let fields = names.iter().filter_map(|name| object.get_key_value(*name));
    fields
        .filter(|(_, value)| is_set(value))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}

fn build_state_data(item: JsonObject, after: Option<&str>) -> JsonObject {
    let mut data = JsonObject::new();
    data.insert("item".to_owned(), Value::Object(item));
    if let Some(after) = after {
        data.insert("after".to_owned(), json!(after));
    }
    data
}

/// Provider state of a part that the requested model created on the Responses API.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ItemState<'a> {
    pub(crate) item: &'a JsonObject,
    pub(crate) content: Option<&'a JsonObject>,
    /// Id of the reasoning item that the request must also contain if it contains this item's id.
    pub(crate) after: Option<&'a str>,
}

impl<'a> ItemState<'a> {
    /// Reads a provider state. Returns `None` if there is no state, or if another model or another
    /// API created it.
    pub(crate) fn from_provider_state(
        state: Option<&'a ProviderState>,
        model: &ModelId,
    ) -> Option<Self> {
        let data = state?.data_for_model(model)?;
        Some(Self {
            item: data.get("item")?.as_object()?,
            content: data.get("content").and_then(Value::as_object),
            after: data.get("after").and_then(Value::as_str),
        })
    }

    /// Returns the string field `name` of the stored Responses API item, or `None` if the field is
    /// missing or not a string.
    pub(crate) fn text_field(&self, name: &str) -> Option<&'a str> {
        self.item.get(name).and_then(Value::as_str)
    }

    /// Returns whether the stored message content is a refusal to answer instead of text.
    pub(crate) fn is_refusal(&self) -> bool {
        let kind = self.content.and_then(|content| content.get("type"));
        kind.is_some_and(|kind| kind == "refusal")
    }
}
