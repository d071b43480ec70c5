//! How much is held back.

use super::*;

/// What has come out of an answer that goes on.
fn out(text: &str) -> String {
    let mut transformer = EventRecovery::new(all());
    let mut events = Vec::new();
    transformer.push(started(0), &mut events);
    transformer.push(delta(0, text), &mut events);
    response(&events).message.text()
}

#[test]
fn as_much_is_held_back_as_could_be_the_beginning_of_a_call() {
    for (text, held) in [
        ("Hello", ""),
        ("Hello <", "<"),
        ("Hello <tool_c", "<tool_c"),
        ("Hello <tool_x", ""),
        ("a < b", ""),
        (
            "Hello <tool_call>\n{\"name\": \"get_wea",
            "<tool_call>\n{\"name\": \"get_wea",
        ),
        // The name is another one.
        ("Hello <tool_call>\n{\"name\": \"get_web", ""),
        ("Hello <tool_call>\n{\"name\": \"get_weather_", ""),
        (
            "Hello <tool_call>\n{\"arguments\": {\"a\": 1}, ",
            "<tool_call>\n{\"arguments\": {\"a\": 1}, ",
        ),
        (
            "Hello <tool_call>\n{\"arguments\": {\"a\": 1}, \"name\": \"x",
            "",
        ),
        ("Hello <tool_call>get_ti", "<tool_call>get_ti"),
        ("Hello <tool_call>in prose", ""),
        ("Hello <function=get_", "<function=get_"),
        ("Hello <function=set_", ""),
        ("Hello [TOOL_CALLS]", "[TOOL_CALLS]"),
        ("Hello [TOOLS", ""),
        ("Hello [get_time(", ""),
        ("Hello\n[get_time(", "[get_time("),
        ("Hello\n[get_time, ", ""),
        ("Hello\n[get_weather(city", "[get_weather(city"),
        ("Hello\n[get_weather(city)", ""),
        ("Hello\n[1, 2", ""),
        ("Hello\n{\"na", "{\"na"),
        ("Hello\n{\"nav", ""),
        ("Hello\n{\"name\": \"Bob", ""),
        ("Hello\n{\"name\": \"get_time\", \"des", ""),
        ("Hello\n{\"name\": \"get_time\", \"arguments\": 5", ""),
        ("Hello\n{ not JSON", ""),
        // A block behind a text shows something.
        ("Hello ```", ""),
        ("Hello\n```json\n{\"name\": \"get_time", ""),
        ("```", "```"),
        ("```js", "```js"),
        ("```rust", ""),
        (
            "```json\n{\"name\": \"get_time",
            "```json\n{\"name\": \"get_time",
        ),
        ("```json\n{\"title\"", ""),
        ("`code`", ""),
        (
            "Hello <｜tool▁calls▁begin｜><｜tool▁call▁begin｜>func",
            "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>func",
        ),
        ("Hello <｜tool▁calls▁begin｜><｜tool▁call▁begin｜>other", ""),
    ] {
        let expected = text.strip_suffix(held).unwrap();
        assert_eq!(out(text), expected, "{text:?}");
    }
}

#[test]
fn blanks_wait_at_the_beginning_and_behind_a_call_only() {
    assert_eq!(out("\n\n "), "");
    assert_eq!(out("\n\n x"), "\n\n x");
    assert_eq!(out("x\n\n "), "x\n\n ");
    assert_eq!(out(&format!("{CALL}\n\n")), "");
    assert_eq!(out(&format!("{CALL}\n\n.")), "\n\n.");
    // An answer of blanks is still what the model said.
    assert_eq!(
        read(&all(), " \n", FinishReason::Stop).message.text(),
        " \n"
    );
}

#[test]
fn a_call_is_handed_on_as_soon_as_it_is_whole() {
    let calls = |text: &str| {
        let mut transformer = EventRecovery::new(all());
        let mut events = Vec::new();
        transformer.push(started(0), &mut events);
        transformer.push(delta(0, text), &mut events);
        response(&events).message.tool_uses().count()
    };
    for text in [
        CALL,
        "{\"name\": \"get_time\", \"arguments\": {}}",
        "[TOOL_CALLS]get_time{}",
        "<function=get_time>{}</function>",
        "<|python_tag|>{\"name\": \"get_time\", \"parameters\": {}}<|eom_id|>",
    ] {
        assert_eq!(calls(text), 1, "{text}");
        assert_eq!(calls(&text[..text.len() - 1]), 0, "{text}");
    }
}

/// Were such a text read again from each place where a call could begin, this would take minutes.
#[test]
fn a_long_text_full_of_beginnings_is_passed_on() {
    for part in [
        "<a><b></b>`c`[d]\n{\"x\": 1}\n",
        "{\"arguments\":",
        "\n{\"arguments\":\n",
        "[[[[[[[[",
        "\n[get_weather(city=[",
        "<tool_call>{\"arguments\": {\"a\": \"",
        "```json\n[",
        "<tool_call>",
    ] {
        let text = part.repeat(30_000 / part.len());
        let response = read(&all(), &text, FinishReason::Stop);
        assert_eq!(response.message.text().len(), text.len(), "{part}");
    }
}
