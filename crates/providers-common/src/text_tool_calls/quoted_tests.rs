//! Calls that a text shows as an example, and calls that the model makes.

use super::*;

/// A call of `get_time` as JSON.
const JSON: &str = "{\"name\": \"get_time\", \"arguments\": {}}";

/// Texts with a call as an example. `{tag}` is replaced by a call between tags, `{line}` by a call
/// in one line, and `{json}` by a call as JSON.
const SHOWN: &[&str] = &[
    "For example: ```json\n{json}\n```",
    "For example:\n\n```json\n{json}\n```",
    "```json\n{json}\n```\nThis is what a call looks like.",
    "```json\n{json}\n``` is a call.",
    "To know that I call a tool:\n\n```json\n{json}\n```\n\nPlease wait.",
    "1. Write this:\n   ```json\n   {json}\n   ```\n2. Wait.",
    "```json\n{json}\n```\nor\n```json\n{json}\n```",
    "```py\nx\n```\n```json\n{json}\n```",
    "Use: ```\n{json}\n```",
    "The model writes:\n\n```\n{tag}\n```",
    "```xml\n{tag}\n```",
    "```xml\n{tag}",
    "~~~\n{tag}\n~~~",
    "````markdown\n```\nx\n```\n{tag}\n````",
    "```\n<think></think>\n{tag}\n```",
    "<think>Shall I?</think>\nAn example:\n```json\n{json}\n```",
    "A call is `{line}` in one line.",
    "A call is `{tag}` in three lines.",
    "A call is ``a ` b {tag}``.",
    "Inline: ```<function=get_time>{}</function>``` ends.",
    "`[TOOL_CALLS]get_time{}` and `<|tool_call|>[{json}]`",
    "> {line}",
    "> {json}",
    "As I said:\n> {line}\n\nNothing else.",
];

/// Texts with calls, each with the number of calls and the remaining text.
const MADE: &[(&str, usize, &str)] = &[
    ("```json\n{json}\n```", 1, ""),
    ("\n\n```json\n{json}\n```\n\n", 1, ""),
    (
        "```json\n{json}\n```\n\n```json\n{json}\n```\n```json\n",
        2,
        "",
    ),
    ("```json\n{json}\n```\n{tag}\n", 2, ""),
    ("{tag}\n```json\n{json}\n```", 2, ""),
    (
        "<think>I call `get_time`, [so] I <b>do</b>.</think>\n\n```json\n{json}\n```",
        1,
        "<think>I call `get_time`, [so] I <b>do</b>.</think>\n\n",
    ),
    ("I use `get_time` now.\n{tag}", 1, "I use `get_time` now.\n"),
    ("It`s late.\n\n{tag}", 1, "It`s late.\n\n"),
    ("```py\nx = 1\n```\n{tag}", 1, "```py\nx = 1\n```\n"),
    ("```ls``` lists.\n{tag}", 1, "```ls``` lists.\n"),
    ("~~~\nx\n~~~~\n{tag}", 1, "~~~\nx\n~~~~\n"),
    ("A ~~~ b\n{tag}", 1, "A ~~~ b\n"),
    ("> quoted\n{tag}", 1, "> quoted\n"),
    (
        "<think>```json</think>\n{tag}",
        1,
        "<think>```json</think>\n",
    ),
    (
        "I call it:\n\n{json}\n\nWait.",
        1,
        "I call it:\n\n\n\nWait.",
    ),
];

fn written(text: &str) -> String {
    let tag = format!("<tool_call>\n{JSON}\n</tool_call>");
    let line = format!("<tool_call>{JSON}</tool_call>");
    let text = text.replace("{tag}", &tag).replace("{line}", &line);
    text.replace("{json}", JSON)
}

fn recoveries() -> [CallRecoverySettings; 2] {
    // The default formats of the Ollama adapter.
    let local = CallRecoverySettings::for_request(&request(), TextCallFormats::LOCAL_SERVERS);
    [all(), local]
}

/// Checks the calls and the remaining text of an answer. The text arrives in one piece, in two
/// pieces split at every position, and as single characters.
fn check(text: &str, calls: usize, said: &str) {
    let cuts = text.char_indices().map(|(at, _)| {
        let (left, right) = text.split_at(at);
        vec![left, right]
    });
    let characters: Vec<String> = text.chars().map(String::from).collect();
    let characters: Vec<&str> = characters.iter().map(String::as_str).collect();
    for recovery in recoveries() {
        for pieces in cuts.clone().chain([characters.clone()]) {
            let response = response(&transform(&recovery, answer(&pieces, FinishReason::Stop)));
            let made: Vec<&str> = response
                .message
                .tool_uses()
                .map(|call| call.name.as_str())
                .collect();
            assert_eq!(made, vec!["get_time"; calls], "{pieces:?}");
            assert_eq!(response.message.text(), said, "{pieces:?}");
        }
    }
}

#[test]
fn calls_in_examples_are_text() {
    for text in SHOWN {
        let text = written(text);
        check(&text, 0, &text);
    }
}

#[test]
fn calls_beside_code_are_recovered() {
    for (text, calls, said) in MADE {
        check(&written(text), *calls, &written(said));
    }
}

/// Text in an earlier part of the answer makes a code block an example, too.
#[test]
fn a_block_after_text_of_another_part_is_an_example() {
    let block = written("```json\n{json}\n```");
    for (before, expected) in [("For example:", 0), ("\n", 1)] {
        let events = vec![
            started(0),
            delta(0, before),
            closed(0),
            started(1),
            delta(1, &block),
            closed(1),
            finished(FinishReason::Stop),
        ];
        let response = response(&transform(&all(), events));
        assert_eq!(response.message.tool_uses().count(), expected, "{before:?}");
    }
}
