//! Calls out of which secrets were struck.

use super::*;

/// What is left around what was struck out still says what is wrong.
#[test]
#[expect(clippy::too_many_lines, reason = "a table")]
fn what_is_left_of_a_text_must_be_as_expected() {
    use Verdict::{Right, Unknown, WrongInput};
    let worth_of = |found: Value, wanted: Value| {
        let turn = turn(json!({"calls": [{"tool": "a", "input": {"note": wanted}}]}));
        let calls = [call("a", json!({"note": found}))];
        score_turn(&turn, &calls, &[], &redacted).calls[0].verdict
    };
    let wrong = "completely wrong text token=[redacted] end";
    let data = r#"{"token":"[redacted]","n":1}"#;
    for (found, wanted, verdict) in [
        (json!(wrong), json!("Berlin"), WrongInput),
        (json!(wrong), json!({"$exactly": "Berlin"}), WrongInput),
        (
            json!(wrong),
            json!({"$ignoring_case": "BERLIN"}),
            WrongInput,
        ),
        (
            json!(wrong),
            json!({"$one_of": ["Berlin", "Bonn"]}),
            WrongInput,
        ),
        (json!(wrong), json!(["Berlin"]), WrongInput),
        (
            json!("x [redacted] y"),
            json!({"$between": [1, 5]}),
            WrongInput,
        ),
        (json!("x [redacted] y"), json!(3), WrongInput),
        (json!("x [redacted] y"), json!(true), WrongInput),
        (json!("key: [redacted]!"), json!(" key: tulip! "), Unknown),
        (
            json!("Key: [redacted]!"),
            json!({"$ignoring_case": "key: Tulip!"}),
            Unknown,
        ),
        (json!("[redacted]"), json!({"$between": [1, 5]}), Unknown),
        (json!("[redacted]"), json!(["a"]), Unknown),
        (json!("[redacted]"), json!({"a": 1}), Unknown),
        (json!("[redacted]"), json!(false), WrongInput),
        // What was struck out leaves the form of the text to chance.
        (json!(data), json!(r#"{"token": "t", "n": 1}"#), Unknown),
        (json!(data), json!(r#"{"token": "t", "n": 2}"#), WrongInput),
        (
            json!(["[redacted]", "b"]),
            json!({"$unordered": ["b", "a"]}),
            Unknown,
        ),
        (
            json!(["[redacted]", "c"]),
            json!({"$unordered": ["b", "a"]}),
            WrongInput,
        ),
        (
            json!({"k": "[redacted]", "n": 1}),
            json!({"$exactly": {"n": 1, "k": "x"}}),
            Unknown,
        ),
        (
            json!({"k": "[redacted]", "n": 1}),
            json!({"$exactly": {"n": 2, "k": "x"}}),
            WrongInput,
        ),
        // The mark itself is nothing that somebody wrote.
        (json!("[redacted]"), json!({"$matches": "^.{8,}$"}), Unknown),
        (
            json!("[redacted]"),
            json!({"$contains": "redacted"}),
            Unknown,
        ),
        (json!("[redacted]"), json!("[redacted]"), Unknown),
        (
            json!("in Berlin: [redacted]"),
            json!({"$contains": "berlin"}),
            Right,
        ),
        (json!(["[redacted]", "b"]), json!({"$contains": "b"}), Right),
        (
            json!(["[redacted]", "b"]),
            json!({"$contains": "a"}),
            Unknown,
        ),
        (
            json!(["x [redacted]", "b"]),
            json!({"$contains": "a"}),
            WrongInput,
        ),
        (json!(wrong), json!({"$any": true}), Right),
        (
            json!(data),
            json!({"$bfcl": {"type": "string", "allowed": ["Berlin"]}}),
            WrongInput,
        ),
        (
            json!("a-[redacted]."),
            json!({"$bfcl": {"type": "string", "allowed": ["A x"]}}),
            Unknown,
        ),
        (
            json!("[redacted]"),
            json!({"$bfcl": {"type": "integer", "allowed": [5]}}),
            Unknown,
        ),
        (
            json!("x [redacted]"),
            json!({"$bfcl": {"type": "integer", "allowed": [5]}}),
            WrongInput,
        ),
        (
            json!("[redacted]"),
            json!({"$bfcl": {"allowed": [5]}}),
            WrongInput,
        ),
    ] {
        assert_eq!(
            worth_of(found.clone(), wanted.clone()),
            verdict,
            "{found} {wanted}"
        );
    }
    // Named is what is wrong, and not what may be right.
    let exact = turn(json!({"calls": [{"tool": "a", "input": {"key": "k", "user": "ada"}}]}));
    let calls = [call("a", json!({"key": "[redacted]", "user": "bob"}))];
    let why = score_turn(&exact, &calls, &[], &redacted).calls[0]
        .reason
        .clone();
    assert_eq!(why.as_deref(), Some("`user` is \"bob\", expected \"ada\""));
}

/// A secret beside a wrong argument excuses nothing.
#[test]
fn a_call_that_the_tool_refuses_whatever_was_struck_out_is_hallucinated() {
    let definition = std::sync::Arc::new(switchboard_domain::ToolDefinition::new(
        "pay",
        "",
        json!({
            "type": "object",
            "properties": {
                "pin": {"type": "integer", "minimum": 1},
                "sum": {"type": "integer"},
                "token": {"type": "string", "pattern": "^[a-z]{3}$", "maxLength": 12},
                "unit": {"enum": ["eur", "usd"]},
                "to": {"anyOf": [{"type": "integer"}, {"type": "array", "items": {"type": "integer"}}]},
                "keys": {"type": "array", "items": {"type": "string"}, "uniqueItems": true},
            },
            "required": ["sum"],
            "additionalProperties": false,
        }),
    ));
    let validators = switchboard_orchestration::tools::arguments::Validators::default();
    let fits = |input: &Value| {
        let is_redacted = &crate::recording::is_redacted;
        let mended = validators.examine_recorded(&definition, input, is_redacted);
        mended.is_some()
    };
    for (input, expected) in [
        (json!({"sum": 5, "pin": "[redacted]"}), true),
        (
            json!({"sum": 5, "token": "[redacted]", "unit": "[redacted]", "to": "[redacted]"}),
            true,
        ),
        (json!({"sum": 5, "to": ["[redacted]", 1]}), true),
        (
            json!({"sum": 5, "keys": ["[redacted]", "[redacted]"]}),
            true,
        ),
        // The loop mends what stands beside it, as it did where nothing was struck out.
        (json!({"sum": "5", "pin": "[redacted]"}), true),
        (
            json!({"sum": "5", "to": {"0": 1}, "pin": "[redacted]"}),
            false,
        ),
        (json!({"arguments": {"sum": 5, "pin": "[redacted]"}}), true),
        (
            json!("```json\n{\"sum\": 5, \"pin\": \"[redacted]\",}\n```"),
            true,
        ),
        (json!("{\"sum\": 5, \"pin\": \"[redacted]\""), false),
        (json!({"sum": "much", "pin": "[redacted]"}), false),
        (json!({"sum": "much", "token": "abc"}), false),
        (json!({"pin": "[redacted]"}), false),
        (json!({"sum": 5, "pin": "[redacted]", "more": "x"}), false),
        (json!({"sum": 5, "password": "[redacted]"}), false),
        (json!({"sum": 5, "unit": "x [redacted]"}), true),
        (
            json!({"sum": 5, "keys": ["a", "a"], "pin": "[redacted]"}),
            false,
        ),
    ] {
        assert_eq!(fits(&input), expected, "{input}");
    }
    let mended = |input: Value| {
        let is_redacted = &crate::recording::is_redacted;
        let mended = validators.examine_recorded(&definition, &input, is_redacted);
        mended.map(Value::Object)
    };
    assert_eq!(
        mended(json!({"sum": "5", "unit": "eur", "to": null, "pin": "[redacted]", "keys": ["a"]})),
        Some(json!({"sum": 5, "unit": "eur", "pin": "[redacted]", "keys": ["a"]}))
    );
    let turn = turn(json!({"calls": [{"tool": "pay", "input": {"to": 5}}]}));
    let input = json!({"pin": "not a number", "to": 5, "password": "[redacted]"});
    let refused = [failed("pay", input, ToolFailure::InvalidInput)];
    for cut in [InputRedaction::Invalid, InputRedaction::None] {
        let judged = score_turn(&turn, &refused, &[], &|_| cut);
        let one = &judged.calls[0];
        let found = (one.verdict, one.outcome, judged.missing.len());
        assert_eq!(found, (Verdict::Hallucinated, CallOutcome::Hallucinated, 1));
    }
}
