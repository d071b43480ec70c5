//! Tests of the work budget.

use serde_json::json;

use super::*;

/// Returns the restored answer and the remaining work.
fn restored(schema: &Value, answer: &Value) -> (Value, usize) {
    let normal = normalise(schema, &mut Vec::new());
    let work = Restorer {
        matcher: Matcher::new(&normal, answer),
        removes_nulls: true,
    };
    let restored = work.value(&normal.root, answer.clone(), 0);
    (restored, work.matcher.work_left())
}

/// Returns a schema of nested objects and an answer. Each level has an alternative that fails only
/// after all nested ones were tried, one that matches, and `width` more properties.
fn alternatives(levels: usize, width: usize) -> (Value, Value) {
    let further: Map = (0..width)
        .map(|number| (format!("p{number}"), json!({"type": "string"})))
        .collect();
    let mut defs = Map::new();
    let mut answer = json!({"end": null});
    for level in 0..levels {
        let inner = json!({"in": {"$ref": format!("#/$defs/a{}", level + 1)}});
        let arms = json!([{"properties": inner, "required": ["absent"]}, {"properties": inner}]);
        let schema = json!({"type": "object", "properties": further, "anyOf": arms});
        defs.insert(format!("a{level}"), schema);
        answer = json!({ "in": answer });
    }
    let end = json!({"type": "object", "properties": {"end": {"type": "string"}}});
    defs.insert(format!("a{levels}"), end);
    (json!({"$ref": "#/$defs/a0", "$defs": defs}), answer)
}

#[test]
fn nested_alternatives_are_tried_within_the_work_budget() {
    let (schema, answer) = alternatives(3, 40);
    let (few, left) = restored(&schema, &answer);
    assert!(left > 0);
    assert_eq!(few, json!({"in": {"in": {"in": {}}}}));
    // Some thousand tries, each of which is large.
    let (schema, answer) = alternatives(12, 400);
    let (many, left) = restored(&schema, &answer);
    assert_eq!(left, 0);
    assert_eq!(many, answer, "as it was");
}

#[test]
fn text_costs_work() {
    let (schema, _) = alternatives(1, 0);
    let text = "x".repeat(320_000);
    let answer = json!({"in": {"end": text}});
    let (unchanged, left) = restored(&schema, &answer);
    assert_eq!(unchanged, answer);
    let allowed = Matcher::new(&normalise(&schema, &mut Vec::new()), &answer).work_left();
    assert!(allowed - left > 10_000, "{allowed} {left}");
}

#[test]
fn a_large_answer_for_a_large_schema_is_restored_to_its_end() {
    let properties: Map = (0..5_000)
        .map(|number| (format!("p{number}"), json!({"type": "string"})))
        .collect();
    let item = json!({"type": "object", "properties": properties});
    let schema = json!({
        "type": "object",
        "properties": {"a": {"type": "array", "items": {"$ref": "#/$defs/item"}}},
        "$defs": {"item": item},
    });
    let items: Vec<Value> = (0..100)
        .map(|number| json!({"p7": null, "p9": "9", "n": number}))
        .collect();
    let unchanged: Vec<Value> = (0..100)
        .map(|number| json!({"p9": "9", "n": number}))
        .collect();
    let (whole, left) = restored(&schema, &json!({ "a": items }));
    assert_eq!(whole, json!({ "a": unchanged }));
    assert!(left > 0);
}
