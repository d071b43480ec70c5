//! Conversion of unions (`anyOf` and `oneOf`) to the subset that a dialect accepts.

use serde_json::{Value, json};

use super::{Level, Map, NormalSchema, SchemaLowering, SchemaMembers, text};
use crate::schema::{
    change::ChangeKind,
    keywords::{extend_distinct, is_annotation, visit_schemas},
    merge::{expand_schema, intersect_schemas},
};

/// Maximum number of subschemas that are created when the other keywords of a schema with `anyOf`
/// are copied into each alternative. If more copies are needed, the `anyOf` becomes text in the
/// description.
const MAX_COPIES: usize = 400;
/// Maximum number of alternatives whose overlap is checked. A longer list counts as overlapping.
const MAX_COMPARED: usize = 32;

impl SchemaLowering<'_, '_> {
    /// Converts a schema without `$ref` and `allOf`, whose `anyOf` or `oneOf` lists alternatives.
    pub(super) fn lower_union(&mut self, mut schema: Map, at: &str, level: Level) -> Option<Map> {
        match schema.shift_remove("oneOf") {
            Some(one_of) if schema.contains_key("anyOf") => {
                self.describe_rule(&mut schema, "oneOf", &one_of, at);
            }
            Some(one_of) => {
                if !are_schemas_disjoint(self.normal, &one_of) {
                    // With `anyOf`, unlike `oneOf`, a value may match two alternatives.
                    self.report_change(at, ChangeKind::Widened, "`oneOf` became `anyOf`");
                }
                schema.set("anyOf", one_of);
            }
            None => {}
        }
        let Some(Value::Array(alternatives)) = schema.shift_remove("anyOf") else {
            return self.lower_typed_schema(schema, at, level);
        };
        let keywords = schema.into_iter();
        let (annotations, common): (Map, Map) =
            keywords.partition(|(keyword, _)| is_annotation(keyword));
        let mut size = 0_usize;
        visit_schemas(&common, &mut |_| size += 1);
        if !common.is_empty() && size.saturating_mul(alternatives.len()) > MAX_COPIES {
            let mut schema = common;
            schema.extend(annotations);
            self.describe_rule(&mut schema, "anyOf", &Value::Array(alternatives), at);
            return self.lower_typed_schema(schema, at, level);
        }
        let mut is_nullable = false;
        let mut lowered: Vec<Value> = Vec::new();
        for (index, alternative) in alternatives.into_iter().enumerate() {
            let Value::Object(mut alternative) = alternative else {
                continue;
            };
            let at = format!("{at}/anyOf/{index}");
            if self.rules.openapi && alternative.get_text("type") == Some("null") {
                is_nullable = true;
                continue;
            }
            if !common.is_empty() {
                let own = std::mem::replace(&mut alternative, common.clone());
                alternative.set("allOf", json!([own]));
            }
            let Some(mut alternative) = self.lower_schema(alternative, &at, level) else {
                continue;
            };
            // An alternative that consists only of a union is replaced by that union's
            // alternatives.
            let is_union = alternative.len() == 1;
            let found = match alternative.get_mut("anyOf") {
                Some(Value::Array(nested)) if is_union => std::mem::take(nested),
                _ => vec![Value::Object(alternative)],
            };
            extend_distinct(&mut lowered, found);
        }
        self.join_alternatives(lowered, &annotations, is_nullable, at)
    }

    /// Returns the `anyOf` of converted alternatives, with the annotations of the original union.
    fn join_alternatives(
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
                self.put_annotation(&mut outer, keyword, value, at);
            } else if let Some(sentence) = text::describe_keyword(keyword, value) {
                text::append_text(&mut outer, &sentence);
            }
        }
        if alternatives.is_empty() {
            return is_nullable.then(|| {
                outer.shift_insert(0, "type".to_owned(), json!("null"));
                self.lower_keywords(outer, at, Map::new())
            });
        }
        let is_only = alternatives.len() == 1;
        let is_reference = alternatives.iter().any(|it| it.get("$ref").is_some());
        if self.rules.openapi || (is_only && (!is_reference || outer.is_empty())) {
            for alternative in alternatives.iter_mut().filter_map(Value::as_object_mut) {
                for (keyword, value) in &outer {
                    if keyword == "description" {
                        text::prepend_text(alternative, value);
                    } else {
                        alternative.set(keyword, value.clone());
                    }
                }
                if is_nullable {
                    alternative.set("nullable", true);
                }
            }
            outer.clear();
        }
        match alternatives.pop() {
            Some(Value::Object(only)) if is_only && outer.is_empty() => return Some(only),
            last => alternatives.extend(last),
        }
        outer.set("anyOf", alternatives);
        Some(outer)
    }
}

/// Returns whether no value is valid against two of the alternatives, judged by their types, listed
/// values and required keys.
fn are_schemas_disjoint(normal: &NormalSchema, alternatives: &Value) -> bool {
    let alternatives = alternatives.as_array().into_iter().flatten();
    let alternatives: Vec<Map> = alternatives
        .filter_map(Value::as_object)
        .take(MAX_COMPARED + 1)
        .map(|alternative| expand_schema(normal, alternative.clone()).schema)
        .collect();
    alternatives.len() <= MAX_COMPARED
        && alternatives.iter().enumerate().all(|(index, one)| {
            let mut others = alternatives.iter().take(index);
            others.all(|other| differ_by_value(one, other) || differ_by_tag(normal, one, other))
        })
}

/// Returns whether two schemas exclude each other by `type`, `enum` and `const` alone.
fn differ_by_value(one: &Map, other: &Map) -> bool {
    let [one, other] = [one, other].map(|schema| {
        let mut schema = schema.clone();
        schema.retain(|keyword, _| matches!(keyword.as_str(), "type" | "enum" | "const"));
        schema
    });
    intersect_schemas(one, &other).rejects_all
}

/// Returns whether two object schemas require the same key, with values that exclude each other.
fn differ_by_tag(normal: &NormalSchema, one: &Map, other: &Map) -> bool {
    let property = |schema: &Map, key: &str| {
        let property = schema.get_object("properties")?.get(key)?.as_object()?;
        Some(expand_schema(normal, property.clone()).schema)
    };
    let are_objects = [one, other]
        .iter()
        .all(|it| it.get_text("type") == Some("object"));
    let mut keys = one
        .required_properties()
        .filter(|key| other.is_required(key));
    are_objects
        && keys.any(|key| match (property(one, key), property(other, key)) {
            (Some(ours), Some(theirs)) => differ_by_value(&ours, &theirs),
            _ => false,
        })
}
