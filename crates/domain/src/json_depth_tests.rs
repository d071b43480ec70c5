use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::{ModelId, Opaque, Part, ProviderState, ToolContent, ToolInput, ToolOutput, ToolUse};

fn nested(levels: usize) -> Value {
    (0..levels).fold(json!(1), |inner, level| match level % 2 {
        0 => json!([inner]),
        _ => json!({"k": inner}),
    })
}

/// Computes the depth with a simple recursion, which the tested function is compared with.
fn depth(value: &Value) -> usize {
    let children: Vec<&Value> = match value {
        Value::Array(items) => items.iter().collect(),
        Value::Object(fields) => fields.values().collect(),
        _ => return 0,
    };
    1 + children.into_iter().map(depth).max().unwrap_or(0)
}

#[test]
fn the_limit_is_the_last_depth_that_passes() {
    for levels in [0, 1, MAX_JSON_DEPTH] {
        assert_eq!(check_depth(&nested(levels)), Ok(()));
    }
    let too_deep = check_depth(&nested(MAX_JSON_DEPTH + 1)).unwrap_err();
    assert_eq!(too_deep.to_string(), "nested more than 64 levels deep");
    let document = |levels| check_document_depth(nested(levels).to_string().as_bytes());
    assert_eq!(document(MAX_DOCUMENT_DEPTH), Ok(()));
    assert!(document(MAX_DOCUMENT_DEPTH + 1).is_err());
}

#[test]
fn brackets_in_strings_and_beside_each_other_are_no_levels() {
    let text = json!({"a": "[".repeat(500), "b\"[": "\\\"[{".repeat(100)});
    assert_eq!(check_document_depth(text.to_string().as_bytes()), Ok(()));
    let wide = Value::Array(vec![nested(MAX_JSON_DEPTH - 1); 100]);
    assert_eq!(check_depth(&wide), Ok(()));
    assert_eq!(check_document_depth(wide.to_string().as_bytes()), Ok(()));
}

/// A million levels would overflow the stack of a recursive check.
#[test]
fn a_long_row_of_brackets_is_refused_without_recursion() {
    assert!(check_document_depth("[".repeat(1_000_000).as_bytes()).is_err());
    assert_eq!(
        check_document_depth("]".repeat(1_000_000).as_bytes()),
        Ok(())
    );
}

#[test]
fn every_value_of_a_part_is_checked() {
    let deep = || nested(MAX_JSON_DEPTH + 1);
    let model = ModelId::new("test", "model");
    let state = || ProviderState::new_for_model(&model, deep());
    let mut signed = ToolUse::new("1", "t", ToolInput::parse_input("{}"));
    signed.provider_state = Some(state());
    let output = |content, structured| ToolOutput {
        content,
        structured,
        is_error: false,
    };
    let unknown = output(vec![ToolContent::Unknown { value: deep() }], None);
    let structured = output(Vec::new(), Some(deep()));
    for refused in [&unknown, &structured] {
        let shown = refused.clone().replace_too_deep_output();
        assert!(shown.is_error && shown.structured.is_none());
        assert_eq!(
            shown.content,
            [ToolContent::text(
                "The tool ran, but its result cannot be used: it is nested more than 64 levels \
                 deep."
            )]
        );
    }
    let input = ToolInput::Object([("a".to_owned(), deep())].into_iter().collect());
    for part in [
        Part::ToolUse(signed),
        Part::ToolUse(ToolUse::new("1", "t", input)),
        Part::ToolResult(unknown.into_result("1", "t")),
        Part::ToolResult(structured.into_result("1", "t")),
        Part::Opaque(Opaque {
            kind: "block".to_owned(),
            text: None,
            provider_state: state(),
        }),
    ] {
        assert!(part.check_depth().is_err(), "{part:?}");
    }
    let fine = output(
        vec![ToolContent::Unknown {
            value: nested(MAX_JSON_DEPTH),
        }],
        Some(nested(MAX_JSON_DEPTH)),
    );
    assert_eq!(fine.clone().replace_too_deep_output(), fine);
    let result = Part::ToolResult(fine.into_result("1", "t"));
    assert_eq!(result.check_depth(), Ok(()));
}

fn deep_values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!(null)),
        any::<i64>().prop_map(Value::from),
        "[\\[\\]{}\\\\\"a]{0,8}".prop_map(Value::from),
    ];
    (leaf, prop::collection::vec(0_u8..4, 0..120)).prop_map(|(leaf, levels)| {
        levels.into_iter().fold(leaf, |inner, level| match level {
            0 => json!([inner]),
            1 => json!([1, inner, "]"]),
            2 => json!({"[": inner}),
            _ => json!({"a": {}, "b": inner}),
        })
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn a_value_passes_if_and_only_if_it_is_shallow_enough(value in deep_values()) {
        let levels = depth(&value);
        prop_assert_eq!(check_depth(&value).is_ok(), levels <= MAX_JSON_DEPTH);
        let text = value.to_string();
        let passes = check_document_depth(text.as_bytes()).is_ok();
        prop_assert_eq!(passes, levels <= MAX_DOCUMENT_DEPTH);
        // A value that passes the check can be serialized and parsed.
        prop_assert!(!passes || serde_json::from_str::<Value>(&text).is_ok());
    }
}
