use serde_json::json;

use super::*;

fn refused(value: Value) -> String {
    Suite::read(value).unwrap_err().to_string()
}

#[test]
fn invalid_suites_are_refused_with_the_path() {
    let one = |turn: Value| json!({"scenarios": [{"name": "a", "turns": [turn]}]});
    let table = [
        (
            json!({"scenarios": []}),
            "scenarios: the suite has no scenario",
        ),
        (
            json!({"scenarios": [{"name": " ", "turns": []}]}),
            "scenarios[0].name: must not be empty",
        ),
        (
            json!({"scenarios": [{"name": "a", "turns": []}]}),
            "scenarios[0].turns: the scenario has no turn",
        ),
        (
            json!({"repetitions": 0, "scenarios": [{"name": "a", "turns": [{"say": "x"}]}]}),
            "repetitions: must be",
        ),
        (
            json!({"thresholds": {"passed": 90}, "scenarios": [{"name": "a", "turns": [{"say": "x"}]}]}),
            "thresholds.passed: must be a share",
        ),
        (
            json!({"scenarios": [{"name": "a", "turns": [{"say": "x"}]}, {"name": "a", "turns": [{"say": "x"}]}]}),
            "scenarios[1].name: another scenario",
        ),
        (
            one(json!({"say": ""})),
            "scenarios[0].turns[0].say: must not be empty",
        ),
        (
            one(json!({"say": "x", "calls": [{"tool": "t", "input": {"id": {"$like": 1}}}]})),
            "scenarios[0].turns[0].calls[0].input.id: unknown matcher `$like`",
        ),
        (
            one(
                json!({"say": "x", "calls": [{"tool": "t", "or": [{"tool": "u", "input": {"id": {"$any": 1}}}]}]}),
            ),
            "scenarios[0].turns[0].calls[0].or[0].input.id: `$any` needs",
        ),
        (
            one(
                json!({"say": "x", "calls": [{"tool": "t", "or": [{"tool": "u", "optional": true}]}]}),
            ),
            "scenarios[0].turns[0].calls[0].or[0]: an alternative cannot have",
        ),
        (
            one(json!({"say": "x", "answer": {"matches": "("}})),
            "scenarios[0].turns[0].answer.matches:",
        ),
        (
            one(json!({"say": "x", "answer": {"lacks": [""]}})),
            "scenarios[0].turns[0].answer.lacks: a text must not be empty",
        ),
        (one(json!({"say": "x", "call": []})), "unknown field `call`"),
        (
            json!({"files": {"a/../../b": ""}, "scenarios": [{"name": "a", "turns": [{"say": "x"}]}]}),
            "files.a/../../b: must be a relative path",
        ),
        (
            json!({"files": {"/etc/x": ""}, "scenarios": [{"name": "a", "turns": [{"say": "x"}]}]}),
            "files./etc/x: must be a relative path",
        ),
        (
            json!({"scenarios": [{"name": "a", "fresh_servers": true, "tools": [{"name": "t"}], "turns": [{"say": "x"}]}]}),
            "scenarios[0].fresh_servers: declared `tools` replace",
        ),
        (
            one(json!({"say": "x", "calls": [{"tool": " "}]})),
            "scenarios[0].turns[0].calls[0].tool: must not be empty",
        ),
        (
            one(json!({"say": "x", "forbidden": ["a", " "]})),
            "scenarios[0].turns[0].forbidden[1]: must not be empty",
        ),
        (
            one(json!({"say": "x", "forbidden": ["a "]})),
            "scenarios[0].turns[0].forbidden[0]: must not start or end with white space",
        ),
        (
            one(json!({"say": "x", "forbidden": ["/a"]})),
            "scenarios[0].turns[0].forbidden[0]: must be `tool` or `server/tool`",
        ),
        (
            one(json!({"say": "x", "forbidden": ["shop/"]})),
            "scenarios[0].turns[0].forbidden[0]: must be `tool` or `server/tool`",
        ),
        (
            json!({"models": ["gpt"], "scenarios": []}),
            "`gpt` is not a model",
        ),
    ];
    for (value, said) in table {
        let error = refused(value);
        assert!(error.starts_with(said), "{error}");
    }
}

#[test]
fn invalid_declared_tools_are_refused() {
    let declared = |tools: Value, turn: Value| json!({"scenarios": [{"name": "a", "tools": tools, "turns": [turn]}]});
    let said = || json!({"say": "x"});
    let two = || json!([{"name": "get"}, {"name": "delete_all"}]);
    let table = [
        (
            json!([{"name": ""}]),
            said(),
            "tools[0].name: must have 1 to 128",
        ),
        (json!([{"name": "a b"}]), said(), "tools[0].name: must have"),
        (
            json!([{"name": "a"}, {"name": "a"}]),
            said(),
            "tools[1].name: another tool has this name",
        ),
        (
            json!([{"name": "a", "input_schema": 5}]),
            said(),
            "tools[0].input_schema: must be the JSON Schema of an object",
        ),
        (
            json!([{"name": "a", "input_schema": {"type": "string"}}]),
            said(),
            "tools[0].input_schema.type: must be `object`",
        ),
        (
            json!([{"name": "a", "input_schema": {"properties": ["id"]}}]),
            said(),
            "tools[0].input_schema.properties: must be a map",
        ),
        (
            json!([{"name": "a", "input_schema": {"properties": {"id": "integer"}}}]),
            said(),
            "tools[0].input_schema.properties.id: must be a JSON Schema",
        ),
        (
            json!([{"name": "a", "input_schema": {"required": "id"}}]),
            said(),
            "tools[0].input_schema.required: must be a list of names",
        ),
        (
            two(),
            json!({"say": "x", "calls": [{"tool": "gett"}]}),
            "turns[0].calls[0].tool: unknown tool `gett`: the scenario's tools are `delete_all`, `get`",
        ),
        (
            two(),
            json!({"say": "x", "calls": [{"tool": "get", "server": "shop"}]}),
            "turns[0].calls[0].tool: unknown tool `shop/get`",
        ),
        (
            two(),
            json!({"say": "x", "calls": [{"tool": "get", "or": [{"tool": "fetch"}]}]}),
            "turns[0].calls[0].tool: unknown tool `fetch`",
        ),
        (
            two(),
            json!({"say": "x", "forbidden": ["get", "delet_*"]}),
            "turns[0].forbidden[1]: `delet_*` forbids nothing",
        ),
        (
            two(),
            json!({"say": "x", "forbidden": ["scenario__get"]}),
            "turns[0].forbidden[0]: `scenario__get` forbids nothing",
        ),
    ];
    for (tools, turn, said) in table {
        let error = refused(declared(tools, turn));
        assert!(
            error.starts_with(&format!("scenarios[0].{said}")),
            "{error}"
        );
    }
    let fine = json!({"say": "x", "calls": [{"tool": "get", "server": "scenario", "or": [{"tool": "search_tools"}]}],
        "forbidden": ["delete_*", "scenario/d*", "*", "read_tool_result"]});
    Suite::read(declared(two(), fine)).unwrap();
    // The benchmark judges by its own rules.
    let theirs = json!({"say": "x", "calls": [{"tool": "math.gcd"}], "scoring": "bfcl"});
    Suite::read(declared(json!([{"name": "math.gcd_2"}]), theirs)).unwrap();
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
        check.faults("It has 420 EURO", &["table".to_owned()]),
        Vec::<String>::new()
    );
    assert_eq!(
        check.faults("Sorry.", &[]),
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
