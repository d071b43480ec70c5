use serde_json::json;

use super::*;

fn parameter(value: Value) -> BfclParameter {
    serde_json::from_value(value).unwrap()
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table")]
fn arguments_are_checked_as_in_the_benchmark() {
    let string = |allowed: Value| json!({"type": "string", "allowed": allowed});
    let integer = |allowed: Value| json!({"type": "integer", "allowed": allowed});
    let float = |allowed: Value| json!({"type": "float", "allowed": allowed});
    let array =
        |items: &str, allowed: Value| json!({"type": "array", "items": items, "allowed": allowed});
    let dict = |allowed: Value| json!({"type": "dict", "allowed": allowed});
    let table = [
        // Texts: without spaces and punctuation, upper and lower case alike, one kind of quotation mark.
        (string(json!(["New York, NY"])), json!("new-york_ny."), true),
        (string(json!(["it's 2^3*4/5"])), json!("IT\"S 2345"), true),
        (string(json!(["a", "b"])), json!("b"), true),
        (string(json!(["a"])), json!("a!"), false),
        (string(json!(["a"])), json!(["a"]), false),
        (string(json!(["a", ""])), json!(""), true),
        (json!({"type": "any", "allowed": ["5"]}), json!("5"), true),
        (json!({"type": "any", "allowed": ["5"]}), json!(5), false),
        // Whole numbers are taken for fractions, but not the other way.
        (float(json!([5.0])), json!(5), true),
        (float(json!([5])), json!(5), true),
        (float(json!([0.1])), json!("0.1"), false),
        (integer(json!([5])), json!(5.0), false),
        (integer(json!([5])), json!(6), false),
        (integer(json!([5])), json!(true), false),
        (
            json!({"type": "boolean", "allowed": [true]}),
            json!(true),
            true,
        ),
        (
            json!({"type": "boolean", "allowed": [true]}),
            json!(1),
            false,
        ),
        (
            json!({"type": "boolean", "allowed": [true]}),
            json!("true"),
            false,
        ),
        // The answers are of another type than declared: both types, compared as they are.
        (integer(json!(["user_id"])), json!("user_id"), true),
        (integer(json!(["user_id"])), json!("User id"), false),
        (string(json!([null, ""])), Value::Null, true),
        (string(json!(["a", ""])), Value::Null, false),
        (string(json!([true])), json!(true), true),
        (string(json!([true])), json!("true"), false),
        // Lists: in their order; texts in them as texts.
        (
            array("string", json!([["Chest", "back"]])),
            json!(["chest", "BACK"]),
            true,
        ),
        (
            array("string", json!([["a", "b"]])),
            json!(["b", "a"]),
            false,
        ),
        (array("string", json!([["a"]])), json!(["a", "a"]), false),
        (array("float", json!([[1.5, 2.0]])), json!([1.5, 2.0]), true),
        // Items are not made fractions of: a whole one is no `float`.
        (array("float", json!([[1.5, 2.0]])), json!([1.5, 2]), false),
        (array("float", json!([[1, 2]])), json!([1, 2]), true),
        (
            array("integer", json!([[1, 2], [3]])),
            json!([1, "2"]),
            false,
        ),
        (
            json!({"type": "tuple", "items": "integer", "allowed": [[1, 2]]}),
            json!([1, 2]),
            true,
        ),
        (
            array("array", json!([[[1, 2], [3]]])),
            json!([[1, 2.0], [3]]),
            true,
        ),
        // An empty text in place of a list is an empty list to Python.
        (array("integer", json!([[1], ""])), json!([]), true),
        (
            array("string", json!([["z"], "ab"])),
            json!(["a", "b"]),
            true,
        ),
        (array("string", json!([["a"], null])), json!(["a"]), false),
        (array("integer", json!([])), json!([]), false),
        // Objects: each field by its own list.
        (
            dict(json!([{"a": [1, 2], "b": ["x", ""]}])),
            json!({"a": 2, "b": "X."}),
            true,
        ),
        (
            dict(json!([{"a": [1], "b": ["x", ""]}])),
            json!({"a": 1}),
            true,
        ),
        (
            dict(json!([{"a": [1], "b": ["x"]}])),
            json!({"a": 1}),
            false,
        ),
        (dict(json!([{"a": [1]}])), json!({"a": 1, "c": 1}), false),
        (dict(json!([{"a": [1]}, {"a": [2]}])), json!({"a": 2}), true),
        (dict(json!(["", {"a": [1]}])), json!({"a": 1}), true),
        (dict(json!([{"a": [1]}])), json!([["a", 1]]), false),
        (
            dict(json!([{"a": [{"b": 1}]}])),
            json!({"a": {"b": 1.0}}),
            true,
        ),
        (dict(json!([{"a": "xy"}])), json!({"a": "x"}), true),
        (dict(json!([{"a": "xy"}])), json!({}), true),
        (dict(json!([{"a": {"": 1}}])), json!({}), true),
        (dict(json!([{"a": 1}])), json!({}), false),
        (dict(json!([[1]])), json!({}), false),
        // Lists of objects: as many, in their order.
        (
            array("dict", json!([[{"a": [1]}, {"a": [2]}]])),
            json!([{"a": 1}, {"a": 2}]),
            true,
        ),
        (
            array("dict", json!([[{"a": [1]}, {"a": [2]}]])),
            json!([{"a": 2}, {"a": 1}]),
            false,
        ),
        (
            array("dict", json!([[{"a": [1]}]])),
            json!([{"a": 1}, {"a": 1}]),
            false,
        ),
        (array("dict", json!([[{"a": [1]}], ""])), json!([]), true),
        (array("dict", json!([[{"a": [1]}], ""])), json!([1]), false),
        (array("dict", json!([[{"a": [1]}]])), json!([1]), false),
        (array("dict", json!([7])), json!([{}]), false),
        // What the function does not declare may not be there.
        (json!({"allowed": [1, ""]}), json!(1), false),
    ];
    for (value, argument, right) in table {
        let found = parameter(value.clone()).matches(Some(&argument));
        assert_eq!(found, right, "{argument} by {value}");
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
        // As a fraction both would be 9007199254740992.
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
        assert_eq!(equal(&a, &b), same, "{a} {b}");
        assert_eq!(equal(&b, &a), same, "{b} {a}");
    }
}
