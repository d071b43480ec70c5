//! Union of the `anyOf` or `oneOf` alternatives of a root schema into one object schema.

use std::cell::Cell;

use serde_json::{Value, json};

use super::{
    MAX_ALTERNATIVES, Map, NormalSchema, SchemaMembers, decrement_step_budget, find_value_kinds,
    text,
};
use crate::schema::{
    keywords::{const_or_enum, extend_distinct},
    merge::expand_schema,
};

/// Adds the properties of all alternatives to `root`. Returns whether there are several
/// alternatives: `root` then allows more values than the alternatives do. `depth` is the maximum
/// nesting depth of further alternatives, and `steps` is the number of schemas that may still be
/// examined.
pub(super) fn merge_alternatives(
    normal: &NormalSchema,
    root: &mut Map,
    alternatives: &[Value],
    depth: usize,
    steps: &Cell<usize>,
) -> bool {
    let mut found: Vec<Map> = Vec::new();
    for alternative in alternatives
        .iter()
        .filter_map(Value::as_object)
        .take(MAX_ALTERNATIVES)
    {
        if depth == 0 || !decrement_step_budget(steps) {
            break;
        }
        let mut alternative = expand_schema(normal, alternative.clone()).schema;
        if !find_value_kinds(normal, &alternative, 0, steps).0 {
            continue;
        }
        for keyword in ["anyOf", "oneOf"] {
            if let Some(Value::Array(nested)) = alternative.shift_remove(keyword) {
                merge_alternatives(normal, &mut alternative, &nested, depth - 1, steps);
            }
        }
        found.push(alternative);
    }
    if found.len() > 1 {
        let summaries: Vec<String> = found.iter().map(text::object_summary).collect();
        let summaries = summaries.join(" | ");
        text::append_text(root, &format!("One of these forms: {summaries}."));
    }
    let properties = merge_properties(root, &found);
    if !properties.is_empty() || root.contains_key("properties") {
        root.set("properties", properties);
    }
    let mut required: Vec<&str> = root.required_properties().collect();
    for name in found.first().into_iter().flat_map(Map::required_properties) {
        if found.iter().all(|it| it.is_required(name)) && !required.contains(&name) {
            required.push(name);
        }
    }
    if !required.is_empty() {
        let required = json!(required);
        root.set("required", required);
    }
    if !found.is_empty() && found.iter().all(|it| it.is_false("additionalProperties")) {
        root.set("additionalProperties", false);
    }
    found.len() > 1
}

/// Returns the properties of the root and its alternatives in one map, merged by name.
fn merge_properties(root: &Map, alternatives: &[Map]) -> Map {
    let mut united = root.get_object("properties").cloned().unwrap_or_default();
    let mut found: Vec<(&String, Vec<&Value>)> = Vec::new();
    for (name, schema) in alternatives
        .iter()
        .filter_map(|it| it.get_object("properties"))
        .flatten()
    {
        match found.iter_mut().find(|(known, _)| *known == name) {
            Some((_, schemas)) => schemas.push(schema),
            None => found.push((name, vec![schema])),
        }
    }
    for (name, schemas) in found {
        // If an alternative lacks the property, the schemas of the other alternatives must not be
        // added to the root's own schema of the property.
        let is_partial = schemas.len() < alternatives.len();
        let mut distinct = Vec::new();
        extend_distinct(&mut distinct, schemas);
        let either = union_of_schemas(&distinct);
        let schema = match united.get(name) {
            Some(ours) if is_partial || *ours == either => continue,
            Some(ours) if *ours != json!({}) => json!({"allOf": [ours, either]}),
            _ => either,
        };
        united.insert(name.clone(), schema);
    }
    united
}

/// Returns a schema that allows each value that at least one of `schemas` allows. If the schemas
/// only list values, the result has all values in one `enum`.
fn union_of_schemas(schemas: &[&Value]) -> Value {
    if let [one] = schemas {
        return (*one).clone();
    }
    let kind = schemas.first().and_then(|it| it.get("type"));
    let listed = schemas.iter().map(|schema| {
        let is_listed = |keyword: &String| matches!(keyword.as_str(), "const" | "enum" | "type");
        let schema = schema.as_object().filter(|it| it.keys().all(is_listed))?;
        const_or_enum(schema).filter(|values| !values.is_empty() && schema.get("type") == kind)
    });
    let Some(listed) = listed.collect::<Option<Vec<_>>>() else {
        return json!({ "anyOf": schemas });
    };
    let mut values: Vec<&Value> = Vec::new();
    extend_distinct(&mut values, listed.into_iter().flatten());
    let mut out = Map::new();
    out.extend(kind.map(|kind| ("type".to_owned(), kind.clone())));
    out.set("enum", json!(values));
    Value::Object(out)
}
