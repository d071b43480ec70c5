//! Intersection of schemas, with which `$ref` targets and `allOf` members are merged.

use std::collections::VecDeque;

use serde_json::{Value, json};

use super::{
    keywords::{
        Map, SchemaMembers, extend_distinct, is_annotation, rejects_all, type_keyword_value,
        type_names,
    },
    normalize::NormalSchema,
};

/// Maximum number of schemas that are merged into one. The others are not merged, but described as
/// text.
const MAX_PARTS: usize = 64;

/// A schema whose `$ref` target and `allOf` members are merged into it.
#[derive(Debug, Default)]
pub(super) struct ExpandedSchema {
    pub(super) schema: Map,
    /// Values of the `$ref` keywords whose targets were merged into the schema.
    pub(super) references: Vec<String>,
    /// Keywords whose values could not be merged. They become text in the description.
    pub(super) conflicts: Vec<(String, Value)>,
    /// Whether no value is valid against all merged schemas.
    pub(super) rejects_all: bool,
    /// Whether the merge ignored `additionalProperties` of one schema that restricts properties of
    /// another one. Authors who combine schemas expect that all properties are allowed.
    pub(super) is_opened: bool,
}

/// Merges the `$ref` target and the `allOf` members of a schema into it.
pub(super) fn expand_schema(normal: &NormalSchema, schema: Map) -> ExpandedSchema {
    let mut expanded = ExpandedSchema::default();
    if !schema.has_any_keyword(&["$ref", "allOf"]) {
        expanded.rejects_all = rejects_all(&schema);
        expanded.schema = schema;
        return expanded;
    }
    let mut pending = VecDeque::from([schema]);
    let mut parts = 0;
    while let Some(mut part) = pending.pop_front() {
        parts += 1;
        if parts > MAX_PARTS {
            pending.push_front(part);
            let members = pending.into_iter().map(Value::Object).collect();
            expanded.conflicts.push(("allOf".to_owned(), members));
            break;
        }
        let reference = part.shift_remove("$ref");
        let members = part.shift_remove("allOf");
        intersect(&mut expanded, &part);
        if let Some(Value::Array(members)) = members {
            for member in members.into_iter().rev() {
                if let Value::Object(member) = member {
                    pending.push_front(member);
                }
            }
        }
        // Each target is merged only once, because a cycle of references would otherwise never end.
        if let Some(Value::String(reference)) = reference
            && !expanded.references.contains(&reference)
        {
            if let Some(target) = normal.find_def(&reference) {
                pending.push_front(target.clone());
            }
            expanded.references.push(reference);
        }
    }
    expanded
}

/// Intersects two schemas: a value must be valid against both.
pub(super) fn intersect_schemas(one: Map, other: &Map) -> ExpandedSchema {
    let mut both = ExpandedSchema {
        schema: one,
        ..ExpandedSchema::default()
    };
    both.rejects_all = rejects_all(&both.schema);
    intersect(&mut both, other);
    both
}

/// Intersects an expanded schema with `other` in place. If both have the same annotation, such as
/// `title`, the annotation of `expanded` stays. At most one of the two schemas has a `$ref`.
fn intersect(expanded: &mut ExpandedSchema, other: &Map) {
    expanded.rejects_all |= rejects_all(&expanded.schema) || rejects_all(other);
    let schema = &mut expanded.schema;
    for (keyword, theirs) in other {
        if matches!(keyword.as_str(), "properties" | "additionalProperties") {
            continue;
        }
        let Some(ours) = schema.get(keyword) else {
            schema.insert(keyword.clone(), theirs.clone());
            continue;
        };
        if ours == theirs || is_annotation(keyword) {
            continue;
        }
        match intersect_values(keyword, ours, theirs) {
            Intersection::Value(value) => {
                schema.insert(keyword.clone(), value);
            }
            Intersection::Empty => expanded.rejects_all = true,
            Intersection::Conflict => {
                expanded.conflicts.push((keyword.clone(), theirs.clone()));
            }
        }
    }
    expanded.is_opened |= intersect_properties(schema, other);
    if let Some(constant) = schema.get("const")
        && schema.contains_key("enum")
    {
        expanded.rejects_all |= !schema.get_array("enum").contains(constant);
        schema.shift_remove("enum");
    }
}

/// Result of intersecting two values of one keyword, such as of `minLength`.
enum Intersection {
    Value(Value),
    /// No value is valid against both values of the keyword.
    Empty,
    /// The intersection cannot be expressed as one value of the keyword.
    Conflict,
}

fn intersect_values(keyword: &str, ours: &Value, theirs: &Value) -> Intersection {
    let array = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let is_greater = theirs.as_f64() > ours.as_f64();
    let value = match keyword {
        "type" => return intersect_types(&type_names(ours), &type_names(theirs)),
        "required" => {
            let mut names = array(ours);
            extend_distinct(&mut names, array(theirs));
            Value::Array(names)
        }
        "enum" => {
            let (mut values, theirs) = (array(ours), array(theirs));
            values.retain(|value| theirs.contains(value));
            if values.is_empty() {
                return Intersection::Empty;
            }
            Value::Array(values)
        }
        "const" => return Intersection::Empty,
        "minimum" | "exclusiveMinimum" | "minLength" | "minItems" | "minProperties" => {
            if is_greater { theirs } else { ours }.clone()
        }
        "maximum" | "exclusiveMaximum" | "maxLength" | "maxItems" | "maxProperties" => {
            if is_greater { ours } else { theirs }.clone()
        }
        "items" if *ours == false || *theirs == false => json!(false),
        "items" => join_with_all_of(ours, theirs),
        _ => return Intersection::Conflict,
    };
    Intersection::Value(value)
}

fn intersect_types(ours: &[&str], theirs: &[&str]) -> Intersection {
    let mut common: Vec<&str> = Vec::new();
    for name in ours {
        let narrower = match *name {
            name if theirs.contains(&name) => Some(name),
            "integer" if theirs.contains(&"number") => Some("integer"),
            "number" if theirs.contains(&"integer") => Some("integer"),
            _ => None,
        };
        extend_distinct(&mut common, narrower);
    }
    if common.is_empty() {
        Intersection::Empty
    } else {
        Intersection::Value(type_keyword_value(&common))
    }
}

/// Returns a schema for values that are valid against both `one` and `other`. If both are equal or
/// one of them is `{}`, returns the other one. Otherwise returns an `allOf` of both, whose members
/// are merged when that schema is converted.
fn join_with_all_of(one: &Value, other: &Value) -> Value {
    let is_any = |it: &Value| it.as_object().is_some_and(Map::is_empty);
    if one == other || is_any(other) {
        one.clone()
    } else if is_any(one) {
        other.clone()
    } else {
        json!({"allOf": [one, other]})
    }
}

/// Intersects `properties` and `additionalProperties` of two schemas. Returns whether the function
/// ignored `additionalProperties` of one schema that restricts properties of the other one.
fn intersect_properties(ours: &mut Map, theirs: &Map) -> bool {
    let restricts = |schema: &Map, other: &Map| {
        let named = schema.get_object("properties");
        let is_additional = |name: &String| named.is_none_or(|it| !it.contains_key(name));
        schema
            .get("additionalProperties")
            .is_some_and(|it| *it != true)
            && other
                .get_object("properties")
                .is_some_and(|it| it.keys().any(is_additional))
    };
    let is_opened = restricts(ours, theirs) || restricts(theirs, ours);
    if let Some(theirs) = theirs.get_object("properties") {
        let properties = ours.entry("properties").or_insert_with(|| json!({}));
        for (name, schema) in theirs {
            if let Value::Object(properties) = properties {
                let property = properties.entry(name).or_insert_with(|| json!({}));
                *property = join_with_all_of(property, schema);
            }
        }
    }
    let additional = match (
        ours.get("additionalProperties"),
        theirs.get("additionalProperties"),
    ) {
        (Some(Value::Bool(false)), _) | (_, Some(Value::Bool(false))) => json!(false),
        (Some(one @ Value::Object(_)), Some(other @ Value::Object(_))) => {
            join_with_all_of(one, other)
        }
        (Some(one @ Value::Object(_)), _) | (_, Some(one)) | (Some(one), None) => one.clone(),
        (None, None) => return is_opened,
    };
    ours.set("additionalProperties", additional);
    is_opened
}
