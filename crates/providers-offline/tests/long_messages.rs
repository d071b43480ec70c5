//! Messages that are longer than anybody types.

mod support;

use serde_json::json;
use support::{answer, calls, request, tools};
use switchboard_domain::{Message, ToolChoice, ToolResult};

const ALL: &str = "customer_service everything filesystem git memory time";
/// The words of one message that are read.
const WORDS: usize = 5000;

/// Text that gives much to do: numbers, lists, cues of free text, quotations that do not end,
/// sentences that are requests of their own, braces, slashes and names.
const PATTERNS: &[&str] = &[
    "customer 42 account value ",
    "7, 8 and 9 ",
    "support ticket, for it, ",
    "a ticket, the parcel never came, ",
    "for that about saying ",
    "subject: ",
    "'x “y «z `q ",
    "\"a\" ",
    "List the customers. ",
    "{\"a\": ",
    "a/b/c ",
    "Ada Lovelace, ",
    "echo ",
    "the first customer and ",
    "from Berlin to Tokyo 9:00 ",
    "high low normal ",
    "distinct1 word2 stems3 ",
    "account value for customer 7 and customer 8, ",
    "with high priority, saying a. b! c; ",
    "2026-10-01 to yesterday, 3 days ago ",
    "subject high, description low, with body ",
    "/etc/hosts and notes.txt. Read ",
    "convert 9:00 from Europe/Berlin to Asia/Tokyo ",
    "e-mail a.b@c.de about TICKET-1001 ",
];

#[test]
fn what_is_longer_than_is_read_is_declined_and_never_cut() {
    let tools = tools(ALL);
    for pattern in PATTERNS {
        let text = pattern.repeat(200_000 / pattern.len());
        for choice in [ToolChoice::Auto, ToolChoice::Required] {
            let request = request(vec![Message::user(&text)], &tools).with_tool_choice(choice);
            let response = answer(&request);
            assert!(calls(&response).is_empty(), "{pattern}");
            let said = response.message.text();
            assert!(said.contains("at most 5000 words"), "{pattern}: {said}");
        }
    }
}

#[test]
fn a_message_of_the_most_words_is_read_to_its_last() {
    let tools = tools(ALL);
    for (text, is_read) in [
        (vec!["word"; WORDS - 1].join(" "), true),
        (vec!["word"; WORDS].join(" "), false),
        ("x".repeat(60_000), true),
        ("x".repeat(66_000), false),
    ] {
        let request = request(vec![Message::user(format!("echo \"{text}\""))], &tools);
        let called = calls(&answer(&request));
        let expected = is_read.then(|| ("echo".to_owned(), json!({"message": text})));
        assert!(called.into_iter().eq(expected), "{} bytes", text.len());
    }
}

/// Work that grows with the square of the length would take minutes here.
#[test]
fn long_messages_are_understood_whatever_they_repeat() {
    let tools = tools(ALL);
    for pattern in PATTERNS {
        let words = pattern
            .split(|c: char| !c.is_alphanumeric())
            .filter(|word| !word.is_empty())
            .count();
        let text = pattern.repeat(WORDS / words / 2);
        let response = answer(&request(vec![Message::user(text)], &tools));
        let said = response.message.text();
        assert!(!said.contains("at most 5000 words"), "{pattern}");
        assert_eq!(calls(&response).is_empty(), !said.is_empty(), "{pattern}");
    }
}

#[test]
fn a_message_that_was_too_long_does_not_stand_in_the_way() {
    let tools = tools("customer_service");
    let mut messages = vec![Message::user("What is the account value of customer 42?")];
    let first = answer(&request(messages.clone(), &tools));
    let results: Vec<ToolResult> = first
        .message
        .tool_uses()
        .map(|call| ToolResult::text(&call.id, &call.name, r#"{"account_value": 3}"#))
        .collect();
    assert_eq!(results.len(), 1);
    messages.extend([first.message, Message::tool_results(results)]);
    messages.push(Message::user("customer 42 account value ".repeat(8000)));
    messages.push(answer(&request(messages.clone(), &tools)).message);
    messages.push(Message::user("And customer 7?"));
    let called = calls(&answer(&request(messages, &tools)));
    assert_eq!(called.len(), 1, "{called:?}");
    assert_eq!(called[0].1, json!({"customer_id": 7}));
}
