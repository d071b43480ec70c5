use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::tools::arguments::test_support::json_object;

fn repaired(raw: &str) -> Option<(Value, Vec<String>)> {
    let ToolInput::Malformed { reason, .. } = ToolInput::parse(raw) else {
        panic!("{raw} is well formed");
    };
    let (object, repairs) = repair_text(raw, &reason)?;
    let repairs = repairs.iter().map(ToString::to_string).collect();
    Some((Value::Object(object), repairs))
}

#[test]
fn a_code_fence_around_the_object_is_removed() {
    for text in [
        "```json\n{\"a\": {\"b\": [1, \"}{\"]}}\n```",
        "```\n{\"a\": {\"b\": [1, \"}{\"]}}```",
        " ``` {\"a\": {\"b\": [1, \"}{\"]}} ```\n",
    ] {
        let (object, repairs) = repaired(text).unwrap_or_else(|| panic!("not repaired: {text}"));
        assert_eq!(object, json!({"a": {"b": [1, "}{"]}}), "{text}");
        assert_eq!(repairs, ["removed the code fence around the object"]);
    }
}

#[test]
fn trailing_commas_are_removed_outside_of_strings() {
    let (object, repairs) = repaired("{\"a\": [true, null ,\n], \"b\": \",}\\\",]\",}").unwrap();
    assert_eq!(object, json!({"a": [true, null], "b": ",}\",]"}));
    assert_eq!(repairs, ["removed 2 trailing commas"]);
}

#[test]
fn input_that_is_cut_off_ambiguous_or_not_an_object_stays_malformed() {
    for text in [
        // Cut off.
        "{\"a\": 1",
        "{\"a\": {\"b\": 1}",
        "{\"a\": 1,",
        "```json\n{\"a\": [1, 2\n```",
        "```json\n{\"a\": 1}",
        "{\"a\": \"x",
        "{\"a\": \"x\\",
        "{",
        // Two objects, or parts of one.
        "{\"a\": 1} {\"a\": 2}",
        "{\"a\": 1}}",
        "{\"a\": 1}, \"b\": 2",
        "options: {\"units\": \"c\"}",
        // Other errors.
        "{'a': 1}",
        "{a: 1}",
        "{\"a\": True}",
        "{\"a\": 1,, \"b\": 2}",
        "{\"a\": 1,,}",
        "{,}",
        "[,]",
        "{\"a\": NaN}",
        "{\"a\": 01}",
        // Other values.
        "[{\"a\": 1}]",
        "[{\"a\": 1},]",
        "3",
        "no JSON at all",
        "```json\n```",
        "```",
        "\"text\"",
        "\"{\\\"a\\\": 1}\"",
        "Here is the call: {\"a\": 1}",
    ] {
        assert_eq!(repaired(text), None, "{text}");
    }
}

#[test]
fn input_that_is_malformed_for_another_reason_stays_malformed() {
    for raw in ["{\"a\": 1}", "```json\n{\"a\": 1}\n```", "{\"a\": 1,}"] {
        assert_eq!(repair_text(raw, "cut off before it was complete"), None);
    }
}

#[test]
fn the_depth_is_limited() {
    let deep = format!("{}1,{}", "{\"a\":".repeat(100_000), "}".repeat(100_000));
    assert_eq!(repaired(&deep), None);
}

/// Writes JSON with a comma after every item and property.
fn write_with_commas(value: &Value, out: &mut String) {
    match value {
        Value::Array(items) => {
            out.push('[');
            for item in items {
                write_with_commas(item, out);
                out.push_str(" ,\n");
            }
            out.push(']');
        }
        Value::Object(object) => {
            out.push('{');
            for (key, value) in object {
                out.push_str(&Value::from(key.as_str()).to_string());
                out.push(':');
                write_with_commas(value, out);
                out.push(',');
            }
            out.push('}');
        }
        other => out.push_str(&other.to_string()),
    }
}

fn decorated(object: &JsonObject, in_fence: bool) -> String {
    let value = Value::Object(object.clone());
    if in_fence {
        return format!("```json\n{value}\n```");
    }
    let mut text = String::new();
    write_with_commas(&value, &mut text);
    text
}

proptest! {
    #[test]
    fn a_repair_returns_the_original_object(object in json_object(), in_fence in any::<bool>()) {
        let text = decorated(&object, in_fence);
        if let ToolInput::Malformed { reason, .. } = ToolInput::parse(&text) {
            let read = repair_text(&text, &reason).map(|(object, _)| object);
            prop_assert_eq!(read, Some(object), "{}", text);
        }
    }

    #[test]
    fn input_that_was_cut_off_is_never_completed(
        object in json_object(),
        in_fence in any::<bool>(),
        cut in any::<prop::sample::Index>(),
    ) {
        let text = decorated(&object, in_fence);
        let cut = text.floor_char_boundary(cut.index(text.len()));
        let text = &text[..cut];
        if let ToolInput::Malformed { reason, .. } = ToolInput::parse(text) {
            prop_assert_eq!(repair_text(text, &reason), None, "{}", text);
        }
    }

    #[test]
    fn any_text_is_handled(text in "[{}\\[\\]\",:`a1T\\\\ \\n\u{feff}]{0,60}") {
        if let ToolInput::Malformed { reason, .. } = ToolInput::parse(&text)
            && let Some((_, repairs)) = repair_text(&text, &reason)
        {
            prop_assert!(!repairs.is_empty());
        }
    }
}
