//! The Messages API.

use serde_json::{Value, json};

use super::{Calls, list, text, turn};
use crate::canonical::{Item, Side, Source, Turn, rest};

pub(super) fn conversation(body: &Value) -> Vec<Turn> {
    let system = list(body, "system").iter();
    let system = system.map(|block| block_of(block, &mut Calls::default()));
    let mut turns = vec![turn(Side::Instructions, system.collect())];
    let mut calls = Calls::default();
    for message in list(body, "messages") {
        let side = match message["role"].as_str().unwrap() {
            "user" => Side::Person,
            "assistant" => Side::Model,
            other => panic!("{other}"),
        };
        let blocks = list(message, "content").iter();
        let items = blocks.map(|block| block_of(block, &mut calls)).collect();
        turns.push(turn(side, items));
    }
    turns
}

fn block_of(block: &Value, calls: &mut Calls) -> Item {
    let source = &block["source"];
    match block["type"].as_str().unwrap() {
        "text" => Item::Text {
            text: text(&block["text"]),
            state: rest(block, &["type", "text"]),
        },
        "image" => {
            let (media_type, source) = source_of(source);
            Item::Image { media_type, source }
        }
        "document" => {
            let (media_type, source) = source_of(source);
            Item::Document {
                title: block["title"].as_str().map(str::to_owned),
                media_type,
                source,
            }
        }
        "thinking" => Item::Reasoning {
            text: text(&block["thinking"]),
            state: json!({"signature": block["signature"]}),
        },
        "redacted_thinking" => Item::Reasoning {
            text: String::new(),
            state: json!({"redacted": block["data"]}),
        },
        "tool_use" => Item::Call {
            number: calls.made(&block["id"]),
            name: text(&block["name"]),
            input: block["input"].to_string(),
            state: rest(block, &["type", "id", "name", "input"]),
        },
        "tool_result" => {
            let pieces = list(block, "content").iter();
            let pieces: Vec<String> = pieces.map(|piece| text(&piece["text"])).collect();
            Item::Result {
                number: calls.answered(&block["tool_use_id"]),
                words: pieces.join("\n"),
                failed: block["is_error"] == true,
            }
        }
        other => panic!("{other}"),
    }
}

fn source_of(source: &Value) -> (Option<String>, Source) {
    let media_type = source["media_type"].as_str().map(str::to_owned);
    let source = match source["type"].as_str().unwrap() {
        "base64" => Source::Bytes(text(&source["data"])),
        "text" => Source::Words(text(&source["data"])),
        "url" => Source::At(text(&source["url"])),
        other => panic!("{other}"),
    };
    (media_type, source)
}
