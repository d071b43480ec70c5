use proptest::prelude::*;

use super::*;

fn strict_profile() -> Profile {
    Profile {
        strict_tools: true,
        ..Profile::openai()
    }
}

fn declared(schema: &Value, profile: &Profile) -> (Value, bool, bool, Vec<String>) {
    let tool = Arc::new(ToolDefinition::new("t", "", schema.clone()));
    let mut warnings = Vec::new();
    let sent = compile_parameters(&tool, profile, &ToolSchemas::default(), &mut warnings);
    let messages = warnings.into_iter().map(|it| it.message);
    (
        sent.schema.schema.clone().into_owned(),
        sent.strict,
        sent.strict && sent.schema.needs_restore(),
        messages.collect(),
    )
}

fn loose(schema: &Value) -> Value {
    declared(schema, &Profile::openai()).0
}

fn either() -> Value {
    let arm = |name: &str| json!({"properties": {name: {"type": "string"}}, "required": [name]});
    json!({"type": "object", "oneOf": [arm("city"), arm("zip")]})
}

#[test]
fn alternatives_at_the_root_are_one_object_and_the_warning_names_tool_and_place() {
    let (sent, strict, _, warnings) = declared(&either(), &Profile::openai());
    let expected = json!({"city": {"type": "string"}, "zip": {"type": "string"}});
    assert_eq!(sent["properties"], expected);
    assert_eq!((sent.get("oneOf"), strict), (None, false));
    assert_eq!(warnings.len(), 1);
    assert!(
        warnings[0].starts_with("the input schema of tool `t` was changed: root: "),
        "{}",
        warnings[0]
    );
    // The constraint of `not` is stated in the description.
    let not = json!({"type": "object", "properties": {"a": {}}, "not": {"required": ["b"]}});
    let (sent, _, _, warnings) = declared(&not, &Profile::openai());
    assert!(sent["description"].is_string() && sent.get("not").is_none());
    assert_eq!(warnings, [""; 0]);
}

#[test]
fn root_combinators_stay_for_servers_that_support_them() {
    let (sent, _, _, warnings) = declared(&either(), &Profile::llamacpp());
    let mut expected = either();
    expected["properties"] = json!({});
    assert_eq!((sent, warnings), (expected, Vec::new()));
    let untyped = json!({"anyOf": [{"properties": {"a": {}}}]});
    let (sent, ..) = declared(&untyped, &Profile::vllm());
    assert_eq!(
        sent,
        json!({"anyOf": untyped["anyOf"], "type": "object", "properties": {}})
    );
    // A root with `$ref` is compiled, although the server allows combinators at the root.
    let reference = json!({"$ref": "#/definitions/a", "definitions": {"a": either()}});
    let (sent, ..) = declared(&reference, &Profile::vllm());
    assert_eq!((&sent["type"], sent.get("$ref")), (&json!("object"), None));
}

#[test]
fn tools_are_strict_if_configured_and_faithful() {
    let schema = json!({
        "type": "object",
        "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
        "required": ["city"],
    });
    let (sent, strict, reshapes, warnings) = declared(&schema, &strict_profile());
    assert!(strict && reshapes && warnings.is_empty(), "{warnings:?}");
    assert_eq!(sent["required"], json!(["city", "days"]));
    let expected = json!(["integer", "null"]);
    assert_eq!(sent["properties"]["days"]["type"], expected);
    assert_eq!(sent["additionalProperties"], false);
    // All properties are required, so the shape does not change.
    let mut whole = schema.clone();
    whole["required"] = json!(["city", "days"]);
    let (_, strict, reshapes, _) = declared(&whole, &strict_profile());
    assert!(strict && !reshapes);
    // Strict tools are off in every profile.
    for name in Profile::NAMES {
        let profile = Profile::from_name(name).unwrap();
        assert!(!declared(&whole, &profile).1, "{name}");
    }
    let without = json!({"type": "object", "properties": {}});
    assert!(declared(&without, &strict_profile()).1);
}

#[test]
fn a_schema_outside_the_strict_subset_is_sent_loose_with_a_warning() {
    let any_keys = json!({"type": "object", "additionalProperties": {"type": "number"}});
    let more_keys = json!({
        "type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"],
        "additionalProperties": {"type": "number"},
    });
    let bounded = json!({
        "type": "object", "required": ["city"],
        "properties": {"city": {"type": "string", "minLength": 1}},
    });
    for (schema, place) in [
        (any_keys, "root: additional keys are not supported"),
        (more_keys, "root: additional keys are not supported"),
        (bounded, "/properties/city: `minLength`"),
        (json!({"type": "object"}), OPEN_OBJECT),
        (
            either(),
            "root: `oneOf` of the root was merged into one object",
        ),
        (
            json!({"type": "array", "items": {"type": "string"}}),
            "root: the root is not an object",
        ),
    ] {
        let (sent, strict, reshapes, warnings) = declared(&schema, &strict_profile());
        assert!(!strict && !reshapes, "{schema}");
        assert_eq!(sent, loose(&schema));
        let begin = format!("the API does not enforce the input schema of tool `t`: {place}");
        assert!(warnings[0].starts_with(&begin), "{}", warnings[0]);
    }
}

fn answered(schema: &Value, profile: &Profile) -> (Value, bool, bool, Vec<String>) {
    let mut warnings = Vec::new();
    let sent = compile_answer_schema("n", schema, profile, &mut warnings);
    let messages = warnings.into_iter().map(|it| it.message).collect();
    (
        sent.schema.into_owned(),
        sent.strict,
        sent.needs_restore,
        messages,
    )
}

#[test]
fn an_answer_schema_is_enforced_as_far_as_possible() {
    let openai = Profile::openai();
    let optional = json!({"type": "object", "properties": {"a": {"type": "string"}}});
    let (sent, strict, reshapes, warnings) = answered(&optional, &openai);
    assert!(strict && reshapes && warnings.is_empty());
    assert_eq!(sent["properties"]["a"]["type"], json!(["string", "null"]));

    let bounded = json!({
        "type": "object", "required": ["a"], "additionalProperties": false,
        "properties": {"a": {"type": "string", "minLength": 1}},
    });
    let (_, strict, reshapes, warnings) = answered(&bounded, &openai);
    assert!(strict && !reshapes);
    assert_eq!(
        warnings,
        [
            "the API does not enforce all of schema `n`: /properties/a: `minLength` moved to the \
             description"
        ]
    );

    let list = json!({"type": "array", "items": {"type": "integer"}});
    let (sent, strict, reshapes, warnings) = answered(&list, &openai);
    assert!(strict && reshapes && warnings.is_empty());
    assert_eq!(sent["properties"]["value"], list);

    let free =
        json!({"type": "object", "properties": {"a": {"type": "object"}}, "required": ["a"]});
    let (sent, strict, reshapes, warnings) = answered(&free, &openai);
    assert!(strict && reshapes && warnings.is_empty(), "{warnings:?}");
    assert_eq!(sent["properties"]["a"]["type"], "string");
}

#[test]
fn an_answer_schema_that_strict_mode_would_narrow_is_not_enforced() {
    for schema in [
        json!({"type": "object"}),
        json!({"type": "object", "additionalProperties": {"type": "number"}}),
        json!({"type": "object", "properties": {"a": {}}, "additionalProperties": true}),
    ] {
        let (sent, strict, reshapes, warnings) = answered(&schema, &Profile::openai());
        assert!(!strict && !reshapes, "{schema}");
        assert_eq!(sent, loose(&schema));
        assert_eq!(warnings.len(), 1);
        assert!(warnings[0].contains("`n`"), "{}", warnings[0]);
    }
}

#[test]
fn a_server_with_all_of_json_schema_gets_the_unchanged_schema() {
    for schema in [
        either(),
        json!({"type": "array"}),
        json!({"type": "object"}),
    ] {
        for profile in [Profile::llamacpp(), Profile::vllm()] {
            let (sent, strict, reshapes, warnings) = answered(&schema, &profile);
            assert_eq!(sent, schema);
            assert!(strict && !reshapes && warnings.is_empty());
        }
    }
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
    fn any_declared_schema_is_sent_as_an_object(schema in any_schema(), wanted in any::<bool>()) {
        let profile = Profile { strict_tools: wanted, ..Profile::openai() };
        let (sent, strict, ..) = declared(&schema, &profile);
        prop_assert_eq!(&sent["type"], "object");
        prop_assert!(sent["properties"].is_object());
        prop_assert!(REFUSED_AT_ROOT.iter().all(|it| sent.get(*it).is_none()), "{}", sent);
        prop_assert!(wanted || !strict);
        if strict {
            let names: Vec<&String> = sent["properties"].as_object().unwrap().keys().collect();
            prop_assert_eq!(&sent["required"], &json!(names));
            prop_assert_eq!(&sent["additionalProperties"], &json!(false));
        }
        let (again, _, _, warnings) = declared(&sent, &Profile::openai());
        prop_assert_eq!((&again, warnings.len()), (&sent, 0));
    }
}
