use serde_json::json;

use super::*;
use crate::test_table::rows;

fn parameter(value: Value) -> BfclParameter {
    serde_json::from_value(value).unwrap()
}

const ARGUMENTS: &str = r#"
# Texts ignore case, spaces and punctuation, and have one kind of quotation marks.
{"type": "string", "allowed": ["New York, NY"]} | "new-york_ny." | true
{"type": "string", "allowed": ["it's 2^3*4/5"]} | "IT\"S 2345" | true
{"type": "string", "allowed": ["a", "b"]} | "b" | true
{"type": "string", "allowed": ["a"]} | "a!" | false
{"type": "string", "allowed": ["a"]} | ["a"] | false
{"type": "string", "allowed": ["a", ""]} | "" | true
{"type": "any", "allowed": ["5"]} | "5" | true
{"type": "any", "allowed": ["5"]} | 5 | false
# Integers are floats, but floats are not integers.
{"type": "float", "allowed": [5.0]} | 5 | true
{"type": "float", "allowed": [5]} | 5 | true
{"type": "float", "allowed": [0.1]} | "0.1" | false
{"type": "integer", "allowed": [5]} | 5.0 | false
{"type": "integer", "allowed": [5]} | 6 | false
{"type": "integer", "allowed": [5]} | true | false
{"type": "boolean", "allowed": [true]} | true | true
{"type": "boolean", "allowed": [true]} | 1 | false
{"type": "boolean", "allowed": [true]} | "true" | false
# Answers of another type than declared: both types are right, and compared unchanged.
{"type": "integer", "allowed": ["user_id"]} | "user_id" | true
{"type": "integer", "allowed": ["user_id"]} | "User id" | false
{"type": "string", "allowed": [null, ""]} | null | true
{"type": "string", "allowed": ["a", ""]} | null | false
{"type": "string", "allowed": [true]} | true | true
{"type": "string", "allowed": [true]} | "true" | false
# Lists keep their order.
{"type": "array", "items": "string", "allowed": [["Chest", "back"]]} | ["chest", "BACK"] | true
{"type": "array", "items": "string", "allowed": [["a", "b"]]} | ["b", "a"] | false
{"type": "array", "items": "string", "allowed": [["a"]]} | ["a", "a"] | false
{"type": "array", "items": "float", "allowed": [[1.5, 2.0]]} | [1.5, 2.0] | true
# Items are not converted: an integer is not a float.
{"type": "array", "items": "float", "allowed": [[1.5, 2.0]]} | [1.5, 2] | false
{"type": "array", "items": "float", "allowed": [[1, 2]]} | [1, 2] | true
{"type": "array", "items": "integer", "allowed": [[1, 2], [3]]} | [1, "2"] | false
{"type": "tuple", "items": "integer", "allowed": [[1, 2]]} | [1, 2] | true
{"type": "array", "items": "array", "allowed": [[[1, 2], [3]]]} | [[1, 2.0], [3]] | true
# An empty text in place of a list is an empty list, as in Python.
{"type": "array", "items": "integer", "allowed": [[1], ""]} | [] | true
{"type": "array", "items": "string", "allowed": [["z"], "ab"]} | ["a", "b"] | true
{"type": "array", "items": "string", "allowed": [["a"], null]} | ["a"] | false
{"type": "array", "items": "integer", "allowed": []} | [] | false
# Each field of an object has a list of right values.
{"type": "dict", "allowed": [{"a": [1, 2], "b": ["x", ""]}]} | {"a": 2, "b": "X."} | true
{"type": "dict", "allowed": [{"a": [1], "b": ["x", ""]}]} | {"a": 1} | true
{"type": "dict", "allowed": [{"a": [1], "b": ["x"]}]} | {"a": 1} | false
{"type": "dict", "allowed": [{"a": [1]}]} | {"a": 1, "c": 1} | false
{"type": "dict", "allowed": [{"a": [1]}, {"a": [2]}]} | {"a": 2} | true
{"type": "dict", "allowed": ["", {"a": [1]}]} | {"a": 1} | true
{"type": "dict", "allowed": [{"a": [1]}]} | [["a", 1]] | false
{"type": "dict", "allowed": [{"a": [{"b": 1}]}]} | {"a": {"b": 1.0}} | true
{"type": "dict", "allowed": [{"a": "xy"}]} | {"a": "x"} | true
{"type": "dict", "allowed": [{"a": "xy"}]} | {} | true
{"type": "dict", "allowed": [{"a": {"": 1}}]} | {} | true
{"type": "dict", "allowed": [{"a": 1}]} | {} | false
{"type": "dict", "allowed": [[1]]} | {} | false
# Lists of objects have an equal number and order.
{"type": "array", "items": "dict", "allowed": [[{"a": [1]}, {"a": [2]}]]} | [{"a": 1},
    {"a": 2}] | true
{"type": "array", "items": "dict", "allowed": [[{"a": [1]}, {"a": [2]}]]} | [{"a": 2},
    {"a": 1}] | false
{"type": "array", "items": "dict", "allowed": [[{"a": [1]}]]} | [{"a": 1}, {"a": 1}] | false
{"type": "array", "items": "dict", "allowed": [[{"a": [1]}], ""]} | [] | true
{"type": "array", "items": "dict", "allowed": [[{"a": [1]}], ""]} | [1] | false
{"type": "array", "items": "dict", "allowed": [[{"a": [1]}]]} | [1] | false
{"type": "array", "items": "dict", "allowed": [7]} | [{}] | false
# An undeclared parameter.
{"allowed": [1, ""]} | 1 | false
"#;

#[test]
fn arguments_are_checked_as_in_the_benchmark() {
    for [value, argument, expected] in rows(ARGUMENTS) {
        let parameter: BfclParameter = serde_json::from_str(&value).unwrap();
        let argument: Value = serde_json::from_str(&argument).unwrap();
        let found = parameter.matches(Some(&argument));
        assert_eq!(found.to_string(), expected, "{argument} by {value}");
    }
}

#[test]
fn an_empty_text_marks_an_optional_argument() {
    for (value, right) in [
        (json!({"type": "string", "allowed": ["a", ""]}), true),
        (json!({"type": "string", "allowed": ["a"]}), false),
        (
            json!({"type": "string", "allowed": ["a", ""], "required": true}),
            false,
        ),
        (json!({"allowed": [1, ""]}), true),
        (json!({"allowed": [], "required": true}), false),
    ] {
        assert_eq!(parameter(value.clone()).matches(None), right, "{value}");
    }
}

#[test]
fn numbers_are_equal_by_their_value() {
    for (a, b, same) in [
        (json!(1), json!(1.0), true),
        (json!(1), json!(true), true),
        (json!(0.0), json!(false), true),
        (json!(-0.0), json!(0), true),
        (json!(2), json!(true), false),
        (json!(0.5), json!(0.5), true),
        (json!(0.5), json!(0), false),
        // As floating-point numbers, both values would be equal.
        (
            json!(9_007_199_254_740_993_u64),
            json!(9_007_199_254_740_992.0),
            false,
        ),
        (json!(u64::MAX), json!(18_446_744_073_709_551_616.0), false),
        (json!(1e300), json!(1e300), true),
        (json!(1e300), json!(1), false),
        (json!(null), json!(0), false),
        (json!([1, {"a": true}]), json!([true, {"a": 1.0}]), true),
        (json!({"a": 1}), json!({"a": 1, "b": 1}), false),
        (json!("a"), json!("A"), false),
    ] {
        assert_eq!(python_equal(&a, &b), same, "{a} {b}");
        assert_eq!(python_equal(&b, &a), same, "{b} {a}");
    }
}
