//! Schemas of tools in prompts, and the schema that constrains an answer to a call.

use serde_json::{Map, Value, json};
use switchboard_domain::ToolDefinition;

/// Schema keywords that are removed from prompts, because they have no meaning for a model.
const NOISE: &[&str] = &["$schema", "$id", "$comment", "title"];
/// Schema keywords whose value is a map from names to schemas, such as `properties`.
const MAPS: &[&str] = &[
    "properties",
    "patternProperties",
    "dependentSchemas",
    "$defs",
    "definitions",
];
/// Schema keywords whose value is data, not a schema.
const DATA: &[&str] = &["enum", "const", "default", "examples", "required"];

/// Returns a schema without `$schema`, `$id`, `$comment`, `title` and `additionalProperties:
/// false`, which have no meaning for a model.
pub(super) fn compact_schema(schema: &Value) -> Value {
    let mut schema = schema.clone();
    visit_schemas(&mut schema, &mut |map| {
        map.retain(|key, value| {
            let is_noise = NOISE.contains(&key.as_str()) && value.is_string();
            let is_closed = key == "additionalProperties" && *value == Value::Bool(false);
            !is_noise && !is_closed
        });
    });
    schema
}

/// Returns a schema for an answer that must be a call of one of `tools`. If `answer` is a schema,
/// an answer that matches it is valid too.
///
/// A schema with references to its own parts moves to `$defs`, because a reference such as `#/…`
/// starts at the root of the whole schema.
pub(super) fn call_schema(tools: &[&ToolDefinition], answer: Option<&Value>) -> Value {
    let mut definitions = Map::new();
    let mut alternatives: Vec<Value> = tools
        .iter()
        .enumerate()
        .map(|(at, tool)| {
            let arguments = match &tool.input_schema {
                schema @ Value::Object(map) if !map.is_empty() => schema.clone(),
                _ => json!({"type": "object"}),
            };
            let arguments = embed_schema(arguments, &format!("tool_{at}"), &mut definitions);
            json!({
                "type": "object",
                "properties": {
                    "name": {"type": "string", "enum": [tool.name]},
                    "arguments": arguments,
                },
                "required": ["name", "arguments"],
                "additionalProperties": false,
            })
        })
        .collect();
    if let Some(answer) = answer {
        alternatives.push(embed_schema(answer.clone(), "answer", &mut definitions));
    }
    let mut schema = match alternatives.len() {
        1 => alternatives.swap_remove(0),
        _ => json!({"anyOf": alternatives}),
    };
    if !definitions.is_empty()
        && let Value::Object(map) = &mut schema
    {
        map.insert("$defs".to_owned(), Value::Object(definitions));
    }
    schema
}

/// Prepares a schema for use inside another one. A schema with references to its own parts moves to
/// `definitions` under `name`, and the result is a `$ref` to it.
fn embed_schema(mut schema: Value, name: &str, definitions: &mut Map<String, Value>) -> Value {
    let root = format!("#/$defs/{name}");
    let mut refers = false;
    visit_schemas(&mut schema, &mut |map| {
        // `$schema` and `$id` are removed, because they would change the base of references.
        map.retain(|key, value| !(matches!(&**key, "$schema" | "$id") && value.is_string()));
        if let Some(Value::String(target)) = map.get_mut("$ref")
            && let Some(rest) = target.strip_prefix('#')
            && (rest.is_empty() || rest.starts_with('/'))
        {
            refers = true;
            *target = format!("{root}{rest}");
        }
    });
    if !refers {
        return schema;
    }
    definitions.insert(name.to_owned(), schema);
    json!({"$ref": root})
}

/// Calls `change` with a schema and every schema in it, the outer one first.
fn visit_schemas(schema: &mut Value, change: &mut impl FnMut(&mut Map<String, Value>)) {
    // A loop is used, because recursion into a server's deep schema could overflow the stack.
    let mut open = vec![schema];
    while let Some(schema) = open.pop() {
        match schema {
            Value::Array(schemas) => open.extend(schemas),
            Value::Object(map) => {
                change(map);
                for (key, value) in map {
                    if DATA.contains(&key.as_str()) {
                        continue;
                    }
                    match (MAPS.contains(&key.as_str()), value) {
                        (true, Value::Object(named)) => open.extend(named.values_mut()),
                        (_, value) => open.push(value),
                    }
                }
            }
            _ => {}
        }
    }
}
