//! `generateContent`.

use serde_json::{Value, json};

use super::{list, text, turn};
use crate::canonical::{Item, Side, Source, Turn, rest};

/// Calls that have no result yet. On this wire, results belong to calls in order.
#[derive(Default)]
struct Open {
    count: usize,
    waiting: Vec<(usize, Value, Value)>,
}

pub(super) fn conversation(body: &Value) -> Vec<Turn> {
    let mut open = Open::default();
    let system = parts(&body["systemInstruction"], &mut open);
    let mut turns = vec![turn(Side::Instructions, system)];
    for content in list(body, "contents") {
        let side = match content["role"].as_str().unwrap() {
            "user" => Side::Person,
            "model" => Side::Model,
            other => panic!("{other}"),
        };
        turns.push(turn(side, parts(content, &mut open)));
    }
    turns
}

fn parts(content: &Value, open: &mut Open) -> Vec<Item> {
    let mut items: Vec<Item> = Vec::new();
    for part in list(content, "parts") {
        let item = item(part, open);
        match (items.last().and_then(title), item) {
            // The wire has no field for the title of a document, so a text before the document
            // contains it.
            (
                Some(title),
                Item::Document {
                    media_type, source, ..
                },
            ) => {
                items.pop();
                items.push(Item::Document {
                    title: Some(title),
                    media_type,
                    source,
                });
            }
            (_, item) => items.push(item),
        }
    }
    items
}

fn title(item: &Item) -> Option<String> {
    let Item::Text { text, .. } = item else {
        return None;
    };
    let title = text.strip_prefix("[document: ")?.strip_suffix(']')?;
    Some(title.to_owned())
}

fn item(part: &Value, open: &mut Open) -> Item {
    let signature = |state: Value| {
        let mut state = state;
        if let Some(signature) = part.get("thoughtSignature") {
            state["thoughtSignature"] = signature.clone();
        }
        state
    };
    let some = |state: Value| {
        if state == json!({}) {
            Value::Null
        } else {
            state
        }
    };
    if let Some(said) = part.get("text") {
        let text = text(said);
        let state = signature(json!({}));
        if part["thought"] == true {
            return Item::Reasoning { text, state };
        }
        let state = some(state);
        return Item::Text { text, state };
    }
    if let Some(call) = part.get("functionCall") {
        open.count += 1;
        let (id, name) = (call["id"].clone(), call["name"].clone());
        open.waiting.push((open.count, id, name));
        return Item::Call {
            number: open.count,
            name: text(&call["name"]),
            input: call["args"].to_string(),
            state: some(signature(rest_or_empty(call))),
        };
    }
    if let Some(answer) = part.get("functionResponse") {
        let (number, id, name) = open.waiting.remove(0);
        assert_eq!((&answer["id"], &answer["name"]), (&id, &name));
        let response = &answer["response"];
        let words = |value: &Value| value.as_str().map_or(value.to_string(), str::to_owned);
        let fields: Vec<&str> = response
            .as_object()
            .unwrap()
            .keys()
            .map(String::as_str)
            .collect();
        let (words, failed) = match fields.as_slice() {
            ["output"] => (words(&response["output"]), false),
            ["error"] => (words(&response["error"]), true),
            _ => (response.to_string(), false),
        };
        return Item::Result {
            number,
            words,
            failed,
        };
    }
    let (medium, source) = match (part.get("inlineData"), part.get("fileData")) {
        (Some(inline), _) => (inline, Source::Bytes(text(&inline["data"]))),
        (_, Some(file)) => (file, Source::At(text(&file["fileUri"]))),
        _ => panic!("{part}"),
    };
    let media_type = text(&medium["mimeType"]);
    let is_image = media_type.starts_with("image/");
    let media_type = Some(media_type);
    if is_image {
        Item::Image { media_type, source }
    } else {
        Item::Document {
            title: None,
            media_type,
            source,
        }
    }
}

fn rest_or_empty(call: &Value) -> Value {
    match rest(call, &["name", "args"]) {
        Value::Null => json!({}),
        rest => rest,
    }
}
