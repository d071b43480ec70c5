//! Tests of the text that is buffered because a tool call may begin in it.

use super::*;

/// Returns the text that is emitted before the text ends.
fn out(text: &str) -> String {
    let mut recovery = TextCallConverter::new(all());
    let mut events = Vec::new();
    recovery.push(started(0), &mut events);
    recovery.push(delta(0, text), &mut events);
    response(&events).message.text()
}

#[test]
fn text_is_buffered_from_the_first_marker() {
    for (text, buffered) in [
        ("Hello", ""),
        ("Hello <", "<"),
        ("Hello <tool_c", "<tool_c"),
        ("Hello <tool_x", ""),
        ("a < b", ""),
        ("Hello <tool_call>\n{\"na", "<tool_call>\n{\"na"),
        ("Hello <tool_call>in prose", "<tool_call>in prose"),
        ("Hello <function=get_", "<function=get_"),
        ("Hello [TOOL_CALLS]", "[TOOL_CALLS]"),
        ("Hello [TOOLS", ""),
        ("Hello [get_time(", ""),
        ("Hello\n[get_ti", "[get_ti"),
        ("Hello\n[get_time(", "[get_time("),
        ("Hello\n[get_time, ", ""),
        ("Hello\n[1, 2", ""),
        ("Hello\n{\"na", "{\"na"),
        ("Hello\n{\"nav", ""),
        ("Hello\n{\"name\": \"Bob", "{\"name\": \"Bob"),
        ("Hello\n{ not JSON", ""),
        // A code block after other text is an example and not a call.
        ("Hello ```", ""),
        // A block that begins like a call is buffered until the text ends.
        (
            "Hello\n```json\n{\"name\": \"get_time",
            "{\"name\": \"get_time",
        ),
        ("```", "```"),
        ("```js", "```js"),
        ("```rust", ""),
        ("```json\n{\"na", "```json\n{\"na"),
        ("```json\n{\"title\"", ""),
        ("`code`", ""),
        (
            "Hello <｜tool▁calls▁begin｜><｜tool▁call▁begin｜>func",
            "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>func",
        ),
    ] {
        let expected = text.strip_suffix(buffered).unwrap();
        assert_eq!(out(text), expected, "{text:?}");
    }
}

#[test]
fn white_space_waits_at_the_beginning_and_after_a_call() {
    assert_eq!(out("\n\n "), "");
    assert_eq!(out("\n\n x"), "\n\n x");
    assert_eq!(out("x\n\n "), "x\n\n ");
    assert_eq!(out(&format!("{CALL}\n\n")), "");
    // An answer that consists of white space is emitted unchanged.
    assert_eq!(
        read(&all(), " \n", FinishReason::Stop).message.text(),
        " \n"
    );
}

/// Fails by a time-out if the text is read again from each marker, which would take minutes.
#[test]
fn a_long_text_full_of_markers_is_read_once() {
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
