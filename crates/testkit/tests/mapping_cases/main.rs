//! Mapping cases in which other libraries had faults, each on every wire that it concerns.
//!
//! The numbers are those of the project's list of cases. A test checks that none is missing.
#![allow(
    clippy::panic,
    clippy::unwrap_used,
    reason = "a plain function of a test file counts as production code for clippy"
)]

mod answers;
mod cases_01_to_08;
mod cases_09_to_12;
mod cases_13_to_15;
mod cases_16_to_21;
mod cases_22_to_27;
mod over_http;
mod restored;
#[path = "../wires/mod.rs"]
mod wires;

use switchboard_domain::{
    ChatRequest, ChatResponse, JsonObject, Message, ToolInput, ToolResult, ToolUse,
};
use switchboard_testkit::fixtures;

/// Returns a question with two tools.
fn question() -> ChatRequest {
    ChatRequest::new([Message::user("How is the weather in Kiel?")])
        .with_tools([fixtures::weather(), fixtures::list_cities()])
}

/// Returns the tool uses of an answer.
fn calls(answer: &ChatResponse) -> Vec<&ToolUse> {
    answer.message.tool_uses().collect()
}

/// Returns the conversation with an answer and the results of its calls.
fn go_on(request: &ChatRequest, answer: &ChatResponse) -> ChatRequest {
    let calls = answer.message.tool_uses();
    let results = calls.map(|call| ToolResult::text(&call.id, &call.name, "12 °C"));
    let results = Message::from_tool_results(results);
    let mut request = request.clone();
    request.messages.push(answer.message.clone().into());
    if !results.parts.is_empty() {
        request.messages.push(results.into());
    }
    request
}

fn kiel() -> ToolInput {
    ToolInput::parse_input(r#"{"city":"Kiel"}"#)
}

fn nothing() -> ToolInput {
    ToolInput::from(JsonObject::new())
}

#[test]
fn every_case_has_its_tests_in_order() {
    let sources = [
        include_str!("cases_01_to_08.rs"),
        include_str!("cases_09_to_12.rs"),
        include_str!("cases_13_to_15.rs"),
        include_str!("cases_16_to_21.rs"),
        include_str!("cases_22_to_27.rs"),
    ];
    let lines = sources.iter().flat_map(|source| source.lines());
    let mut numbers: Vec<u32> = lines
        .filter_map(|line| {
            line.split_once("fn case_")?
                .1
                .split('_')
                .next()?
                .parse()
                .ok()
        })
        .collect();
    assert!(numbers.is_sorted(), "{numbers:?}");
    numbers.dedup();
    assert_eq!(numbers, (1..=27).collect::<Vec<u32>>());
}
