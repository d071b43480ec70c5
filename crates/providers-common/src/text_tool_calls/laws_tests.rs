//! Properties of every text.

use super::*;
use proptest::prelude::*;

/// Pieces of tool calls and of other text.
const FRAGMENTS: &[&str] = &[
    "<tool_call>",
    "</tool_call>",
    "<function=",
    "</function>",
    "<parameter=city>",
    "</parameter>",
    "<arg_key>",
    "</arg_key>",
    "<arg_value>",
    "</arg_value>",
    "[TOOL_CALLS]",
    "[ARGS]",
    "[CALL_ID]",
    "<|tool_call|>",
    "<|python_tag|>",
    "<|python_start|>",
    "<|python_end|>",
    "```json",
    "```",
    "`",
    "<｜tool▁calls▁begin｜>",
    "<｜tool▁call▁begin｜>",
    "<｜tool▁sep｜>",
    "<｜tool▁call▁end｜>",
    "function",
    "<think>",
    "</think>",
    "{",
    "}",
    "[",
    "]",
    "(",
    ")",
    "\"",
    "'",
    ":",
    ",",
    ";",
    "=",
    ">",
    "\n",
    " ",
    "\\",
    "\"name\": ",
    "\"arguments\": ",
    "{\"name\": \"",
    "\", \"arguments\": {",
    "{\"arguments\": {}, \"name\": \"",
    "\"city\": \"Paris\"",
    "city=",
    "True",
    "12",
    "null",
    "é",
    "text",
];
const NAMES: &[&str] = &[
    "get_weather",
    "get_time",
    "crm/find.one",
    "\"get_time\"",
    "[get_time()]",
    "[get_weather(city=",
];

fn fragment(fragments: Vec<&'static str>) -> impl Strategy<Value = String> {
    prop_oneof![
        20 => prop::sample::select(fragments).prop_map(str::to_owned),
        1 => ".{0,3}",
    ]
}

fn text_of(fragments: Vec<&'static str>) -> impl Strategy<Value = String> {
    prop::collection::vec(fragment(fragments), 0..24).prop_map(|parts| parts.concat())
}

/// Whole calls, because random fragments rarely form one.
const CALLS: &[&str] = &[
    "<tool_call>{\"name\": \"get_time\"}</tool_call>",
    "<tool_call>get_weather<arg_key>city</arg_key><arg_value>Paris</arg_value></tool_call>",
    "<function=get_weather>{\"city\": \"Paris\"}</function>",
    "[TOOL_CALLS][{\"name\": \"get_time\", \"arguments\": {}}]",
    "[TOOL_CALLS]get_time{}",
    "<|tool_call|>[{\"name\": \"get_time\"}]",
    "\n[get_weather(city='Paris'), get_time()]",
    "\n{\"name\": \"get_time\", \"arguments\": {}}",
    "```json\n{\"name\": \"get_time\", \"arguments\": {}}\n```",
    "<｜tool▁call▁begin｜>get_time<｜tool▁sep｜>{}<｜tool▁call▁end｜>",
];

/// Generates text with calls, truncated calls and other fragments.
fn any_text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        3 => fragment([FRAGMENTS, NAMES].concat()),
        1 => prop::sample::select(CALLS).prop_map(str::to_owned),
    ];
    prop::collection::vec(piece, 0..16).prop_map(|parts| parts.concat())
}

/// Splits a text before each character whose flag in `every` is set.
fn cut(text: &str, every: &[bool]) -> Vec<String> {
    let mut pieces = vec![String::new()];
    for (at, c) in text.chars().enumerate() {
        if every.get(at % every.len().max(1)) == Some(&true) {
            pieces.push(String::new());
        }
        if let Some(last) = pieces.last_mut() {
            last.push(c);
        }
    }
    pieces
}

proptest! {
    #[test]
    fn text_that_names_no_tool_is_passed_on_byte_for_byte(text in text_of(FRAGMENTS.to_vec())) {
        prop_assume!(!NAMES.iter().any(|name| text.contains(name)));
        let response = read(&all(), &text, FinishReason::Stop);
        prop_assert_eq!(response.message.text(), text);
        prop_assert_eq!(response.message.tool_uses().count(), 0);
        prop_assert_eq!(response.finish, FinishReason::Stop);
    }

    #[test]
    fn any_text_in_any_pieces_keeps_the_grammar_and_gives_the_same(
        text in any_text(),
        every in prop::collection::vec(any::<bool>(), 1..8),
        forms in prop::collection::vec(prop::sample::select(TextCallFormat::ALL.to_vec()), 0..8),
    ) {
        let forms: TextCallFormats = forms.into_iter().collect();
        for recovery in [all(), CallRecoverySettings::for_request(&request(), forms)] {
            let whole = transform(&recovery, answer(&[&text], FinishReason::Stop));
            // `response` fails if the order of the events is invalid.
            let whole_response = response(&whole);
            let mut ids: Vec<_> = whole_response.message.tool_uses().map(|it| &it.id).collect();
            let count = ids.len();
            ids.sort();
            ids.dedup();
            prop_assert_eq!(ids.len(), count);
            let pieces = cut(&text, &every);
            let pieces: Vec<&str> = pieces.iter().map(String::as_str).collect();
            let pieces = transform(&recovery, answer(&pieces, FinishReason::Stop));
            prop_assert_eq!(joined(pieces), joined(whole));
        }
    }
}
