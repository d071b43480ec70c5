//! A tool's schema in the form that the API takes.

use std::{borrow::Cow, collections::HashSet};

use serde_json::{Value, json};
use switchboard_domain::JsonObject;

/// Keywords that OpenAI refuses at the root: "schema must have type 'object' and not have
/// 'oneOf'/'anyOf'/'allOf'/'enum'/'not' at the top level" (as reported in langchainjs#9804).
const REFUSED_AT_ROOT: [&str; 5] = ["oneOf", "anyOf", "allOf", "enum", "not"];
/// Those of them that hold schemas in a list.
const LISTS: [&str; 3] = ["oneOf", "anyOf", "allOf"];
/// How deep lists are followed into lists.
const MAX_DEPTH: u8 = 16;

/// The schema, and the keyword at its root that could not be kept, if there was one.
///
/// The root says that it is an object and has `properties`, even none ("object schema missing
/// properties"): MCP tools without parameters often leave them out. A root that is a reference is
/// replaced by what it refers to. Where `root_combinators` are refused, the alternatives are shown
/// as one object; the input is still checked against the tool's own schema when it comes.
pub(crate) fn parameters(
    schema: &Value,
    root_combinators: bool,
) -> (Cow<'_, Value>, Option<&'static str>) {
    let Value::Object(root) = schema else {
        return (
            Cow::Owned(json!({"type": "object", "properties": {}})),
            None,
        );
    };
    let refused = REFUSED_AT_ROOT
        .into_iter()
        .find(|keyword| !root_combinators && root.contains_key(*keyword));
    let is_object = root.get("type").is_some_and(|it| it == "object");
    let is_reference = root.contains_key("$ref");
    let has_properties = root.get("properties").is_some_and(Value::is_object);
    if is_object && has_properties && !is_reference && refused.is_none() {
        return (Cow::Borrowed(schema), None);
    }
    let mut own = root.clone();
    if let Some(target) = is_reference.then(|| resolved(root, root)).flatten() {
        own.shift_remove("$ref");
        for (name, value) in target {
            own.entry(name).or_insert_with(|| value.clone());
        }
        // Once: what it referred to may be a choice itself.
        let own = Value::Object(own);
        let (schema, refused) = parameters(&own, root_combinators);
        return (Cow::Owned(schema.into_owned()), refused);
    }
    if refused.is_some() {
        flatten(root, &mut own);
    }
    own.insert("type".to_owned(), json!("object"));
    if !own.get("properties").is_some_and(Value::is_object) {
        own.insert("properties".to_owned(), json!({}));
    }
    (Cow::Owned(Value::Object(own)), refused)
}

/// Gives `own` the properties of all alternatives in place of the keywords that are refused.
fn flatten(root: &JsonObject, own: &mut JsonObject) {
    let mut found = Found::default();
    found.collect(root, root, true, MAX_DEPTH);
    for keyword in REFUSED_AT_ROOT {
        own.shift_remove(keyword);
    }
    let properties = found.properties.into_iter().map(|(name, mut schemas)| {
        let schema = match schemas.len() {
            1 => schemas.remove(0).clone(),
            _ => json!({ "anyOf": schemas }),
        };
        (name.to_owned(), schema)
    });
    own.insert("properties".to_owned(), Value::Object(properties.collect()));
    if !found.required.is_empty() {
        own.insert("required".to_owned(), json!(found.required));
    }
}

/// What a schema and its alternatives say of the object.
#[derive(Default)]
struct Found<'a> {
    /// Each property with the schemas that differ, in the order of their appearance.
    properties: Vec<(&'a str, Vec<&'a Value>)>,
    /// What is required in any case.
    required: Vec<&'a str>,
    /// The schemas that were read: references may lead round in circles, or by many ways to one.
    read: HashSet<*const JsonObject>,
}

impl<'a> Found<'a> {
    fn collect(&mut self, schema: &'a JsonObject, root: &'a JsonObject, always: bool, depth: u8) {
        if !self.read.insert(std::ptr::from_ref(schema)) {
            return;
        }
        let properties = schema.get("properties").and_then(Value::as_object);
        for (name, schema) in properties.into_iter().flatten() {
            match self.properties.iter_mut().find(|(known, _)| known == name) {
                Some((_, schemas)) if schemas.contains(&schema) => {}
                Some((_, schemas)) => schemas.push(schema),
                None => self.properties.push((name, vec![schema])),
            }
        }
        if always {
            let required = schema.get("required").and_then(Value::as_array);
            for name in required.into_iter().flatten().filter_map(Value::as_str) {
                if !self.required.contains(&name) {
                    self.required.push(name);
                }
            }
        }
        let Some(depth) = depth.checked_sub(1) else {
            return;
        };
        for keyword in LISTS {
            let list = schema.get(keyword).and_then(Value::as_array);
            for one in list.into_iter().flatten().filter_map(Value::as_object) {
                let one = resolved(one, root).unwrap_or(one);
                self.collect(one, root, always && keyword == "allOf", depth);
            }
        }
    }
}

/// What a reference within the schema (`#/$defs/…`) leads to; `None` if it is none or leads nowhere.
fn resolved<'a>(schema: &JsonObject, root: &'a JsonObject) -> Option<&'a JsonObject> {
    let path = schema.get("$ref")?.as_str()?.strip_prefix("#/")?;
    let (group, name) = path.split_once('/')?;
    let name = name.replace("~1", "/").replace("~0", "~");
    let target = root.get(group)?.get(&name)?.as_object()?;
    (!target.contains_key("$ref")).then_some(target)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn sent(schema: &Value) -> Value {
        parameters(schema, false).0.into_owned()
    }

    #[test]
    fn schemas_are_borrowed_unless_the_root_must_say_more() {
        let whole = json!({"type": "object", "properties": {"a": {"oneOf": []}}});
        assert!(matches!(
            parameters(&whole, false),
            (Cow::Borrowed(_), None)
        ));
        assert_eq!(
            sent(&json!({"type": "object", "additionalProperties": false})),
            json!({"type": "object", "additionalProperties": false, "properties": {}})
        );
        for odd in [json!(true), json!({}), json!({"type": ["object", "null"]})] {
            assert_eq!(
                sent(&odd),
                json!({"type": "object", "properties": {}}),
                "{odd}"
            );
        }
    }

    #[test]
    fn alternatives_at_the_root_become_one_object() {
        let schema = json!({
            "type": "object",
            "properties": {"city": {"type": "string"}},
            "required": ["city"],
            "oneOf": [
                {"properties": {"kind": {"const": "now"}}, "required": ["kind"]},
                {"$ref": "#/$defs/later"},
            ],
            "allOf": [{"properties": {"unit": {"type": "string"}}, "required": ["unit"]}],
            "$defs": {"later": {"type": "object", "properties": {
                "kind": {"const": "later"}, "day": {"type": "string"}, "city": {"type": "string"},
            }}},
        });
        let (flat, refused) = parameters(&schema, false);
        assert_eq!(refused, Some("oneOf"));
        assert_eq!(
            *flat,
            json!({
                "type": "object",
                "properties": {
                    "city": {"type": "string"},
                    "kind": {"anyOf": [{"const": "now"}, {"const": "later"}]},
                    "day": {"type": "string"},
                    "unit": {"type": "string"},
                },
                "required": ["city", "unit"],
                "$defs": schema["$defs"],
            })
        );
        // A server that takes it gets it.
        assert!(matches!(
            parameters(&schema, true),
            (Cow::Borrowed(_), None)
        ));
        // Without a type at all.
        let arms = json!({"anyOf": [{"properties": {"a": {}}}, {"properties": {"b": {}}}]});
        assert_eq!(
            sent(&arms),
            json!({"type": "object", "properties": {"a": {}, "b": {}}})
        );
    }

    #[test]
    fn a_root_that_is_a_reference_is_what_it_refers_to() {
        let input = json!({"type": "object", "properties": {"a": {"$ref": "#/$defs/b"}}});
        let schema = json!({"$ref": "#/$defs/input", "$defs": {"input": input, "b": {}}});
        assert_eq!(
            sent(&schema),
            json!({"$defs": schema["$defs"], "type": "object", "properties": input["properties"]})
        );
        // Round in circles, or to nowhere.
        for reference in [
            "#/$defs/a",
            "#/$defs/none",
            "#",
            "https://example.org/s.json",
        ] {
            let schema = json!({"$ref": reference, "$defs": {"a": {"$ref": "#/$defs/a"}}});
            assert_eq!(sent(&schema)["type"], "object", "{reference}");
        }
        let circle = json!({"anyOf": [{"$ref": "#/$defs/a"}], "$defs": {"a": {
            "properties": {"x": {}}, "anyOf": [{"$ref": "#/$defs/a"}],
        }}});
        assert_eq!(sent(&circle)["properties"], json!({"x": {}}));
    }

    #[test]
    fn a_schema_made_to_be_read_for_ever_is_not() {
        let arms = vec![json!({"$ref": "#/$defs/a"}); 50];
        let maze = json!({"$defs": {"a": {"oneOf": arms, "anyOf": arms}}, "oneOf": arms});
        assert_eq!(sent(&maze)["properties"], json!({}));
    }

    fn any_schema() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(json!(true)),
            Just(json!("object")),
            Just(json!({"type": "string"})),
            Just(json!({"$ref": "#/$defs/a"})),
            Just(json!({"required": ["a", 1]})),
        ];
        leaf.prop_recursive(4, 24, 4, |inner| {
            let keyword = prop::sample::select(vec![
                "oneOf",
                "anyOf",
                "allOf",
                "not",
                "enum",
                "properties",
                "$defs",
                "a",
                "type",
            ]);
            let fields = prop::collection::vec((keyword, inner.clone()), 0..4);
            let object = fields.prop_map(|fields| {
                let fields = fields
                    .into_iter()
                    .map(|(name, value)| (name.to_owned(), value));
                Value::Object(fields.collect())
            });
            prop_oneof![
                object,
                prop::collection::vec(inner, 0..3).prop_map(Value::Array)
            ]
        })
    }

    proptest! {
        #[test]
        fn whatever_a_tool_declares_is_sent_as_an_object(schema in any_schema()) {
            let sent = sent(&schema);
            prop_assert_eq!(&sent["type"], "object");
            prop_assert!(sent["properties"].is_object());
            prop_assert!(REFUSED_AT_ROOT.iter().all(|it| sent.get(*it).is_none()), "{}", sent);
            let (again, refused) = parameters(&sent, false);
            prop_assert_eq!((&*again, refused), (&sent, None));
        }
    }
}
