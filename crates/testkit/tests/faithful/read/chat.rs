//! Chat Completions.

use serde_json::Value;

use super::{Calls, data_url, list, text, told, turn};
use crate::canonical::{Item, Side, Turn};

pub(super) fn conversation(body: &Value) -> Vec<Turn> {
    let mut calls = Calls::default();
    let messages = list(body, "messages").iter();
    messages.map(|it| message(it, &mut calls)).collect()
}

fn message(message: &Value, calls: &mut Calls) -> Turn {
    let content = &message["content"];
    let said = || content.as_str().map(Item::text);
    match message["role"].as_str().unwrap() {
        "system" | "developer" => turn(Side::Instructions, said().into_iter().collect()),
        "user" => match content {
            Value::String(_) => turn(Side::Person, said().into_iter().collect()),
            _ => turn(
                Side::Person,
                list(message, "content").iter().map(part).collect(),
            ),
        },
        "assistant" => {
            let thoughts = message["reasoning_content"].as_str();
            let thoughts = thoughts.map(|text| Item::Reasoning {
                text: text.to_owned(),
                state: Value::Null,
            });
            let mut items: Vec<Item> = thoughts.into_iter().chain(said()).collect();
            for call in list(message, "tool_calls") {
                let arguments = text(&call["function"]["arguments"]);
                let input: Value = serde_json::from_str(&arguments).unwrap();
                items.push(Item::Call {
                    number: calls.made(&call["id"]),
                    name: text(&call["function"]["name"]),
                    input: input.to_string(),
                    state: Value::Null,
                });
            }
            turn(Side::Model, items)
        }
        "tool" => {
            let (words, failed) = told(content.as_str().unwrap());
            let result = Item::Result {
                number: calls.answered(&message["tool_call_id"]),
                words,
                failed,
            };
            turn(Side::Person, vec![result])
        }
        other => panic!("{other}"),
    }
}

fn part(part: &Value) -> Item {
    match part["type"].as_str().unwrap() {
        "text" => Item::text(text(&part["text"])),
        "image_url" => {
            let (media_type, source) = data_url(part["image_url"]["url"].as_str().unwrap());
            Item::Image { media_type, source }
        }
        "file" => {
            let (media_type, source) = data_url(part["file"]["file_data"].as_str().unwrap());
            Item::Document {
                title: part["file"]["filename"].as_str().map(str::to_owned),
                media_type,
                source,
            }
        }
        other => panic!("{other}"),
    }
}
