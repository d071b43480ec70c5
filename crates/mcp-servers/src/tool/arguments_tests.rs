use super::*;
use serde_json::json;

/// Returns a schema with kinds of violations that the bundled tools do not have.
fn schema() -> Value {
    json!({
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
    })
}

fn check(arguments: Value) -> String {
    let schema = schema();
    let arguments = normalize_arguments(&schema, serde_json::from_value(arguments).unwrap());
    list_violations(&compile_validator(&schema).unwrap(), &schema, &arguments).join(" ")
}

#[test]
fn messages_name_the_argument_and_a_correct_value() {
    for (arguments, expected) in [
        (json!({"path": "a", "ratio": 0.75, "depth": 9}), ""),
        (
            json!({}),
            "path is missing. It is: A path in the workspace.",
        ),
        (
            json!({"path": "a", "ratio": 0.1}),
            "ratio is invalid: 0.1 is less than the minimum of 0.5.",
        ),
        (
            json!({"path": "a", "parts": [{"size": 2.5}, {"id": "b", "sise": 1}]}),
            "parts.0.size is invalid: 2.5 is not of type \"integer\". parts.0.id is missing. \
             Unknown argument parts.1.sise; did you mean size? The properties of parts.1 are id, \
             size.",
        ),
        (
            json!({"path": null, "depth": 10}),
            "path is invalid: null is not of type \"string\". depth is invalid: 10 is greater than \
             the maximum of 9.",
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
        let normal = normalize_arguments(&schema, serde_json::from_value(given).unwrap());
        assert_eq!(Value::Object(normal), expected);
    }
}

#[test]
fn long_values_are_not_repeated() {
    let text = check(json!({"path": "a", "deep": "é".repeat(500)}));
    assert_eq!(text, "deep is invalid: value is not of type \"boolean\".");
}

#[test]
fn messages_about_unknown_arguments_list_the_known_ones() {
    for (properties, expected) in [
        (
            json!({}),
            "Unknown argument pth. The tool has no arguments.",
        ),
        (
            json!({"path": {}}),
            "Unknown argument pth; did you mean path? The only argument is path.",
        ),
        (
            json!({"limit": {}, "since": {}}),
            "Unknown argument pth. The arguments are limit, since.",
        ),
    ] {
        let schema = json!({"properties": properties, "additionalProperties": false});
        let given = serde_json::from_value(json!({"pth": "a"})).unwrap();
        let violations = list_violations(&compile_validator(&schema).unwrap(), &schema, &given);
        assert_eq!(violations, [expected]);
    }
}

#[test]
fn secrets_are_not_repeated() {
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
