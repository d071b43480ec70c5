use serde_json::json;

use super::*;

fn refused(value: Value) -> String {
    Suite::read(value).unwrap_err().to_string()
}

#[test]
fn what_cannot_be_meant_is_refused_by_its_place() {
    let one = |turn: Value| json!({"scenarios": [{"name": "a", "turns": [turn]}]});
    let table = [
        (json!({"scenarios": []}), "scenarios: there is none"),
        (
            json!({"scenarios": [{"name": " ", "turns": []}]}),
            "scenarios[0].name: is empty",
        ),
        (
            json!({"scenarios": [{"name": "a", "turns": []}]}),
            "scenarios[0].turns: there is none",
        ),
        (
            json!({"repetitions": 0, "scenarios": [{"name": "a", "turns": [{"say": "x"}]}]}),
            "repetitions: must be",
        ),
        (
            json!({"thresholds": {"passed": 90}, "scenarios": [{"name": "a", "turns": [{"say": "x"}]}]}),
            "thresholds.passed: is a share",
        ),
        (
            json!({"scenarios": [{"name": "a", "turns": [{"say": "x"}]}, {"name": "a", "turns": [{"say": "x"}]}]}),
            "scenarios[1].name: another scenario",
        ),
        (
            one(json!({"say": ""})),
            "scenarios[0].turns[0].say: is empty",
        ),
        (
            one(json!({"say": "x", "calls": [{"tool": "t", "input": {"id": {"$like": 1}}}]})),
            "scenarios[0].turns[0].calls[0].input.id: `$like` is no matcher",
        ),
        (
            one(
                json!({"say": "x", "calls": [{"tool": "t", "or": [{"tool": "u", "input": {"id": {"$any": 1}}}]}]}),
            ),
            "scenarios[0].turns[0].calls[0].or[0].input.id: `$any` takes",
        ),
        (
            one(
                json!({"say": "x", "calls": [{"tool": "t", "or": [{"tool": "u", "optional": true}]}]}),
            ),
            "scenarios[0].turns[0].calls[0].or[0]: neither `optional` nor `or`",
        ),
        (
            one(json!({"say": "x", "answer": {"matches": "("}})),
            "scenarios[0].turns[0].answer.matches:",
        ),
        (
            one(json!({"say": "x", "answer": {"lacks": [""]}})),
            "scenarios[0].turns[0].answer.lacks: an empty text",
        ),
        (one(json!({"say": "x", "call": []})), "unknown field `call`"),
        (
            json!({"files": {"a/../../b": ""}, "scenarios": [{"name": "a", "turns": [{"say": "x"}]}]}),
            "files.a/../../b: is a path below",
        ),
        (
            json!({"files": {"/etc/x": ""}, "scenarios": [{"name": "a", "turns": [{"say": "x"}]}]}),
            "files./etc/x: is a path below",
        ),
        (
            json!({"scenarios": [{"name": "a", "fresh_servers": true, "tools": [{"name": "t"}], "turns": [{"say": "x"}]}]}),
            "scenarios[0].fresh_servers: tools that the scenario declares",
        ),
        (
            one(json!({"say": "x", "calls": [{"tool": " "}]})),
            "scenarios[0].turns[0].calls[0].tool: is empty",
        ),
        (
            one(json!({"say": "x", "forbidden": ["a", " "]})),
            "scenarios[0].turns[0].forbidden[1]: is empty",
        ),
        (
            one(json!({"say": "x", "forbidden": ["a "]})),
            "scenarios[0].turns[0].forbidden[0]: begins or ends with white space",
        ),
        (
            one(json!({"say": "x", "forbidden": ["/a"]})),
            "scenarios[0].turns[0].forbidden[0]: is `tool` or `server/tool`",
        ),
        (
            one(json!({"say": "x", "forbidden": ["shop/"]})),
            "scenarios[0].turns[0].forbidden[0]: is `tool` or `server/tool`",
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
fn declared_tools_must_be_such_as_a_model_can_be_given() {
    let declared = |tools: Value, turn: Value| json!({"scenarios": [{"name": "a", "tools": tools, "turns": [turn]}]});
    let said = || json!({"say": "x"});
    let two = || json!([{"name": "get"}, {"name": "delete_all"}]);
    let table = [
        (json!([{"name": ""}]), said(), "tools[0].name: is up to 128"),
        (json!([{"name": "a b"}]), said(), "tools[0].name: is up to"),
        (
            json!([{"name": "a"}, {"name": "a"}]),
            said(),
            "tools[1].name: another tool has this name",
        ),
        (
            json!([{"name": "a", "input_schema": 5}]),
            said(),
            "tools[0].input_schema: is a JSON Schema of an object",
        ),
        (
            json!([{"name": "a", "input_schema": {"type": "string"}}]),
            said(),
            "tools[0].input_schema.type: is `object`",
        ),
        (
            json!([{"name": "a", "input_schema": {"properties": ["id"]}}]),
            said(),
            "tools[0].input_schema.properties: is a map",
        ),
        (
            json!([{"name": "a", "input_schema": {"properties": {"id": "integer"}}}]),
            said(),
            "tools[0].input_schema.properties.id: is a JSON Schema",
        ),
        (
            json!([{"name": "a", "input_schema": {"required": "id"}}]),
            said(),
            "tools[0].input_schema.required: is a list of names",
        ),
        (
            two(),
            json!({"say": "x", "calls": [{"tool": "gett"}]}),
            "turns[0].calls[0].tool: there is no `gett`: the scenario's tools are `delete_all`, `get`",
        ),
        (
            two(),
            json!({"say": "x", "calls": [{"tool": "get", "server": "shop"}]}),
            "turns[0].calls[0].tool: there is no `shop/get`",
        ),
        (
            two(),
            json!({"say": "x", "calls": [{"tool": "get", "or": [{"tool": "fetch"}]}]}),
            "turns[0].calls[0].tool: there is no `fetch`",
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
fn an_answer_is_told_what_is_wrong_with_it() {
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
            "`42` is not in the answer",
            "`Euro` is not in the answer",
            "none of `a`, `b` is in the answer",
            "`sorry` is in the answer",
            r"`\d{3}` finds nothing in the answer",
            "the answer has no artifact of type `table`",
        ]
    );
}
