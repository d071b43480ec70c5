use serde_json::json;

use super::*;
use crate::test_table::rows;

fn refused(value: Value) -> String {
    Suite::parse_suite(value).unwrap_err().to_string()
}

/// Rows with an invalid suite or turn, and the start of the error message.
const INVALID_SUITES: &str = r#"
{"scenarios": []} | scenarios: the suite has no scenarios
{"scenarios": [{"name": " ", "turns": []}]} | scenarios[0].name: must not be empty
{"scenarios": [{"name": "a", "turns": []}]} | scenarios[0].turns: the scenario has no turns
{"repetitions": 0, "scenarios": [{"name": "a", "turns": [{"say": "x"}]}]} | repetitions: must be
{"thresholds": {"passed": 90}, "scenarios": [{"name": "a", "turns": [{"say": "x"}]}]} |
    thresholds.passed: must be a number
{"scenarios": [{"name": "a", "turns": [{"say": "x"}]}, {"name": "a",
    "turns": [{"say": "x"}]}]} | scenarios[1].name: another scenario
{"say": ""} | scenarios[0].turns[0].say: must not be empty
{"say": "x", "calls": [{"tool": "t", "input": {"id": {"$like": 1}}}]} |
    scenarios[0].turns[0].calls[0].input.id: unknown matcher `$like`
{"say": "x", "calls": [{"tool": "t", "or": [{"tool": "u", "input": {"id": {"$any": 1}}}]}]} |
    scenarios[0].turns[0].calls[0].or[0].input.id: `$any` needs
{"say": "x", "calls": [{"tool": "t", "or": [{"tool": "u", "optional": true}]}]} |
    scenarios[0].turns[0].calls[0].or[0]: an alternative cannot have
{"say": "x", "answer": {"matches": "("}} | scenarios[0].turns[0].answer.matches:
{"say": "x", "answer": {"lacks": [""]}} |
    scenarios[0].turns[0].answer.lacks: must not contain empty strings
{"say": "x", "call": []} | unknown field `call`
{"files": {"a/../../b": ""}, "scenarios": [{"name": "a", "turns": [{"say": "x"}]}]} |
    files.a/../../b: must be a relative path
{"files": {"/etc/x": ""}, "scenarios": [{"name": "a", "turns": [{"say": "x"}]}]} |
    files./etc/x: must be a relative path
{"scenarios": [{"name": "a", "fresh_servers": true, "tools": [{"name": "t"}],
    "turns": [{"say": "x"}]}]} | scenarios[0].fresh_servers: declared `tools` replace
{"say": "x", "calls": [{"tool": " "}]} | scenarios[0].turns[0].calls[0].tool: must not be empty
{"say": "x", "forbidden": ["a", " "]} | scenarios[0].turns[0].forbidden[1]: must not be empty
{"say": "x", "forbidden": ["a "]} |
    scenarios[0].turns[0].forbidden[0]: must not start or end with white space
{"say": "x", "forbidden": ["/a"]} |
    scenarios[0].turns[0].forbidden[0]: must be `tool` or `server/tool`
{"say": "x", "forbidden": ["shop/"]} |
    scenarios[0].turns[0].forbidden[0]: must be `tool` or `server/tool`
{"models": ["gpt"], "scenarios": []} | `gpt` is not a valid model
"#;

#[test]
fn invalid_suites_are_refused_with_the_path() {
    for [value, message] in rows(INVALID_SUITES) {
        let mut value: Value = serde_json::from_str(&value).unwrap();
        if value.get("say").is_some() {
            value = json!({"scenarios": [{"name": "a", "turns": [value]}]});
        }
        let error = refused(value);
        assert!(error.starts_with(&message), "{error}");
    }
}

/// Rows with tools, a turn, and the start of the error message after the scenario.
const INVALID_TOOLS: &str = r#"
[{"name": ""}] | {"say": "x"} | tools[0].name: must have 1 to 128
[{"name": "a b"}] | {"say": "x"} | tools[0].name: must have
[{"name": "a"}, {"name": "a"}] | {"say": "x"} | tools[1].name: another tool has this name
[{"name": "a", "input_schema": 5}] | {"say": "x"} |
    tools[0].input_schema: must be the JSON Schema of an object
[{"name": "a", "input_schema": {"type": "string"}}] | {"say": "x"} |
    tools[0].input_schema.type: must be `object`
[{"name": "a", "input_schema": {"properties": ["id"]}}] | {"say": "x"} |
    tools[0].input_schema.properties: must be a map
[{"name": "a", "input_schema": {"properties": {"id": "integer"}}}] | {"say": "x"} |
    tools[0].input_schema.properties.id: must be a JSON Schema
[{"name": "a", "input_schema": {"required": "id"}}] | {"say": "x"} |
    tools[0].input_schema.required: must be a list of names
[{"name": "get"}, {"name": "delete_all"}] | {"say": "x", "calls": [{"tool": "gett"}]} |
    turns[0].calls[0].tool: unknown tool `gett`: the scenario's tools are `delete_all`, `get`
[{"name": "get"}, {"name": "delete_all"}] | {"say": "x", "calls": [{"tool": "get",
    "server": "shop"}]} | turns[0].calls[0].tool: unknown tool `shop/get`
[{"name": "get"}, {"name": "delete_all"}] | {"say": "x", "calls": [{"tool": "fetch",
    "or": [{"tool": "find"}]}]} | turns[0].calls[0].tool: unknown tool `fetch` or `find`
[{"name": "get"}, {"name": "delete_all"}] | {"say": "x", "forbidden": ["get", "delet_*"]} |
    turns[0].forbidden[1]: `delet_*` has no effect
[{"name": "get"}, {"name": "delete_all"}] | {"say": "x", "forbidden": ["scenario__get"]} |
    turns[0].forbidden[0]: `scenario__get` has no effect
"#;

#[test]
fn invalid_declared_tools_are_refused() {
    let declared = |tools: &Value, turn: &Value| json!({"scenarios": [{"name": "a", "tools": tools, "turns": [turn]}]});
    let parsed = |text: &str| serde_json::from_str::<Value>(text).unwrap();
    for [tools, turn, message] in rows(INVALID_TOOLS) {
        let error = refused(declared(&parsed(&tools), &parsed(&turn)));
        let message = format!("scenarios[0].{message}");
        assert!(error.starts_with(&message), "{error}");
    }
    let two = json!([{"name": "get"}, {"name": "delete_all"}]);
    let fine = json!({"say": "x", "calls": [{"tool": "get", "server": "scenario", "or": [{"tool": "search_tools"}]}],
        "forbidden": ["delete_*", "scenario/d*", "*", "read_tool_result"]});
    Suite::parse_suite(declared(&two, &fine)).unwrap();
    // A turn with the scoring of the benchmark may expect a call of an undeclared function.
    let theirs = json!({"say": "x", "calls": [{"tool": "math.gcd"}], "scoring": "bfcl"});
    Suite::parse_suite(declared(&json!([{"name": "math.gcd_2"}]), &theirs)).unwrap();
}

#[test]
fn failed_answer_checks_are_listed() {
    let check = AnswerCheck {
        contains: vec!["42".to_owned(), "Euro".to_owned()],
        contains_any: vec!["a".to_owned(), "b".to_owned()],
        lacks: vec!["sorry".to_owned()],
        matches: Some(r"\d{3}".to_owned()),
        artifact: Some("table".to_owned()),
    };
    assert_eq!(
        check.failed_checks("It has 420 EURO", &["table".to_owned()]),
        Vec::<String>::new()
    );
    assert_eq!(
        check.failed_checks("Sorry.", &[]),
        [
            "the answer does not contain `42`",
            "the answer does not contain `Euro`",
            "the answer contains none of `a`, `b`",
            "the answer contains `sorry`",
            r"the answer does not match `\d{3}`",
            "the answer has no artifact of type `table`",
        ]
    );
}
