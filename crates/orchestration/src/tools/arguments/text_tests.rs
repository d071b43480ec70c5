use super::*;
use crate::tools::arguments::tests_support::json_object;
use proptest::prelude::*;
use serde_json::json;

fn is_property(name: &str) -> bool {
    name == "options" || name == "city"
}

fn fix(raw: &str) -> Option<(Value, Vec<String>)> {
    let ToolInput::Malformed { reason, .. } = ToolInput::parse(raw) else {
        panic!("{raw} is well formed");
    };
    let (object, repairs) = repair(raw, &reason, &is_property)?;
    let repairs = repairs.iter().map(ToString::to_string).collect();
    Some((Value::Object(object), repairs))
}

#[test]
fn what_stands_around_one_object_is_left_out() {
    let whole = json!({"a": {"b": [1, "}{"]}});
    let texts = [
        "```json\n{\"a\": {\"b\": [1, \"}{\"]}}\n```",
        "```\n{\"a\": {\"b\": [1, \"}{\"]}}```",
        "``` {\"a\": {\"b\": [1, \"}{\"]}}",
        "`{\"a\": {\"b\": [1, \"}{\"]}}`",
        "\u{feff}{\"a\": {\"b\": [1, \"}{\"]}}",
        "Here is the call: {\"a\": {\"b\": [1, \"}{\"]}}",
        "Sure, I look that up.\n{\"a\": {\"b\": [1, \"}{\"]}}\nLet me know!",
        "Here it is:\n```json\n{\"a\": {\"b\": [1, \"}{\"]}}\n```\nDone.",
        "<tool_call>{\"a\": {\"b\": [1, \"}{\"]}}</tool_call>",
        "lookup({\"a\": {\"b\": [1, \"}{\"]}})",
        "arguments = {\"a\": {\"b\": [1, \"}{\"]}};",
        "{\"a\": {\"b\": [1, \"}{\"]}},",
        r#""{\"a\": {\"b\": [1, \"}{\"]}}""#,
        r#""\"{\\\"a\\\": {\\\"b\\\": [1, \\\"}{\\\"]}}\"""#,
        r#"{\"a\": {\"b\": [1, \"}{\"]}}"#,
        r#""```json\n{\"a\": {\"b\": [1, \"}{\"]}}\n```""#,
    ];
    for text in texts {
        let (object, repairs) = fix(text).unwrap_or_else(|| panic!("not repaired: {text}"));
        assert_eq!(object, whole, "{text}");
        assert!(!repairs.is_empty(), "{text}");
    }
}

#[test]
fn small_departures_inside_are_read_and_told() {
    let (object, repairs) =
        fix("{\"a\": True, \"b\": [None, False, None,], \"c\": \"x\ny\\\"\\n\",}").unwrap();
    assert_eq!(
        object,
        json!({"a": true, "b": [null, false, null], "c": "x\ny\"\n"})
    );
    assert_eq!(
        repairs,
        [
            "2 trailing commas were left out",
            "`True` was read as `true`",
            "`None` was read as `null`",
            "`False` was read as `false`",
            "line breaks and tabs inside of texts were kept",
        ]
    );
}

#[test]
fn a_repair_says_what_it_did() {
    let (_, repairs) = fix("Here it is:\n```json\n{\"a\": 1}\n```\nDone.").unwrap();
    assert_eq!(
        repairs,
        [
            "the code fence around the object was left out",
            "what stood beside the object was left out: \"Here it is:\"",
            "what stood beside the object was left out: \"Done.\"",
        ]
    );
}

#[test]
fn what_is_cut_off_ambiguous_or_no_object_stays_malformed() {
    let texts = [
        // Cut off.
        "{\"a\": 1",
        "{\"a\": {\"b\": 1}",
        "```json\n{\"a\": [1, 2\n```",
        "{\"a\": \"x",
        "{\"a\": \"x\\",
        "{\"a\": Tru",
        "{\"a\":",
        "{",
        "\"{\\\"a\\\": 1",
        "{\\\"a\\\": 1",
        // Two objects, or pieces of one.
        "{\"a\": 1} {\"a\": 2}",
        "{\"a\": 1}{\"a\": 1}",
        "{\"a\": 1}}",
        "{\"a\": 1}, \"b\": 2",
        "\"a\": 1, {\"b\": 2}",
        "city: Bonn, options: {\"units\": \"c\"}",
        "options: {\"units\": \"c\"}",
        "{\"units\": \"c\"}, city Bonn",
        "{\"units\": \"c\"} city=Bonn",
        "{\"a\": 1, \"a\": 2,}",
        // Guesses.
        "{'a': 1}",
        "{a: 1}",
        "{\"a\": true false}",
        "{\"a\": Trueish}",
        "{\"a\": 1,, \"b\": 2}",
        "{,}",
        "{\"a\": NaN}",
        "{\"a\": 01}",
        // Something else.
        "[{\"a\": 1}]",
        "3",
        "no JSON at all",
        "```json\n```",
        "\"text\"",
    ];
    for text in texts {
        assert_eq!(fix(text), None, "{text}");
    }
}

#[test]
fn what_is_malformed_for_another_reason_than_its_text_stays_so() {
    for raw in ["{\"a\": 1}", "```json\n{\"a\": 1}\n```", "{\"a\": 1,}"] {
        let cut = "cut off before it was complete";
        assert_eq!(repair(raw, cut, &is_property), None, "{raw}");
    }
}

#[test]
fn depth_is_bounded() {
    let deep = format!("x {}1{}", "{\"a\":".repeat(100_000), "}".repeat(100_000));
    assert_eq!(fix(&deep), None);
    for (levels, fits) in [(MAX_JSON_DEPTH, true), (MAX_JSON_DEPTH + 1, false)] {
        let text = format!("x {}1{}", "{\"a\":".repeat(levels), "}".repeat(levels));
        assert_eq!(fix(&text).is_some(), fits, "{levels}");
    }
}

/// JSON text with trailing commas, Python's literals and line breaks.
fn odd_text(value: &Value, out: &mut String) {
    match value {
        Value::Null => out.push_str("None"),
        Value::Bool(true) => out.push_str("True"),
        Value::Array(items) => {
            out.push('[');
            for item in items {
                odd_text(item, out);
                out.push_str(" ,\n");
            }
            out.push(']');
        }
        Value::Object(object) => {
            out.push('{');
            for (key, value) in object {
                out.push_str(&Value::from(key.as_str()).to_string());
                out.push(':');
                odd_text(value, out);
                out.push(',');
            }
            out.push('}');
        }
        Value::String(text) => {
            out.push_str(&Value::from(text.as_str()).to_string().replace("\\n", "\n"));
        }
        other => out.push_str(&other.to_string()),
    }
}

fn decorated(object: &JsonObject, decoration: usize) -> String {
    let value = Value::Object(object.clone());
    let json = value.to_string();
    match decoration {
        0 => format!("```json\n{json}\n```"),
        1 => format!("I call it now: {json}"),
        2 => format!("\u{feff}{json}"),
        3 => Value::from(json).to_string(),
        4 => format!("{json}\nThat is all."),
        _ => {
            let mut odd = String::new();
            odd_text(&value, &mut odd);
            odd
        }
    }
}

proptest! {
    #[test]
    fn nothing_is_repaired_into_something_else(object in json_object(), decoration in 0_usize..6) {
        let text = decorated(&object, decoration);
        if let ToolInput::Malformed { reason, .. } = ToolInput::parse(&text) {
            // A text of an odd value may hold `\\n`, whose second half is no line break.
            if !text.contains("\\\n") {
                let read = repair(&text, &reason, &is_property).map(|(object, _)| object);
                prop_assert_eq!(read, Some(object), "{}", text);
            }
        }
    }

    #[test]
    fn what_was_cut_off_is_never_completed(
        object in json_object(),
        decoration in 0_usize..6,
        cut in any::<prop::sample::Index>(),
    ) {
        let text = decorated(&object, decoration);
        let cut = text.floor_char_boundary(cut.index(text.len()));
        let text = &text[..cut];
        if let ToolInput::Malformed { reason, .. } = ToolInput::parse(text)
            && let Some((read, _)) = repair(text, &reason, &is_property)
            && !text.contains("\\\n")
        {
            // Only words behind the object were lost.
            prop_assert_eq!(read, object, "{}", text);
        }
    }

    #[test]
    fn what_lost_its_beginning_is_never_repaired(
        object in json_object(),
        cut in any::<prop::sample::Index>(),
    ) {
        let text = Value::Object(object).to_string();
        let cut = text.ceil_char_boundary(1 + cut.index(text.len()));
        if let ToolInput::Malformed { reason, .. } = ToolInput::parse(&text[cut..]) {
            prop_assert_eq!(repair(&text[cut..], &reason, &is_property), None);
        }
    }

    #[test]
    fn two_objects_are_never_one(
        first in json_object(),
        second in json_object(),
        between in "[ ,\n]{0,2}",
    ) {
        let text = format!("{}{between}{}", Value::from(first), Value::from(second));
        prop_assert_eq!(fix(&text), None);
    }

    #[test]
    fn any_text_is_read_without_harm(text in "[{}\\[\\]\",:`a1T\\\\ \\n\u{feff}]{0,60}") {
        if let ToolInput::Malformed { reason, .. } = ToolInput::parse(&text)
            && let Some((_, repairs)) = repair(&text, &reason, &is_property)
        {
            prop_assert!(!repairs.is_empty());
        }
    }
}
