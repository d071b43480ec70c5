//! Reads conversations from the bodies of requests, as the documentation of each wire describes
//! them.

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

/// The ids of the calls in a conversation. The number of a call is its position, counted from 1.
#[derive(Default)]
struct Calls {
    ids: Vec<String>,
}

impl Calls {
    /// Adds a call and returns its number.
    fn made(&mut self, id: &Value) -> usize {
        let id = text(id);
        assert!(!id.is_empty() && !self.ids.contains(&id), "{id:?}");
        self.ids.push(id);
        self.ids.len()
    }

    /// Returns the number of the call to which a result belongs.
    fn answered(&self, id: &Value) -> usize {
        let id = text(id);
        1 + self.ids.iter().position(|known| *known == id).unwrap()
    }
}

/// Parses a `data:` URL to its media type and bytes. Returns any other URL unchanged.
fn data_url(url: &str) -> (Option<String>, Source) {
    let parts = url
        .strip_prefix("data:")
        .and_then(|data| data.split_once(";base64,"));
    match parts {
        Some((media_type, bytes)) => (Some(media_type.to_owned()), Source::Bytes(bytes.to_owned())),
        None => (None, Source::At(url.to_owned())),
    }
}

/// Returns the text of a result and whether it is an error, for wires that mark errors only with a
/// prefix.
fn told(words: &str) -> (String, bool) {
    match words.strip_prefix("Error: ") {
        Some(words) => (words.to_owned(), true),
        None => (words.to_owned(), false),
    }
}
