//! `/api/chat`.

use serde_json::Value;

use super::{list, text, told, turn};
use crate::canonical::{Item, Side, Source, Turn};

pub(super) fn conversation(body: &Value) -> Vec<Turn> {
    let mut made = 0;
    // Calls without a result: number and tool name. A result names its tool, and equal tools get
    // results in order.
    let mut waiting: Vec<(usize, Value)> = Vec::new();
    let mut turns = Vec::new();
    for message in list(body, "messages") {
        let said = message["content"].as_str().filter(|said| !said.is_empty());
        let said = said.map(Item::text);
        turns.push(match message["role"].as_str().unwrap() {
            "system" => turn(Side::Instructions, said.into_iter().collect()),
            "user" => {
                let images = list(message, "images").iter().map(|bytes| Item::Image {
                    media_type: None,
                    source: Source::Bytes(text(bytes)),
                });
                turn(Side::Person, said.into_iter().chain(images).collect())
            }
            "assistant" => {
                let thoughts = message["thinking"].as_str();
                let thoughts = thoughts.map(|text| Item::Reasoning {
                    text: text.to_owned(),
                    state: Value::Null,
                });
                let mut items: Vec<Item> = thoughts.into_iter().chain(said).collect();
                for call in list(message, "tool_calls") {
                    let function = &call["function"];
                    made += 1;
                    waiting.push((made, function["name"].clone()));
                    items.push(Item::Call {
                        number: made,
                        name: text(&function["name"]),
                        input: function["arguments"].to_string(),
                        state: Value::Null,
                    });
                }
                turn(Side::Model, items)
            }
            "tool" => {
                let (number, name) = waiting.remove(0);
                assert_eq!(message["tool_name"], name);
                let (words, failed) = told(message["content"].as_str().unwrap());
                let result = Item::Result {
                    number,
                    words,
                    failed,
                };
                turn(Side::Person, vec![result])
            }
            other => panic!("{other}"),
        });
    }
    turns
}
