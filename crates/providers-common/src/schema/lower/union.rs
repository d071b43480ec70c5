//! Unions: `anyOf` and `oneOf`.

use serde_json::{Value, json};

use super::{Level, Lowering, Map, Normal, SchemaMembers, text};
use crate::schema::{
    change::ChangeKind,
    keywords::{is_annotation, listed_values, visit},
    merge::{expand, intersection},
};

/// Maximum number of subschemas when the common part of a union is copied into each alternative.
const MAX_COPIES: usize = 400;
/// Maximum number of alternatives that are compared with each other.
const MAX_COMPARED: usize = 32;

impl Lowering<'_, '_> {
    /// Converts a schema without `$ref` and `allOf`, whose `anyOf` or `oneOf` lists alternatives.
    pub(super) fn union(&mut self, mut schema: Map, at: &str, level: Level) -> Option<Map> {
        if let Some(one_of) = schema.shift_remove("oneOf") {
            if !are_disjoint(self.normal, &one_of) {
                // With `anyOf`, unlike `oneOf`, a value may match two alternatives.
                self.report(at, ChangeKind::Widened, "`oneOf` became `anyOf`");
            }
            let mut any_of = Map::new();
            any_of.set("anyOf", one_of);
            let merged = intersection(schema, &any_of);
            if merged.is_never {
                return None;
            }
            schema = merged.schema;
            for (_, alternatives) in merged.conflicts {
                self.describe(&mut schema, "oneOf", &alternatives, at);
            }
        }
        let Some(Value::Array(alternatives)) = schema.shift_remove("anyOf") else {
            return self.typed(schema, at, level);
        };
        let keywords = schema.into_iter();
        let (annotations, common): (Map, Map) =
            keywords.partition(|(keyword, _)| is_annotation(keyword));
        let mut size = 0_usize;
        visit(&common, &mut |_| size += 1);
        if !common.is_empty() && size.saturating_mul(alternatives.len()) > MAX_COPIES {
            let mut schema = common;
            schema.extend(annotations);
            self.describe(&mut schema, "anyOf", &Value::Array(alternatives), at);
            return self.typed(schema, at, level);
        }
        let mut is_nullable = false;
        let mut lowered: Vec<Value> = Vec::new();
        for (index, alternative) in alternatives.into_iter().enumerate() {
            let Value::Object(mut alternative) = alternative else {
                continue;
            };
            let at = format!("{at}/anyOf/{index}");
            if self.rules.openapi && alternative.text("type") == Some("null") {
                is_nullable = true;
                continue;
            }
            if !common.is_empty() {
                let own = std::mem::replace(&mut alternative, common.clone());
                alternative.set("allOf", json!([own]));
            }
            let Some(mut alternative) = self.schema(alternative, &at, level) else {
                continue;
            };
            // An alternative that consists only of a union is replaced by that union's
            // alternatives.
            let is_union = alternative.len() == 1;
            let found = match alternative.get_mut("anyOf") {
                Some(Value::Array(nested)) if is_union => std::mem::take(nested),
                _ => vec![Value::Object(alternative)],
            };
            for alternative in found {
                if !lowered.contains(&alternative) {
                    lowered.push(alternative);
                }
            }
        }
        self.alternatives(lowered, &annotations, is_nullable, at)
    }

    /// Joins converted alternatives with the annotations of their union.
    fn alternatives(
        &mut self,
        mut alternatives: Vec<Value>,
        annotations: &Map,
        is_nullable: bool,
        at: &str,
    ) -> Option<Map> {
        let mut outer = Map::new();
        for (keyword, value) in annotations {
            // OpenAPI allows only `description` beside `anyOf`.
            if !self.rules.openapi || keyword == "description" {
                self.annotation(&mut outer, keyword, value, at);
            } else if let Some(sentence) = text::describe(keyword, value) {
                text::append(&mut outer, &sentence);
            }
        }
        if alternatives.is_empty() {
            return is_nullable.then(|| {
                outer.shift_insert(0, "type".to_owned(), json!("null"));
                self.keywords(outer, at, Map::new())
            });
        }
        if let [Value::Object(only)] = alternatives.as_mut_slice() {
            let mut only = std::mem::take(only);
            if only.contains_key("$ref") && !outer.is_empty() {
                outer.set("anyOf", json!([only]));
                return Some(outer);
            }
            for (keyword, value) in outer {
                if keyword == "description" {
                    text::prepend(&mut only, &value);
                } else {
                    only.set(&keyword, value);
                }
            }
            if is_nullable {
                self.make_nullable(&mut only);
            }
            return Some(only);
        }
        if self.rules.openapi {
            for alternative in alternatives.iter_mut().filter_map(Value::as_object_mut) {
                if let Some(description) = outer.get("description") {
                    text::prepend(alternative, description);
                }
                if is_nullable {
                    alternative.set("nullable", true);
                }
            }
            outer.clear();
        }
        outer.set("anyOf", alternatives);
        Some(outer)
    }
}

/// Returns whether no value is valid against two of the alternatives, judged by their types, listed
/// values and required keys.
fn are_disjoint(normal: &Normal, alternatives: &Value) -> bool {
    let alternatives = alternatives.as_array().into_iter().flatten();
    let alternatives: Vec<Map> = alternatives
        .filter_map(Value::as_object)
        .take(MAX_COMPARED + 1)
        .map(|alternative| expand(normal, alternative.clone()).schema)
        .collect();
    let mut pairs = alternatives.iter().enumerate().flat_map(|(index, one)| {
        let others = alternatives.iter().skip(index + 1);
        others.map(move |other| (one, other))
    });
    alternatives.len() <= MAX_COMPARED
        && pairs.all(|(one, other)| {
            have_disjoint_types(one, other)
                || have_disjoint_values(one, other)
                || have_disjoint_keys(normal, one, other)
        })
}

fn have_disjoint_types(one: &Map, other: &Map) -> bool {
    let kind = |name: &str| name.replace("integer", "number");
    let theirs: Vec<String> = other.types().into_iter().map(kind).collect();
    let mut ours = one.types().into_iter().map(kind);
    one.contains_key("type")
        && other.contains_key("type")
        && !ours.any(|name| theirs.contains(&name))
}

fn have_disjoint_values(one: &Map, other: &Map) -> bool {
    match (listed_values(one), listed_values(other)) {
        (Some(ours), Some(theirs)) => !ours.iter().any(|value| theirs.contains(value)),
        _ => false,
    }
}

/// Returns whether two objects require the same key with different constant values.
fn have_disjoint_keys(normal: &Normal, one: &Map, other: &Map) -> bool {
    let property = |schema: &Map, key: &str| {
        let property = schema.object("properties")?.get(key)?.as_object()?;
        Some(expand(normal, property.clone()).schema)
    };
    let are_objects = [one, other]
        .iter()
        .all(|it| it.text("type") == Some("object"));
    let mut keys = one.required().filter(|key| other.requires(key));
    are_objects
        && keys.any(|key| match (property(one, key), property(other, key)) {
            (Some(ours), Some(theirs)) => have_disjoint_values(&ours, &theirs),
            _ => false,
        })
}
