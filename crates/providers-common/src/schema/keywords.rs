//! The keywords of JSON Schema draft 2020-12, and access to the members of a schema.

use serde_json::{Value, json};

/// A JSON object, such as a schema.
pub(super) type Map = serde_json::Map<String, Value>;

/// Type names of JSON Schema.
pub(super) const TYPES: [&str; 7] = [
    "object", "array", "string", "integer", "number", "boolean", "null",
];

/// Kind of value that a JSON Schema keyword requires, such as a schema or a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ValueKind {
    Schema,
    SchemaOrFlag,
    Schemas,
    NamedSchemas,
    /// The value is an object that maps each name to a list of property names, as for
    /// `dependentRequired`.
    NamedNameLists,
    Number,
    /// The value is a number above zero, as for `multipleOf`.
    Divisor,
    Count,
    Text,
    Flag,
    List,
    Any,
}

/// Returns the kind of value that a keyword requires, and the types that it constrains. An empty
/// list of types means that the keyword constrains values of every type.
fn keyword_rule(keyword: &str) -> (ValueKind, &'static [&'static str]) {
    let object: &[&str] = &["object"];
    let array: &[&str] = &["array"];
    let string: &[&str] = &["string"];
    let number: &[&str] = &["number", "integer"];
    match keyword {
        "properties" | "patternProperties" | "dependentSchemas" => {
            (ValueKind::NamedSchemas, object)
        }
        "additionalProperties" | "unevaluatedProperties" => (ValueKind::SchemaOrFlag, object),
        "propertyNames" => (ValueKind::Schema, object),
        "required" => (ValueKind::List, object),
        "minProperties" | "maxProperties" => (ValueKind::Count, object),
        "dependentRequired" | "dependencies" => (ValueKind::NamedNameLists, object),
        "items" | "unevaluatedItems" => (ValueKind::SchemaOrFlag, array),
        "prefixItems" => (ValueKind::Schemas, array),
        "contains" => (ValueKind::Schema, array),
        "minItems" | "maxItems" | "minContains" | "maxContains" => (ValueKind::Count, array),
        "uniqueItems" => (ValueKind::Flag, array),
        "minLength" | "maxLength" => (ValueKind::Count, string),
        "pattern" | "contentEncoding" | "contentMediaType" => (ValueKind::Text, string),
        "contentSchema" => (ValueKind::Schema, string),
        "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" => {
            (ValueKind::Number, number)
        }
        "multipleOf" => (ValueKind::Divisor, number),
        "not" | "if" | "then" | "else" => (ValueKind::Schema, &[]),
        "anyOf" | "oneOf" | "allOf" => (ValueKind::Schemas, &[]),
        "format" | "title" | "description" | "$ref" => (ValueKind::Text, &[]),
        "deprecated" | "readOnly" | "writeOnly" => (ValueKind::Flag, &[]),
        "enum" | "examples" => (ValueKind::List, &[]),
        _ => (ValueKind::Any, &[]),
    }
}

pub(super) fn keyword_value_kind(keyword: &str) -> ValueKind {
    keyword_rule(keyword).0
}

pub(super) fn constrained_types(keyword: &str) -> &'static [&'static str] {
    keyword_rule(keyword).1
}

/// Returns whether a keyword has no effect on values of `types`: `minLength` has no effect on
/// numbers. Returns `false` if `types` is empty or the keyword constrains every type.
pub(super) fn ignores_types(keyword: &str, types: &[&str]) -> bool {
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

/// Returns whether the compiler converts the subschemas that a keyword contains or refers to, as
/// for `properties` and `$ref`. Other keywords with subschemas, such as `not`, are only described
/// as text.
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

    fn set(&mut self, keyword: &str, value: impl Into<Value>);

    /// Returns the array that is the value of `keyword`, or an empty array if there is none.
    fn get_array(&self, keyword: &str) -> &[Value] {
        let list = self.get_member(keyword).and_then(Value::as_array);
        list.map_or(&[], Vec::as_slice)
    }

    /// Returns the object that is the value of `keyword`. Returns `None` if the keyword is absent
    /// or has a value of another type.
    fn get_object(&self, keyword: &str) -> Option<&Map> {
        self.get_member(keyword)?.as_object()
    }

    /// Returns the string that is the value of `keyword`. Returns `None` if the keyword is absent
    /// or has a value of another type.
    fn get_text(&self, keyword: &str) -> Option<&str> {
        self.get_member(keyword)?.as_str()
    }

    /// Returns whether the schema has at least one of the keywords.
    fn has_any_keyword(&self, keywords: &[&str]) -> bool {
        let mut keywords = keywords.iter();
        keywords.any(|keyword| self.get_member(keyword).is_some())
    }

    fn is_false(&self, keyword: &str) -> bool {
        self.get_member(keyword) == Some(&Value::Bool(false))
    }

    /// Returns the schemas in the array of a keyword such as `anyOf`. Skips elements that are not
    /// objects.
    fn get_schemas(&self, keyword: &str) -> impl Iterator<Item = &Map> {
        self.get_array(keyword).iter().filter_map(Value::as_object)
    }

    /// Returns the type names in the keyword `type`.
    fn get_types(&self) -> Vec<&str> {
        self.get_member("type").map(type_names).unwrap_or_default()
    }

    /// Returns whether the keyword `required` lists a property.
    fn is_required(&self, name: &str) -> bool {
        self.required_properties().any(|required| required == name)
    }

    /// Returns the property names in the keyword `required`.
    fn required_properties(&self) -> impl Iterator<Item = &str> {
        self.get_array("required").iter().filter_map(Value::as_str)
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

/// Returns the type names in `types`, which is the value of the keyword `type`: one name or a list
/// of names.
pub(super) fn type_names(types: &Value) -> Vec<&str> {
    match types {
        Value::String(name) => vec![name],
        Value::Array(names) => names.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}

/// Returns the value of the keyword `type` that allows the types `names`.
pub(super) fn type_keyword_value(names: &[&str]) -> Value {
    match names {
        [one] => json!(one),
        several => json!(several),
    }
}

/// Returns the JSON Schema type of a value. A number without fraction is an integer.
pub(super) fn json_type_name(value: &Value) -> &'static str {
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

/// Returns whether a value has one of the types `types`. An integer also has the type `number`.
pub(super) fn has_type(value: &Value, types: &[&str]) -> bool {
    let name = json_type_name(value);
    types.contains(&name) || (name == "integer" && types.contains(&"number"))
}

/// Returns the values that `const` or `enum` allows. Returns `None` without these keywords.
pub(super) fn const_or_enum(schema: &Map) -> Option<Vec<&Value>> {
    match schema.get("const") {
        Some(constant) => Some(vec![constant]),
        None => Some(schema.get("enum")?.as_array()?.iter().collect()),
    }
}

/// Returns a value for the keyword `type` of a schema that lacks it: the types of the values in
/// `enum` or `const`, or else the first type that the other keywords constrain. Returns `None` if
/// neither shows a type.
pub(super) fn implied_types(schema: &Map) -> Option<Value> {
    let values = const_or_enum(schema).unwrap_or_default();
    let names = TYPES
        .iter()
        .copied()
        .filter(|name| values.iter().any(|it| json_type_name(it) == *name));
    let mut names: Vec<&str> = names.collect();
    if names.contains(&"number") {
        names.retain(|name| *name != "integer");
    }
    if !names.is_empty() {
        return Some(type_keyword_value(&names));
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

/// Returns the schema `{"not": {}}`, for which no value is valid.
pub(super) fn false_schema() -> Map {
    let mut schema = Map::new();
    schema.set("not", json!({}));
    schema
}

/// Returns whether a schema states explicitly, with `"not": {}`, that no value is valid.
pub(super) fn rejects_all(schema: &Map) -> bool {
    schema.get_object("not").is_some_and(Map::is_empty)
}

/// Adds the keyword `items` to an array schema that lacks it, because OpenAI refuses such a schema
/// ("array schema missing items"). `items: false` is replaced by an equivalent `maxItems`.
pub(super) fn add_missing_items(schema: &mut Map) {
    let is_array = schema.get_types().contains(&"array") || schema.contains_key("prefixItems");
    let is_flag = schema.get("items").is_some_and(Value::is_boolean);
    if is_flag {
        let count = schema.get_array("prefixItems").len();
        limit_array_length(schema, count);
    }
    if is_flag || (is_array && !schema.contains_key("items")) {
        schema.set("items", json!({}));
    }
}

/// Limits the length of an array to `count` items, with the keyword `maxItems`.
pub(super) fn limit_array_length(schema: &mut Map, count: usize) {
    let existing = schema.get("maxItems").and_then(Value::as_u64);
    let count = count as u64;
    schema.set("maxItems", existing.map_or(count, |it| it.min(count)));
}

/// Returns the JSON pointer of a subschema, such as `/properties/city`. `at` is the pointer of the
/// outer schema, `keyword` contains the subschema, and `name` is the key of the subschema there.
pub(super) fn child_pointer(at: &str, keyword: &str, name: &str) -> String {
    format!("{at}/{keyword}/{}", escape_pointer_name(name))
}

/// Escapes a name for use in a JSON pointer.
pub(super) fn escape_pointer_name(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

/// Returns the direct subschemas of a schema, each with the keyword that contains it. Values in
/// `enum`, `default` and `examples` that look like schemas are not included.
pub(super) fn child_schemas(schema: &Map) -> impl Iterator<Item = (&str, &Map)> {
    schema.iter().flat_map(|(keyword, value)| {
        let values: Vec<&Value> = match (keyword_value_kind(keyword), value) {
            (ValueKind::Schema | ValueKind::SchemaOrFlag, _) => vec![value],
            (ValueKind::Schemas, Value::Array(list)) => list.iter().collect(),
            (ValueKind::NamedSchemas, Value::Object(named)) => named.values().collect(),
            _ => Vec::new(),
        };
        let schemas = values.into_iter().filter_map(Value::as_object);
        schemas.map(|child| (keyword.as_str(), child))
    })
}

/// Calls `visit_one` for a schema and all its subschemas.
pub(super) fn visit_schemas<'s>(schema: &'s Map, visit_one: &mut dyn FnMut(&'s Map)) {
    visit_one(schema);
    for (_, child) in child_schemas(schema) {
        visit_schemas(child, visit_one);
    }
}

/// Appends the elements of `more` that `list` does not contain yet.
pub(super) fn extend_distinct<T: PartialEq>(list: &mut Vec<T>, more: impl IntoIterator<Item = T>) {
    for element in more {
        if !list.contains(&element) {
            list.push(element);
        }
    }
}

/// Returns the targets of all `$ref` keywords in a schema and its subschemas.
pub(super) fn collect_references(schema: &Map) -> Vec<&str> {
    let mut found = Vec::new();
    visit_schemas(schema, &mut |schema| found.extend(schema.get_text("$ref")));
    found
}

/// Returns the `$ref` targets that apply to the same value as the schema itself: its own target and
/// those in its `allOf`, `anyOf` and `oneOf`. References in properties and items are not included.
pub(super) fn find_same_value_references(schema: &Map) -> Vec<&str> {
    let mut found: Vec<&str> = schema.get_text("$ref").into_iter().collect();
    for (keyword, child) in child_schemas(schema) {
        if matches!(keyword, "allOf" | "anyOf" | "oneOf") {
            found.extend(find_same_value_references(child));
        }
    }
    found
}
