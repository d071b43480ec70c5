//! Intersection of two schemas.

use serde_json::{Value, json};

use super::{Map, normal};

/// Maximum number of pairs when two lists of alternatives are intersected.
const MAX_PAIRS: usize = 16;

/// The intersection of two schemas, and the keywords that could not be merged.
#[derive(Debug, Default)]
pub(super) struct Merged {
    pub(super) schema: Map,
    /// Keywords of the second schema that conflict with the first.
    pub(super) rest: Vec<(String, Value)>,
    /// No value is valid against both.
    pub(super) never: bool,
    /// A closed object was opened for the properties of the other schema, as the author intended.
    pub(super) opened: bool,
}

/// Intersects `a` and `b`. Annotations of `a` take precedence. At most one of them has a `$ref`.
pub(super) fn intersect(mut a: Map, b: &Map) -> Merged {
    let mut merged = Merged {
        never: normal::is_never(&a) || normal::is_never(b),
        ..Merged::default()
    };
    for (keyword, theirs) in b {
        if matches!(keyword.as_str(), "properties" | "additionalProperties") {
            continue;
        }
        let Some(ours) = a.get(keyword) else {
            a.insert(keyword.clone(), theirs.clone());
            continue;
        };
        if ours == theirs || is_annotation(keyword) {
            continue;
        }
        match both(keyword, ours, theirs) {
            Both::One(value) => {
                a.insert(keyword.clone(), value);
            }
            Both::Never => merged.never = true,
            Both::Two => merged.rest.push((keyword.clone(), theirs.clone())),
        }
    }
    merged.opened = properties(&mut a, b);
    if let (Some(values), Some(constant)) = (a.get("enum"), a.get("const")) {
        let has = values.as_array().is_some_and(|it| it.contains(constant));
        merged.never |= !has;
        a.shift_remove("enum");
    }
    merged.schema = a;
    merged
}

/// Whether a keyword is an annotation, which does not constrain values.
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

enum Both {
    One(Value),
    Never,
    /// They do not merge.
    Two,
}

fn both(keyword: &str, ours: &Value, theirs: &Value) -> Both {
    let greater = |wanted: bool| {
        let greater = theirs.as_f64() > ours.as_f64();
        Both::One(if greater == wanted { theirs } else { ours }.clone())
    };
    match keyword {
        "type" => types(ours, theirs),
        "required" => {
            let mut names = ours.as_array().cloned().unwrap_or_default();
            for name in theirs.as_array().into_iter().flatten() {
                if !names.contains(name) {
                    names.push(name.clone());
                }
            }
            Both::One(Value::Array(names))
        }
        "enum" => {
            let theirs = theirs.as_array().map_or(&[][..], Vec::as_slice);
            let ours = ours.as_array().into_iter().flatten();
            let common: Vec<Value> = ours.filter(|it| theirs.contains(it)).cloned().collect();
            if common.is_empty() {
                Both::Never
            } else {
                Both::One(Value::Array(common))
            }
        }
        "const" => Both::Never,
        "minimum" | "exclusiveMinimum" | "minLength" | "minItems" | "minProperties" => {
            greater(true)
        }
        "maximum" | "exclusiveMaximum" | "maxLength" | "maxItems" | "maxProperties" => {
            greater(false)
        }
        "uniqueItems" => Both::One(json!(*ours == json!(true) || *theirs == json!(true))),
        "items" => match (ours, theirs) {
            (Value::Bool(false), _) | (_, Value::Bool(false)) => Both::One(json!(false)),
            _ => Both::One(all_of(ours, theirs)),
        },
        "not" => Both::One(json!({"anyOf": [ours, theirs]})),
        "anyOf" => match (ours, theirs) {
            (Value::Array(ours), Value::Array(theirs))
                if ours.len().saturating_mul(theirs.len()) <= MAX_PAIRS =>
            {
                let pairs = ours
                    .iter()
                    .flat_map(|one| theirs.iter().map(move |other| all_of(one, other)));
                Both::One(pairs.collect())
            }
            _ => Both::Two,
        },
        _ => Both::Two,
    }
}

fn types(ours: &Value, theirs: &Value) -> Both {
    let (ours, theirs) = (names(ours), names(theirs));
    let mut common: Vec<&str> = Vec::new();
    for name in &ours {
        let narrower = match *name {
            name if theirs.contains(&name) => Some(name),
            "integer" if theirs.contains(&"number") => Some("integer"),
            "number" if theirs.contains(&"integer") => Some("integer"),
            _ => None,
        };
        common.extend(narrower.filter(|it| !common.contains(it)));
    }
    match common.as_slice() {
        [] => Both::Never,
        [one] => Both::One(json!(one)),
        several => Both::One(json!(several)),
    }
}

/// Returns the names in a `type`.
pub(super) fn names(types: &Value) -> Vec<&str> {
    match types {
        Value::String(name) => vec![name],
        Value::Array(names) => names.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}

/// Returns an `allOf` of both schemas, which is merged later.
fn all_of(one: &Value, other: &Value) -> Value {
    let is_any = |it: &Value| it.as_object().is_some_and(Map::is_empty);
    if one == other || is_any(other) {
        return one.clone();
    }
    if is_any(one) {
        return other.clone();
    }
    json!({"allOf": [one, other]})
}

/// Merges the properties and `additionalProperties` of `b` into those of `a`.
fn properties(a: &mut Map, b: &Map) -> bool {
    let get = |map: &Map| map.get("properties").and_then(Value::as_object).cloned();
    let further = |map: &Map| map.get("additionalProperties").cloned();
    let (ours, theirs) = (get(a), get(b));
    let (our_further, their_further) = (further(a), further(b));
    let mut opened = false;
    // The other schema's rule for a key that only one schema names.
    let mut also = |schema: &Value, further: Option<&Value>| match further {
        Some(Value::Bool(false)) => {
            opened = true;
            schema.clone()
        }
        Some(further @ Value::Object(_)) => all_of(schema, further),
        _ => schema.clone(),
    };
    if ours.is_some() || theirs.is_some() {
        let ours = ours.unwrap_or_default();
        let theirs = theirs.unwrap_or_default();
        let mut out = Map::new();
        for (name, schema) in &ours {
            let schema = match theirs.get(name) {
                Some(other) => all_of(schema, other),
                None => also(schema, their_further.as_ref()),
            };
            out.insert(name.clone(), schema);
        }
        for (name, schema) in &theirs {
            if !ours.contains_key(name) {
                out.insert(name.clone(), also(schema, our_further.as_ref()));
            }
        }
        a.insert("properties".to_owned(), Value::Object(out));
    }
    let further = match (our_further, their_further) {
        (Some(Value::Bool(false)), _) | (_, Some(Value::Bool(false))) => Some(json!(false)),
        (Some(ours @ Value::Object(_)), Some(theirs @ Value::Object(_))) => {
            Some(all_of(&ours, &theirs))
        }
        (Some(one @ Value::Object(_)), _) | (_, Some(one @ Value::Object(_))) => Some(one),
        (one, other) => one.or(other),
    };
    if let Some(further) = further {
        a.insert("additionalProperties".to_owned(), further);
    }
    opened
}
