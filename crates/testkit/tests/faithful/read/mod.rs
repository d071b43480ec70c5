//! Reads conversations out of requests, by the wires' own documentation.

mod anthropic;
mod chat;
mod gemini;
mod ollama;
mod responses;

use serde_json::Value;

use crate::{
    Column,
    canonical::{Item, Side, Source, Turn, merged},
};

pub(crate) fn conversation(column: Column, body: &Value) -> Vec<Turn> {
    let turns = match column {
        Column::Anthropic => anthropic::conversation(body),
        Column::Chat | Column::Compatible => chat::conversation(body),
        Column::Responses => responses::conversation(body),
        Column::Gemini => gemini::conversation(body),
        Column::Ollama => ollama::conversation(body),
    };
    merged(turns)
}

fn list<'a>(value: &'a Value, name: &str) -> &'a [Value] {
    value[name].as_array().map_or(&[], Vec::as_slice)
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn turn(side: Side, items: Vec<Item>) -> Turn {
    Turn { side, items }
}

/// The calls of a conversation by their ids.
#[derive(Default)]
struct Calls {
    ids: Vec<String>,
}

impl Calls {
    /// The number of a new call.
    fn made(&mut self, id: &Value) -> usize {
        let id = text(id);
        assert!(!id.is_empty() && !self.ids.contains(&id), "{id:?}");
        self.ids.push(id);
        self.ids.len()
    }

    /// The number of the call that is answered.
    fn answered(&self, id: &Value) -> usize {
        let id = text(id);
        1 + self.ids.iter().position(|known| *known == id).unwrap()
    }
}

/// A `data:` URL's media type and bytes, or an address.
fn data_url(url: &str) -> (Option<String>, Source) {
    let parts = url
        .strip_prefix("data:")
        .and_then(|data| data.split_once(";base64,"));
    match parts {
        Some((media_type, bytes)) => (Some(media_type.to_owned()), Source::Bytes(bytes.to_owned())),
        None => (None, Source::At(url.to_owned())),
    }
}

/// The words of a result, and whether they tell of a failure, on wires that have no mark for it.
fn told(words: &str) -> (String, bool) {
    match words.strip_prefix("Error: ") {
        Some(words) => (words.to_owned(), true),
        None => (words.to_owned(), false),
    }
}
