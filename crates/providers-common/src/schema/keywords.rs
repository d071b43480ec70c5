//! The keywords of JSON Schema draft 2020-12, and access to the members of a schema.

use serde_json::{Value, json};

/// A JSON object, such as a schema.
pub(super) type Map = serde_json::Map<String, Value>;

/// Type names of JSON Schema.
pub(super) const TYPES: [&str; 7] = [
    "object", "array", "string", "integer", "number", "boolean", "null",
];

/// Form that the value of a keyword must have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Schema,
    SchemaOrFlag,
    Schemas,
    NamedSchemas,
    /// An object of lists of names.
    NamedNames,
    Number,
    /// A number above zero, such as the value of `multipleOf`.
    Divisor,
    Count,
    Text,
    Flag,
    List,
    Any,
}

/// Returns the form that the value of a keyword must have, and the types that the keyword
/// constrains. Without types, the keyword applies to values of every type.
fn rule(keyword: &str) -> (Form, &'static [&'static str]) {
    let object: &[&str] = &["object"];
    let array: &[&str] = &["array"];
    let string: &[&str] = &["string"];
    let number: &[&str] = &["number", "integer"];
    match keyword {
        "properties" | "patternProperties" | "dependentSchemas" => (Form::NamedSchemas, object),
        "additionalProperties" | "unevaluatedProperties" => (Form::SchemaOrFlag, object),
        "propertyNames" => (Form::Schema, object),
        "required" => (Form::List, object),
        "minProperties" | "maxProperties" => (Form::Count, object),
        "dependentRequired" | "dependencies" => (Form::NamedNames, object),
        "items" | "unevaluatedItems" => (Form::SchemaOrFlag, array),
        "prefixItems" => (Form::Schemas, array),
        "contains" => (Form::Schema, array),
        "minItems" | "maxItems" | "minContains" | "maxContains" => (Form::Count, array),
        "uniqueItems" => (Form::Flag, array),
        "minLength" | "maxLength" => (Form::Count, string),
        "pattern" | "contentEncoding" | "contentMediaType" => (Form::Text, string),
        "contentSchema" => (Form::Schema, string),
        "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" => (Form::Number, number),
        "multipleOf" => (Form::Divisor, number),
        "not" | "if" | "then" | "else" => (Form::Schema, &[]),
        "anyOf" | "oneOf" | "allOf" => (Form::Schemas, &[]),
        "format" | "title" | "description" | "$ref" => (Form::Text, &[]),
        "deprecated" | "readOnly" | "writeOnly" => (Form::Flag, &[]),
        "enum" | "examples" => (Form::List, &[]),
        _ => (Form::Any, &[]),
    }
}

pub(super) fn form(keyword: &str) -> Form {
    rule(keyword).0
}

pub(super) fn constrained_types(keyword: &str) -> &'static [&'static str] {
    rule(keyword).1
}

/// Returns whether a keyword constrains only types that are not among `types`.
pub(super) fn is_foreign(keyword: &str, types: &[&str]) -> bool {
    let constrained = constrained_types(keyword);
    !types.is_empty()
        && !constrained.is_empty()
        && !constrained.iter().any(|name| types.contains(name))
}

/// Returns whether a keyword is an annotation, which does not constrain values.
pub(super) fn is_annotation(keyword: &str) -> bool {
    matches!(
        keyword,
        "title"
            | "description"
            | "default"
            | "examples"
            | "example"
            | "deprecated"
            | "readOnly"
            | "writeOnly"
    ) || keyword.starts_with("x-")
}

/// Returns whether the value of a keyword contains schemas, which the compiler processes.
pub(super) fn is_structural(keyword: &str) -> bool {
    matches!(
        keyword,
        "$ref"
            | "anyOf"
            | "oneOf"
            | "allOf"
            | "properties"
            | "additionalProperties"
            | "items"
            | "prefixItems"
    )
}

/// Access to the keywords of a schema. Keywords with a value of the wrong type count as absent.
pub(super) trait SchemaMembers {
    fn get_member(&self, keyword: &str) -> Option<&Value>;

    /// Sets the value of a keyword.
    fn set(&mut self, keyword: &str, value: impl Into<Value>);

    /// Returns the array that is the value of a keyword. Returns an empty one if the keyword is
    /// absent.
    fn list(&self, keyword: &str) -> &[Value] {
        let list = self.get_member(keyword).and_then(Value::as_array);
        list.map_or(&[], Vec::as_slice)
    }

    /// Returns the object that is the value of a keyword.
    fn object(&self, keyword: &str) -> Option<&Map> {
        self.get_member(keyword)?.as_object()
    }

    /// Returns the string that is the value of a keyword.
    fn text(&self, keyword: &str) -> Option<&str> {
        self.get_member(keyword)?.as_str()
    }

    /// Returns whether the schema has one of the keywords.
    fn has_any(&self, keywords: &[&str]) -> bool {
        let mut keywords = keywords.iter();
        keywords.any(|keyword| self.get_member(keyword).is_some())
    }

    /// Returns whether the value of a keyword is `false`.
    fn is_false(&self, keyword: &str) -> bool {
        self.get_member(keyword) == Some(&Value::Bool(false))
    }

    /// Returns the schemas in the array of a keyword.
    fn schemas(&self, keyword: &str) -> impl Iterator<Item = &Map> {
        self.list(keyword).iter().filter_map(Value::as_object)
    }

    /// Returns the type names in the keyword `type`.
    fn types(&self) -> Vec<&str> {
        self.get_member("type").map(type_names).unwrap_or_default()
    }

    /// Returns whether the keyword `required` lists a property.
    fn requires(&self, name: &str) -> bool {
        self.required().any(|required| required == name)
    }

    /// Returns the property names in the keyword `required`.
    fn required(&self) -> impl Iterator<Item = &str> {
        self.list("required").iter().filter_map(Value::as_str)
    }
}

impl SchemaMembers for Map {
    fn get_member(&self, keyword: &str) -> Option<&Value> {
        self.get(keyword)
    }

    fn set(&mut self, keyword: &str, value: impl Into<Value>) {
        self.insert(keyword.to_owned(), value.into());
    }
}

/// Returns the type names in the value of the keyword `type`.
pub(super) fn type_names(types: &Value) -> Vec<&str> {
    match types {
        Value::String(name) => vec![name],
        Value::Array(names) => names.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}

/// Returns the value of the keyword `type` that allows the types `names`.
pub(super) fn type_value(names: &[&str]) -> Value {
    match names {
        [one] => json!(one),
        several => json!(several),
    }
}

/// Returns the JSON Schema type of a value. A number without fraction is an integer.
pub(super) fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) => {
            let is_whole = number.as_f64().is_some_and(|it| it.fract() == 0.0);
            if is_whole { "integer" } else { "number" }
        }
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// Returns whether a value has one of the types `types`.
pub(super) fn is_of_type(value: &Value, types: &[&str]) -> bool {
    let name = type_of(value);
    types.contains(&name) || (name == "integer" && types.contains(&"number"))
}

/// Returns the values that `const` or `enum` allows. Returns `None` without these keywords.
pub(super) fn listed_values(schema: &Map) -> Option<Vec<&Value>> {
    match schema.get("const") {
        Some(constant) => Some(vec![constant]),
        None => Some(schema.get("enum")?.as_array()?.iter().collect()),
    }
}

/// Returns the types that a schema without `type` constrains: the types of its listed values, or
/// the first type that its keywords constrain.
pub(super) fn implied_types(schema: &Map) -> Option<Value> {
    let values = listed_values(schema).unwrap_or_default();
    let names = TYPES
        .iter()
        .copied()
        .filter(|name| values.iter().any(|it| type_of(it) == *name));
    let mut names: Vec<&str> = names.collect();
    if names.contains(&"number") {
        names.retain(|name| *name != "integer");
    }
    if !names.is_empty() {
        return Some(type_value(&names));
    }
    let name = ["object", "array", "string", "number"]
        .into_iter()
        .find(|name| {
            let mut keywords = schema.keys();
            keywords.any(|keyword| constrained_types(keyword).contains(name))
                || (*name == "string" && schema.contains_key("format"))
        });
    name.map(Value::from)
}

/// Returns a schema for which no value is valid.
pub(super) fn never() -> Map {
    let mut schema = Map::new();
    schema.set("not", json!({}));
    schema
}

/// Returns whether a schema states explicitly that no value is valid.
pub(super) fn is_never(schema: &Map) -> bool {
    schema.object("not").is_some_and(Map::is_empty)
}

/// Adds `items` to an array without them, because OpenAI refuses such an array ("array schema
/// missing items").
pub(super) fn add_items(schema: &mut Map) {
    let is_array = schema.types().contains(&"array") || schema.contains_key("prefixItems");
    let is_flag = schema.get("items").is_some_and(Value::is_boolean);
    if is_flag {
        let count = schema.list("prefixItems").len();
        limit_array_length(schema, count);
    }
    if is_flag || (is_array && !schema.contains_key("items")) {
        schema.set("items", json!({}));
    }
}

/// Limits the length of an array.
pub(super) fn limit_array_length(schema: &mut Map, count: usize) {
    let existing = schema.get("maxItems").and_then(Value::as_u64);
    let count = count as u64;
    schema.set("maxItems", existing.map_or(count, |it| it.min(count)));
}

/// Returns the JSON pointer of the subschema `name` of the keyword `keyword`.
pub(super) fn pointer_below(at: &str, keyword: &str, name: &str) -> String {
    format!("{at}/{keyword}/{}", escaped(name))
}

/// Escapes a name for a JSON pointer.
pub(super) fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

/// Returns the subschemas of a schema with their keywords. Values in `enum`, `default` and
/// `examples` that look like schemas are not included.
pub(super) fn children(schema: &Map) -> impl Iterator<Item = (&str, &Map)> {
    schema.iter().flat_map(|(keyword, value)| {
        let values: Vec<&Value> = match (form(keyword), value) {
            (Form::Schema | Form::SchemaOrFlag, _) => vec![value],
            (Form::Schemas, Value::Array(list)) => list.iter().collect(),
            (Form::NamedSchemas, Value::Object(named)) => named.values().collect(),
            _ => Vec::new(),
        };
        let schemas = values.into_iter().filter_map(Value::as_object);
        schemas.map(|child| (keyword.as_str(), child))
    })
}

/// Calls `visit_one` for a schema and all its subschemas.
pub(super) fn visit<'s>(schema: &'s Map, visit_one: &mut dyn FnMut(&'s Map)) {
    visit_one(schema);
    for (_, child) in children(schema) {
        visit(child, visit_one);
    }
}

/// Returns the references in a schema and all its subschemas.
pub(super) fn references(schema: &Map) -> Vec<&str> {
    let mut found = Vec::new();
    visit(schema, &mut |schema| found.extend(schema.text("$ref")));
    found
}

/// Returns the references in a schema that apply to the same value as the schema itself.
pub(super) fn references_in_place(schema: &Map) -> Vec<&str> {
    let mut found: Vec<&str> = schema.text("$ref").into_iter().collect();
    for (keyword, child) in children(schema) {
        if matches!(keyword, "allOf" | "anyOf" | "oneOf") {
            found.extend(references_in_place(child));
        }
    }
    found
}
