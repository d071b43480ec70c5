use serde_json::{Value, json};
use switchboard_orchestration::{RecordedResult, ToolCallRecord, ToolFailure};

use super::*;
use crate::{
    scoring::{CallOutcome, Verdict, bfcl::score_turn},
    suite::{MessageRole, Scenario, Turn},
    test_table::rows,
};

fn question(id: &str, change: impl FnOnce(&mut Value)) -> String {
    let mut question = json!({
        "id": id,
        "question": [[{"role": "user", "content": "Area of a triangle with base 10 and height 5?"}]],
        "function": [
            {"name": "geometry.area", "description": "Area.", "parameters": {
                "type": "dict",
                "properties": {
                    "base": {"type": "integer", "description": "The base."},
                    "height": {"type": "float", "description": "The height."},
                    "unit": {"type": "string", "enum": ["cm", "m"]},
                    "points": {"type": "tuple", "items": {"type": "float"}},
                    "options": {"type": "dict", "properties": {"exact": {"type": "any"}, "digits": {"type": "float"}}},
                },
                "required": ["base", "height"],
            }},
            {"name": "geometry.volume", "description": "Volume.", "parameters": {"type": "dict", "properties": {}, "required": []}},
        ],
    });
    change(&mut question);
    question.to_string()
}

fn area(base: i64) -> Value {
    json!({"geometry.area": {"base": [base], "height": [5.0], "unit": ["cm", ""]}})
}

fn answer(id: &str, calls: &Value) -> String {
    json!({"id": id, "ground_truth": calls}).to_string()
}

/// Returns a scenario with one entry of a category of the benchmark. `calls` are its right calls.
fn scenario(category: &str, calls: &Value) -> Scenario {
    let id = format!("{category}_0");
    let suite = parse_bfcl_suite(&question(&id, |_| {}), Some(&answer(&id, calls))).unwrap();
    suite.scenarios.into_iter().next().unwrap()
}

fn call(tool: &str, input: Value) -> ToolCallRecord {
    ToolCallRecord {
        id: String::new(),
        server: Some("scenario".to_owned()),
        tool: tool.to_owned(),
        input: input.into(),
        is_error: false,
        failure: None,
        cached: false,
        attempts: 1,
        duration_ms: 0,
        result: RecordedResult::default(),
    }
}

fn right(base: i64) -> ToolCallRecord {
    call("geometry.area", json!({"base": base, "height": 5}))
}

fn failed(call: ToolCallRecord, failure: ToolFailure) -> ToolCallRecord {
    ToolCallRecord {
        failure: Some(failure),
        is_error: true,
        ..call
    }
}

/// Returns the verdict of each call and the number of missing calls.
fn verdict(turn: &Turn, calls: &[ToolCallRecord]) -> (Vec<Verdict>, usize) {
    let score = score_turn(turn, calls, &|_| false);
    let verdict = score.calls.iter().map(|it| it.verdict).collect();
    (verdict, score.missing.len())
}

#[test]
fn an_entry_is_a_scenario_with_its_functions_as_tools() {
    let scenario = scenario("simple_python", &json!([area(10)]));
    assert_eq!(scenario.name, "simple_python_0");
    assert_eq!(scenario.kind, "simple_python");
    assert_eq!(
        serde_json::to_value(&scenario.parameters).unwrap(),
        json!({"max_steps": 1})
    );
    let tool = &scenario.tools[0];
    assert_eq!(tool.name, "geometry.area");
    assert_eq!(
        tool.description.as_str(),
        "Area. Note that the provided function is in Python 3 syntax."
    );
    let float = "This is a float type value.";
    assert_eq!(
        tool.input_schema,
        json!({
            "type": "object",
            "properties": {
                "base": {"type": "integer", "description": "The base."},
                "height": {"type": "number", "description": format!("The height. {float}")},
                "unit": {"type": "string", "enum": ["cm", "m"]},
                "points": {"type": "array", "items": {"type": "number"}},
                "options": {"type": "object", "properties": {
                    "exact": {"type": "string"},
                    "digits": {"type": "number", "description": float},
                }},
            },
            "required": ["base", "height"],
        })
    );
    let turn = &scenario.turns[0];
    assert!(!turn.any_order);
    let call = &turn.calls.as_deref().unwrap()[0];
    assert_eq!(call.tool, "geometry.area");
    assert!(call.exactly);
    assert!(!call.optional);
    assert_eq!(
        Value::Object(call.input.clone()),
        json!({
            "base": {"$bfcl": {"type": "integer", "allowed": [10], "required": true}},
            "height": {"$bfcl": {"type": "float", "allowed": [5.0], "required": true}},
            "unit": {"$bfcl": {"type": "string", "allowed": ["cm", ""]}},
        })
    );
}

#[test]
fn earlier_messages_precede_the_turn() {
    let questions = question("live_irrelevance_7-1-0", |it| {
        it["question"] = json!([[
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Hello"},
            {"role": "assistant", "content": "Hello!"},
            {"role": "user", "content": "Sing."},
        ]]);
    });
    let suite = parse_bfcl_suite(&questions, None).unwrap();
    let scenario = &suite.scenarios[0];
    assert_eq!(scenario.kind, "live_irrelevance");
    assert_eq!(scenario.turns[0].say, "Sing.");
    assert_eq!(scenario.turns[0].calls.as_deref(), Some(&[][..]));
    let before = scenario.before.iter();
    assert_eq!(
        before
            .map(|said| (said.role, said.text.as_str()))
            .collect::<Vec<_>>(),
        [
            (MessageRole::System, "Be brief."),
            (MessageRole::User, "Hello"),
            (MessageRole::Assistant, "Hello!")
        ]
    );
}

#[test]
fn a_file_is_lines_or_a_list() {
    let lines = format!(
        "{}\n\n{}\n",
        question("irrelevance_0", |_| {}),
        question("live_irrelevance_1-0-0", |_| {})
    );
    let list = format!("[{}]", lines.trim().replace("\n\n", ","));
    let suite = parse_bfcl_suite(&lines, None).unwrap();
    assert_eq!(
        suite.title,
        "Berkeley Function Calling Leaderboard: irrelevance, live_irrelevance"
    );
    assert_eq!(parse_bfcl_suite(&list, None).unwrap(), suite);
}

#[test]
fn simple_entries_ignore_the_function_name_of_the_answer() {
    let renamed = json!([{"area": {"base": [10], "height": [5.0]}}]);
    let simple = scenario("simple", &renamed);
    assert_eq!(
        simple.turns[0].calls.as_deref().unwrap()[0].tool,
        "geometry.area"
    );
    let turn = &simple.turns[0];
    let score = score_turn(turn, &[right(9)], &|_| false);
    assert_eq!(score.missing, [r#"geometry.area {"base":10,"height":5.0}"#]);
    assert_eq!(
        score.calls[0].reason.as_deref(),
        Some("`base` is 9, expected 10")
    );
    let unknown = failed(call("area", json!({})), ToolFailure::UnknownTool);
    assert_eq!(verdict(turn, &[unknown]), (vec![Verdict::Hallucinated], 1));
    let null = call(
        "geometry.area",
        json!({"base": 10, "height": 5, "options": null}),
    );
    let score = score_turn(turn, &[null], &|_| false);
    assert_eq!(
        score.calls[0].reason.as_deref(),
        Some("`options` is not expected")
    );
}

#[test]
fn parallel_calls_match_greedily() {
    // Each expected call takes the first call that matches it, as in the benchmark. Here the first
    // expected call takes the call that only the second one could use.
    let either = json!({"geometry.area": {"base": [10, 20], "height": [5.0], "unit": ["cm", ""]}});
    let greedy = scenario("parallel_multiple", &json!([either, area(10)]));
    assert_eq!(
        verdict(&greedy.turns[0], &[right(10), right(20)]),
        (vec![Verdict::Right, Verdict::WrongInput], 1)
    );
    assert_eq!(
        verdict(&greedy.turns[0], &[right(20), right(10)]),
        (vec![Verdict::Right, Verdict::Right], 0)
    );
}

#[test]
fn answers_override_the_schema() {
    let variable = json!([{"geometry.area": {"base": ["b"], "height": [5.0]}}]);
    let multiple = scenario("multiple", &variable);
    let refused = failed(
        call("geometry.area", json!({"base": "b", "height": 5.0})),
        ToolFailure::InvalidInput,
    );
    let score = score_turn(&multiple.turns[0], &[refused], &|_| false);
    assert_eq!(score.calls[0].verdict, Verdict::Right);
    assert_eq!(score.calls[0].outcome, CallOutcome::NotExecuted);
}

#[test]
fn a_required_parameter_without_an_answer_makes_every_call_wrong() {
    let multiple = scenario("multiple", &json!([{"geometry.area": {"base": [10]}}]));
    for input in [json!({"base": 10}), json!({"base": 10, "height": 5.0})] {
        let calls = [call("geometry.area", input)];
        assert_eq!(
            verdict(&multiple.turns[0], &calls),
            (vec![Verdict::WrongInput], 1)
        );
    }
}

/// Rows with the id of a question, a replaced value in it, its answer, and the error message.
const INVALID_ENTRIES: &str = r#"
simple_java_0 |  |  | `simple_java_0` has the unsupported category `simple_java`;
    supported: simple_python, multiple
multi_turn_base_0 |  |  | `multi_turn_base_0` has the unsupported category `multi_turn_base`
multi_turn_base_1 | /function null |  |
    `multi_turn_base_1` has the unsupported category `multi_turn_base`
irrelevance_1 | /function null |  | `irrelevance_1`: it has no `function`
odd |  |  | `odd` has the unsupported category ``
multiple_0 |  |  | `multiple_0` has no answer: `multiple` needs the file
multiple_0 | /question [[], []] | [{"geometry.area": {"base": [10], "height": [5.0]}}] |
    `multiple_0`: it has several turns
multiple_0 | /question [[]] | [{"geometry.area": {"base": [10], "height": [5.0]}}] |
    `multiple_0`: it has no message
multiple_0 | /question/0/0/role "assistant" | [{"geometry.area": {"base": [10],
    "height": [5.0]}}] | `multiple_0`: its last message must be a user message with text
multiple_0 |  | [{"geometry.area": {"base": [10]}}, {"geometry.area": {"base": [20]}}] |
    `multiple_0`: its answer must have exactly one call
multiple_0 |  | [{"a": {}, "b": {}}] | `multiple_0`: a call must have one function
multiple_0 |  | [{"geometry.length": {}}] |
    `multiple_0`: the answer calls the unknown function `geometry.length`
multiple_0 |  | [{"geometry.area": {"base": 10}}] |
    `multiple_0`: the values of `base` must be a list
multiple_0 | /function/0/parameters/properties/base {"type": "HashMap"} |
    [{"geometry.area": {"base": [10], "height": [5.0]}}] |
    `multiple_0`: `base` has the unknown type "HashMap"
multiple_0 | /function/0/parameters/properties/base {} | [{"geometry.area": {"base": [10],
    "height": [5.0]}}] | `multiple_0`: `base` has no type
multiple_0 | /function/0/parameters/properties/base {"type": "array"} |
    [{"geometry.area": {"base": [10], "height": [5.0]}}] |
    `multiple_0`: the items of `base` have no type
"#;

#[test]
fn invalid_entries_are_refused() {
    let refused = |questions: &str, answers: Option<&str>, message: &str| {
        let error = parse_bfcl_suite(questions, answers)
            .unwrap_err()
            .to_string();
        assert!(error.starts_with(message), "{error}");
    };
    for [id, change, calls, message] in rows(INVALID_ENTRIES) {
        let question = question(&id, |it| {
            if let Some((pointer, value)) = change.split_once(' ') {
                *it.pointer_mut(pointer).unwrap() = serde_json::from_str(value).unwrap();
            }
        });
        let calls = serde_json::from_str::<Value>(&calls).ok();
        let answer = calls.map(|calls| answer(&id, &calls));
        refused(&question, answer.as_deref(), &message);
    }
    let one = question("multiple_0", |_| {});
    let answers = answer("multiple_0", &json!([area(10)]));
    refused("", None, "the question file has no entries");
    refused("[]", None, "the question file has no entries");
    refused(
        "{}",
        None,
        "entry 1 of the question file: missing field `id`",
    );
    let cut = format!("{}\n{{", question("irrelevance_0", |_| {}));
    refused(&cut, None, "entry 2 of the question file: EOF");
    refused(
        &one,
        Some("x"),
        "entry 1 of the answer file: expected value",
    );
    let other = answer("multiple_1", &json!([area(10)]));
    refused(&one, Some(&other), "`multiple_0` has no answer");
    let twice = format!("{one}\n{one}");
    refused(
        &twice,
        Some(&answers),
        "`multiple_0`: another entry has this id",
    );
}
