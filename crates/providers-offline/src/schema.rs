//! What a tool's input schema asks for, parameter by parameter.

use serde_json::{Map, Value};

use crate::text::{document_terms, identifier_words, stem};

/// How deep `$ref` and nested schemas are followed; schemas may refer to themselves.
pub(crate) const MAX_DEPTH: usize = 24;

/// Maximum number of `allOf` members of one schema, at all levels.
const MAX_MEMBERS: usize = 256;

/// One parameter of a tool.
#[derive(Debug, Clone)]
pub(crate) struct Param {
    /// Its name in the schema.
    pub(crate) name: String,
    /// The lower-case words of the name.
    pub(crate) words: Vec<String>,
    /// Their stems.
    pub(crate) stems: Vec<String>,
    /// Its description.
    pub(crate) description: String,
    /// The stems of title and description.
    pub(crate) about: Vec<String>,
    /// Whether the tool cannot do without.
    pub(crate) required: bool,
    /// Its schema, `$ref` resolved and the null alternative taken off.
    pub(crate) schema: Value,
    /// What sort of value it takes.
    pub(crate) kind: Kind,
    /// The values it is limited to, if it is.
    pub(crate) choices: Vec<Value>,
}

/// What sort of value a parameter takes.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Kind {
    /// A number that counts results: `limit`, `max_count`.
    Count,
    /// A number that names a thing: `customer_id`.
    IdNumber,
    /// Any other whole number.
    Integer,
    /// Any other number.
    Number,
    /// Yes or no.
    Boolean,
    /// Text of one of these sorts.
    Text(TextKind),
    /// Several of one sort.
    List(Box<Kind>),
    /// An object, or something else that cannot be read from a sentence.
    Other,
}

/// What a text parameter is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TextKind {
    Date,
    DateTime,
    Time,
    Email,
    Url,
    Uuid,
    Path,
    Zone,
    /// An id or a key.
    Id,
    /// A person's, place's or thing's name.
    Name,
    /// A headline: subject, title.
    Title,
    /// Running text: message, description, content.
    Body,
    /// What is searched for.
    Query,
    /// Nothing tells.
    Plain,
}

/// The parameters of a tool in the order of its schema, required ones marked.
pub(crate) fn params(input_schema: &Value) -> Vec<Param> {
    let root = resolve(input_schema, input_schema, 0);
    let mut properties: Vec<(&String, &Value)> = Vec::new();
    let mut required: Vec<&str> = Vec::new();
    let mut left = MAX_MEMBERS;
    collect(
        root,
        input_schema,
        0,
        &mut left,
        &mut properties,
        &mut required,
    );
    properties
        .into_iter()
        .map(|(name, schema)| {
            param(
                name,
                schema,
                input_schema,
                required.contains(&name.as_str()),
            )
        })
        .collect()
}

/// Properties and required names, also of `allOf` members.
fn collect<'s>(
    schema: &'s Value,
    root: &'s Value,
    depth: usize,
    left: &mut usize,
    properties: &mut Vec<(&'s String, &'s Value)>,
    required: &mut Vec<&'s str>,
) {
    let Some(fewer) = left.checked_sub(1) else {
        return;
    };
    *left = fewer;
    let schema = resolve(schema, root, depth);
    if let Some(Value::Object(map)) = schema.get("properties") {
        properties.extend(
            map.iter()
                .filter(|(_, value)| **value != Value::Bool(false)),
        );
    }
    if let Some(Value::Array(names)) = schema.get("required") {
        required.extend(names.iter().filter_map(Value::as_str));
    }
    if let (Some(Value::Array(members)), true) = (schema.get("allOf"), depth < MAX_DEPTH) {
        for member in members {
            collect(member, root, depth + 1, left, properties, required);
        }
    }
}

/// Follows a local `$ref`. A reference to elsewhere stays as it is.
pub(crate) fn resolve<'s>(schema: &'s Value, root: &'s Value, depth: usize) -> &'s Value {
    let mut schema = schema;
    for _ in depth..MAX_DEPTH {
        let target = schema
            .get("$ref")
            .and_then(Value::as_str)
            .and_then(|reference| reference.strip_prefix('#'))
            .and_then(|pointer| root.pointer(pointer));
        match target {
            Some(target) => schema = target,
            None => break,
        }
    }
    schema
}

fn param(name: &str, schema: &Value, root: &Value, required: bool) -> Param {
    let outer = schema;
    let schema = resolve(schema, root, 0);
    let schema = without_null(schema, root);
    let text = |key: &str| {
        outer
            .get(key)
            .or_else(|| schema.get(key))
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    let (title, description) = (text("title"), text("description"));
    let words = identifier_words(name);
    let stems = words.iter().map(|word| stem(word)).collect();
    let mut about = document_terms(&description);
    about.extend(document_terms(&title));
    let choices = choices(schema, root);
    let kind = kind(&words, &description, schema, root, 0);
    let mut merged = schema.clone();
    if let (Value::Object(merged), Value::Object(outer)) = (&mut merged, outer) {
        for (key, value) in outer {
            if !matches!(key.as_str(), "$ref" | "anyOf" | "oneOf" | "type") {
                merged.entry(key.clone()).or_insert_with(|| value.clone());
            }
        }
    }
    Param {
        name: name.to_owned(),
        words,
        stems,
        description: if description.is_empty() {
            title
        } else {
            description
        },
        about,
        required,
        schema: merged,
        kind,
        choices,
    }
}

/// The one alternative that is not null.
fn without_null<'s>(schema: &'s Value, root: &'s Value) -> &'s Value {
    for key in ["anyOf", "oneOf", "allOf"] {
        if let Some(Value::Array(alternatives)) = schema.get(key) {
            let mut real = alternatives
                .iter()
                .map(|alternative| resolve(alternative, root, 0))
                .filter(|alternative| alternative.get("type") != Some(&Value::from("null")));
            if let Some(first) = real.next() {
                return first;
            }
        }
    }
    schema
}

fn choices(schema: &Value, root: &Value) -> Vec<Value> {
    if let Some(value) = schema.get("const") {
        return vec![value.clone()];
    }
    let listed = match schema.get("enum") {
        Some(Value::Array(values)) => Some(values),
        _ => schema
            .get("items")
            .map(|items| resolve(items, root, 0))
            .and_then(|items| items.get("enum"))
            .and_then(Value::as_array),
    };
    listed
        .into_iter()
        .flatten()
        .filter(|value| !value.is_null())
        .cloned()
        .collect()
}

/// The type's name, the first that is not null where there are several.
pub(crate) fn type_name(schema: &Value) -> Option<&str> {
    match schema.get("type") {
        Some(Value::String(name)) => Some(name),
        Some(Value::Array(names)) => names
            .iter()
            .filter_map(Value::as_str)
            .find(|name| *name != "null"),
        _ => None,
    }
}

fn kind(words: &[String], description: &str, schema: &Value, root: &Value, depth: usize) -> Kind {
    let by_values = || match schema
        .get("enum")
        .and_then(Value::as_array)
        .and_then(|v| v.first())
    {
        Some(Value::String(_)) | None => "string",
        Some(Value::Number(_)) => "number",
        Some(Value::Bool(_)) => "boolean",
        Some(_) => "other",
    };
    let implied = if schema.get("properties").is_some() {
        "object"
    } else {
        by_values()
    };
    match type_name(schema).unwrap_or(implied) {
        "integer" => number_kind(words, description, Kind::Integer),
        "number" => number_kind(words, description, Kind::Number),
        "boolean" => Kind::Boolean,
        "string" => Kind::Text(text_kind(words, description, schema)),
        "array" if depth == 0 => {
            let items = schema.get("items").map(|items| resolve(items, root, 0));
            let singular: Vec<String> = words
                .iter()
                .map(|word| word.trim_end_matches('s').to_owned())
                .collect();
            let inner = items.map_or(
                Kind::Text(text_kind(&singular, description, &Value::Null)),
                |items| kind(&singular, description, items, root, 1),
            );
            match inner {
                Kind::Other | Kind::List(_) | Kind::Boolean => Kind::Other,
                inner => Kind::List(Box::new(inner)),
            }
        }
        _ => Kind::Other,
    }
}

fn number_kind(words: &[String], description: &str, other: Kind) -> Kind {
    const COUNTS: &[&str] = &[
        "limit", "count", "max", "maximum", "top", "size", "n", "num", "take", "head", "tail",
    ];
    let description = description.to_lowercase();
    let is = |list: &[&str]| words.iter().any(|word| list.contains(&word.as_str()));
    if is(COUNTS)
        || description.starts_with("how many")
        || description.starts_with("number of")
        || description.starts_with("maximum number")
    {
        Kind::Count
    } else if words
        .last()
        .is_some_and(|word| matches!(word.as_str(), "id" | "ids" | "no" | "nr" | "key"))
        || (words.len() > 1 && words.last().is_some_and(|word| word == "number"))
    {
        Kind::IdNumber
    } else {
        other
    }
}

fn text_kind(words: &[String], description: &str, schema: &Value) -> TextKind {
    match schema.get("format").and_then(Value::as_str) {
        Some("date") => return TextKind::Date,
        Some("date-time") => return TextKind::DateTime,
        Some("time") => return TextKind::Time,
        Some("email" | "idn-email") => return TextKind::Email,
        Some("uri" | "url" | "iri" | "uri-reference") => return TextKind::Url,
        Some("uuid") => return TextKind::Uuid,
        _ => {}
    }
    let description = description.to_lowercase();
    let is = |list: &[&str]| words.iter().any(|word| list.contains(&word.as_str()));
    let last = |list: &[&str]| {
        words
            .last()
            .is_some_and(|word| list.contains(&word.as_str()))
    };
    if is(&["timezone", "tz"])
        || words.join(" ").contains("time zone")
        || description.contains("iana time")
    {
        TextKind::Zone
    } else if is(&[
        "path",
        "paths",
        "file",
        "filename",
        "filepath",
        "directory",
        "folder",
        "dir",
        "cwd",
    ]) {
        TextKind::Path
    } else if is(&["email", "mail"]) {
        TextKind::Email
    } else if is(&["url", "uri", "link", "href"]) {
        TextKind::Url
    } else if is(&["uuid", "guid"]) {
        TextKind::Uuid
    } else if last(&["timestamp", "datetime"]) || description.contains("date and time") {
        TextKind::DateTime
    } else if is(&["date", "since", "until", "day", "deadline", "due"])
        || description.contains("yyyy-mm-dd")
    {
        TextKind::Date
    } else if last(&["time"]) || description.contains("hh:mm") {
        TextKind::Time
    } else if last(&[
        "id", "ids", "key", "code", "sku", "ref", "sha", "hash", "revision", "number",
    ]) {
        TextKind::Id
    } else if is(&[
        "query", "search", "q", "keyword", "keywords", "term", "pattern", "topic",
    ]) {
        TextKind::Query
    } else if is(&["subject", "title", "headline", "summary", "label", "topic"]) {
        TextKind::Title
    } else if is(&[
        "message",
        "msg",
        "text",
        "content",
        "contents",
        "body",
        "description",
        "comment",
        "note",
        "notes",
        "details",
        "prompt",
        "reason",
        "input",
        "observation",
    ]) {
        TextKind::Body
    } else if is(&[
        "name", "names", "person", "user", "username", "customer", "city", "country", "location",
        "place", "company", "author", "owner", "assignee", "branch", "region", "state",
    ]) {
        TextKind::Name
    } else {
        TextKind::Plain
    }
}

/// The schemas of an output's fields by path, arrays entered: `customers.customer_id`.
pub(crate) fn output_fields(schema: &Value) -> Vec<(Vec<String>, Value)> {
    let mut fields = Vec::new();
    walk(schema, schema, &mut Vec::new(), &mut fields, 0);
    fields
}

fn walk(
    schema: &Value,
    root: &Value,
    path: &mut Vec<String>,
    fields: &mut Vec<(Vec<String>, Value)>,
    depth: usize,
) {
    if depth > 6 || fields.len() > 200 {
        return;
    }
    let schema = without_null(resolve(schema, root, 0), root);
    if let Some(items) = schema.get("items") {
        walk(items, root, path, fields, depth + 1);
    }
    let empty = Map::new();
    for (name, property) in schema
        .get("properties")
        .and_then(Value::as_object)
        .unwrap_or(&empty)
    {
        path.push(name.clone());
        fields.push((
            path.clone(),
            without_null(resolve(property, root, 0), root).clone(),
        ));
        walk(property, root, path, fields, depth + 1);
        path.pop();
    }
}

#[cfg(test)]
#[path = "schema_tests.rs"]
mod tests;
