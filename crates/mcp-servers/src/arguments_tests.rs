use super::*;
use serde_json::json;

/// All kinds of violations that the bundled tools do not have.
fn schema() -> JsonObject {
    let schema = json!({
        "type": "object",
        "properties": {
            "ratio": {"type": "number", "minimum": 0.5},
            "depth": {"type": "integer", "maximum": 9},
            "path": {"type": "string", "minLength": 1, "description": "A path in the workspace."},
            "code": {"type": "string", "pattern": "^[A-Z]+$"},
            "deep": {"type": "boolean"},
            "tags": {"type": "array", "items": {"type": "string"}},
            "where": {"type": "object"},
            "parts": {"type": "array", "maxItems": 2, "minItems": 1, "items": {
                "type": "object",
                "properties": {"id": {"type": "string"}, "size": {"type": "integer"}},
                "required": ["id"],
                "additionalProperties": false,
            }},
            "login": {"type": "object", "writeOnly": true, "properties": {
                "user": {"type": "string"}, "token": {"type": "string"},
            }},
        },
        "required": ["path"],
    });
    serde_json::from_value(schema).unwrap()
}

fn check(arguments: Value) -> String {
    let schema = schema();
    let arguments = normalize(&schema, serde_json::from_value(arguments).unwrap());
    violations(&validator(&schema).unwrap(), &schema, &arguments).join(" ")
}

#[test]
fn sentences_name_the_argument_and_the_way_out() {
    for (arguments, expected) in [
        (json!({"path": "a", "ratio": 0.75, "depth": 9}), ""),
        (
            json!({}),
            "path is missing. It is: A path in the workspace.",
        ),
        (
            json!({"path": ""}),
            "path is empty. It is: A path in the workspace.",
        ),
        (
            json!({"path": "a", "ratio": 0.1}),
            "ratio is 0.1; it must be 0.5 or more.",
        ),
        (
            json!({"path": "a", "depth": 10}),
            "depth is 10; it must be 9 or less.",
        ),
        (
            json!({"path": "a", "depth": 1.5}),
            "depth must be an integer, not 1.5.",
        ),
        (
            json!({"path": "a", "depth": -1e30}),
            "depth is -1e+30, which is too large for an integer.",
        ),
        (
            json!({"path": "a", "deep": "yes"}),
            "deep must be a boolean, not \"yes\".",
        ),
        (
            json!({"path": "a", "tags": "x"}),
            "tags must be an array, not \"x\".",
        ),
        (
            json!({"path": "a", "where": 1}),
            "where must be an object, not 1.",
        ),
        (
            json!({"path": "a", "tags": [1]}),
            "tags.0 must be a string, not 1.",
        ),
        (
            json!({"path": "a", "parts": [{"size": 2.5}, {"id": "b", "sise": 1}]}),
            "parts.0.size must be an integer, not 2.5. parts.0.id is missing. There is no argument \
             parts.1.sise; did you mean size? The properties of parts.1 are id, size.",
        ),
        (json!({"path": "a", "parts": []}), "parts is an empty list."),
        (
            json!({"path": "a", "parts": [{"id": "a"}, {"id": "b"}, {"id": "c"}]}),
            "parts has 3 items; at most 2 are possible.",
        ),
        (
            json!({"path": "a", "code": "abc"}),
            "code does not fit: \"abc\" does not match \"^[A-Z]+$\".",
        ),
        (
            json!({"path": null, "depth": 10}),
            "path must be a string, not null. depth is 10; it must be 9 or less.",
        ),
    ] {
        assert_eq!(check(arguments.clone()), expected, "{arguments}");
    }
}

#[test]
fn only_whole_numbers_that_fit_become_integers() {
    let schema = schema();
    for (given, expected) in [
        (json!({"depth": 3.0}), json!({"depth": 3})),
        (json!({"depth": -0.0}), json!({"depth": 0})),
        (json!({"depth": 1e30}), json!({"depth": 1e30})),
        (json!({"depth": 3.5}), json!({"depth": 3.5})),
        (json!({"depth": "3"}), json!({"depth": "3"})),
        (json!({"ratio": 3.0}), json!({"ratio": 3.0})),
        (
            json!({"parts": [{"id": "a", "size": 3.0}, {"id": null, "size": null}, null]}),
            json!({"parts": [{"id": "a", "size": 3}, {"id": null}, null]}),
        ),
        (
            json!({"ratio": null, "path": null, "other": null}),
            json!({"path": null, "other": null}),
        ),
    ] {
        let normal = normalize(&schema, serde_json::from_value(given).unwrap());
        assert_eq!(Value::Object(normal), expected);
    }
}

#[test]
fn long_values_are_cut_between_characters() {
    let text = check(json!({"path": "a", "deep": "é".repeat(500)}));
    assert_eq!(
        text,
        format!(
            "deep must be a boolean, not \"{}….",
            "é".repeat(MAX_QUOTED - 1)
        )
    );
}

#[test]
fn unknown_arguments_are_answered_with_the_known_ones() {
    for (properties, expected) in [
        (
            json!({}),
            "There is no argument pth. The tool has no arguments.",
        ),
        (
            json!({"path": {}}),
            "There is no argument pth; did you mean path? The only argument is path.",
        ),
        (
            json!({"limit": {}, "since": {}}),
            "There is no argument pth. The arguments are limit, since.",
        ),
    ] {
        let schema = json!({"properties": properties, "additionalProperties": false});
        let schema: JsonObject = serde_json::from_value(schema).unwrap();
        let given = serde_json::from_value(json!({"pth": "a"})).unwrap();
        let violations = violations(&validator(&schema).unwrap(), &schema, &given);
        assert_eq!(violations, [expected]);
    }
}

#[test]
fn what_is_secret_is_never_quoted() {
    for login in [
        json!("user:hunter2"),
        json!({"user": "a", "token": ["hunter2"]}),
        json!(["hunter2"]),
    ] {
        let text = check(json!({"path": "a", "login": login}));
        assert!(text.starts_with("login"), "{text}");
        assert!(!text.contains("hunter2"), "{text}");
    }
}
