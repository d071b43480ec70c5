//! Our own entries in the format of the benchmark, from the importer to the report.

use std::collections::HashMap;

use serde_json::{Value, json};
use switchboard_evals::{bfcl, suite::Suite};

use crate::scripted::{self, Call};

/// Returns a suite with one entry for each kind of scoring rules. All entries have the same
/// functions.
fn suite() -> Suite {
    let area = json!({"name": "geometry.area", "description": "Area of a rectangle.", "parameters": {
        "type": "dict",
        "properties": {
            "width": {"type": "integer", "description": "In metres."},
            "height": {"type": "float", "description": "In metres."},
            "unit": {"type": "string", "description": "Of the result."},
        },
        "required": ["width", "height"],
    }});
    let hello = json!({"name": "say_hello", "description": "Says hello.", "parameters": {
        "type": "dict", "properties": {"name": {"type": "string", "description": "To whom."}}, "required": ["name"],
    }});
    let user = |content: &str| json!({"role": "user", "content": content});
    let system = json!({"role": "system", "content": "Be brief."});
    let entry = |id: &str, messages: Value| {
        let function = json!([area, hello]);
        json!({"id": id, "question": [messages], "function": function}).to_string()
    };
    let questions = [
        entry("multiple_0", json!([user("Area of 3 by 4 metres?")])),
        entry(
            "parallel_0",
            json!([system, user("Areas of 3 by 4 and of 5 by 4 metres?")]),
        ),
        entry("irrelevance_0", json!([user("What is love?")])),
    ];
    let right = |width: i32| json!({"geometry.area": {"width": [width], "height": [4.0], "unit": ["square metres", "m2", ""]}});
    let answers = [
        json!({"id": "multiple_0", "ground_truth": [right(3)]}).to_string(),
        json!({"id": "parallel_0", "ground_truth": [right(3), right(5)]}).to_string(),
    ];
    bfcl::parse_bfcl_suite(&questions.join("\n"), Some(&answers.join("\n"))).unwrap()
}

fn area(text: &str) -> Call {
    let (function, text) = ("geometry.area".to_owned(), text.to_owned());
    Call { function, text }
}

/// Returns whether a run of this entry passes with these calls.
async fn passes(id: &str, calls: &[Call]) -> bool {
    let suite = suite();
    let scenario = suite.scenarios.iter().find(|it| it.name == id).unwrap();
    let suite = Suite {
        scenarios: vec![scenario.clone()],
        ..suite.clone()
    };
    let scripts = HashMap::from([(id.to_owned(), calls.to_vec())]);
    let results = scripted::run(&suite, scripts).await;
    assert_eq!(results[0].error, None);
    results[0].passed
}

#[tokio::test]
async fn one_call_is_judged_without_repairs() {
    let right = r#"{"width": 3, "height": 4}"#;
    for (text, expected) in [
        (right, true),
        (
            r#"{"height": 4.0, "width": 3, "unit": "Square-Metres."}"#,
            true,
        ),
        (r#"{"width": 4, "height": 4}"#, false),
        (r#"{"width": 3}"#, false),
        (r#"{"width": 3, "height": 4, "unit": "feet"}"#, false),
        (r#"{"width": 3, "height": 4, "depth": 1}"#, false),
        (r#"{"width": 3, "height": 4, "unit": null}"#, false),
        // The agent loop would repair these inputs, but the benchmark scores them as the model
        // wrote them.
        (r#"{"width": "3", "height": 4}"#, false),
        (r#"{"width": 3, "height": 4,}"#, false),
        (r#"[{"width": 3, "height": 4}]"#, false),
    ] {
        assert_eq!(
            passes("multiple_0", &[area(text)]).await,
            expected,
            "{text}"
        );
    }
    let hello = Call::new("say_hello", &json!({"name": "Ann"}));
    let wire = Call::new("geometry_area", &json!({"width": 3, "height": 4}));
    for calls in [&[][..], &[hello], &[wire], &[area(right), area(right)]] {
        assert!(!passes("multiple_0", calls).await, "{calls:?}");
    }
}

#[tokio::test]
async fn several_calls_match_in_any_order() {
    let three = || area(r#"{"width": 3, "height": 4}"#);
    let five = || area(r#"{"width": 5, "height": 4}"#);
    for (calls, expected) in [
        (vec![three(), five()], true),
        (vec![five(), three()], true),
        (vec![five()], false),
        (vec![three(), three()], false),
        (vec![three(), five(), three()], false),
        (vec![], false),
    ] {
        assert_eq!(passes("parallel_0", &calls).await, expected, "{calls:?}");
    }
}

#[tokio::test]
async fn irrelevant_functions_must_not_be_called() {
    assert!(passes("irrelevance_0", &[]).await);
    assert!(!passes("irrelevance_0", &[area("{}")]).await);
    assert!(!passes("irrelevance_0", &[Call::new("love", &json!({}))]).await);
    // A call whose input is not valid JSON does not count as a call.
    assert!(passes("irrelevance_0", &[area("{")]).await);
    assert!(passes("irrelevance_0", &[area("{}"), area("{")]).await);
}
