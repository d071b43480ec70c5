//! The Responses API.

use serde_json::Value;

use super::{Calls, data_url, list, text, told, turn};
use crate::canonical::{Item, Side, Source, Turn, rest};

pub(super) fn conversation(body: &Value) -> Vec<Turn> {
    let mut calls = Calls::default();
    let items = list(body, "input").iter();
    items.map(|it| item(it, &mut calls)).collect()
}

fn item(item: &Value, calls: &mut Calls) -> Turn {
    match item["type"].as_str() {
        None | Some("message") => message(item),
        Some("reasoning") => {
            let thought = Item::Reasoning {
                text: text(&item["summary"][0]["text"]),
                state: item.clone(),
            };
            turn(Side::Model, vec![thought])
        }
        Some("function_call") => {
            let input: Value = serde_json::from_str(item["arguments"].as_str().unwrap()).unwrap();
            let call = Item::Call {
                number: calls.made(&item["call_id"]),
                name: text(&item["name"]),
                input: input.to_string(),
                state: rest(item, &["type", "call_id", "name", "arguments"]),
            };
            turn(Side::Model, vec![call])
        }
        Some("function_call_output") => {
            let (words, failed) = told(item["output"].as_str().unwrap());
            let result = Item::Result {
                number: calls.answered(&item["call_id"]),
                words,
                failed,
            };
            turn(Side::Person, vec![result])
        }
        Some(other) => panic!("{other}"),
    }
}

fn message(message: &Value) -> Turn {
    let side = match message["role"].as_str().unwrap() {
        "system" | "developer" => Side::Instructions,
        "user" => Side::Person,
        "assistant" => Side::Model,
        other => panic!("{other}"),
    };
    let items = if let Some(said) = message["content"].as_str() {
        vec![Item::text(said)]
    } else {
        let parts = list(message, "content").iter();
        parts.map(|it| part(it, message)).collect()
    };
    turn(side, items)
}

fn part(part: &Value, message: &Value) -> Item {
    match part["type"].as_str().unwrap() {
        "input_text" => Item::text(text(&part["text"])),
        "output_text" => Item::Text {
            text: text(&part["text"]),
            state: rest(message, &["type", "role", "content"]),
        },
        "input_image" => {
            let (media_type, source) = data_url(part["image_url"].as_str().unwrap());
            Item::Image { media_type, source }
        }
        "input_file" => {
            let (media_type, source) = match part["file_url"].as_str() {
                Some(url) => (None, Source::At(url.to_owned())),
                None => data_url(part["file_data"].as_str().unwrap()),
            };
            Item::Document {
                title: part["filename"].as_str().map(str::to_owned),
                media_type,
                source,
            }
        }
        other => panic!("{other}"),
    }
}
