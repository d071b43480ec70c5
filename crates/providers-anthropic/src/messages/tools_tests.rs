use serde_json::{Value, json};
use switchboard_domain::{Message, ModelErrorKind};
use switchboard_providers_common::tool_names::NameRule;

use super::*;

fn tool(name: &str, schema: Value) -> ToolDefinition {
    ToolDefinition::new(name, "", schema)
}

fn request(choice: ToolChoice) -> ChatRequest {
    let object = || json!({"type": "object"});
    ChatRequest::new([Message::user("hi")])
        .with_tools([
            tool("a", object()),
            tool("b", object()),
            tool("c", object()),
        ])
        .with_tool_choice(choice)
}

fn only(names: &[&str]) -> ToolChoice {
    ToolChoice::Only(names.iter().map(|name| (*name).to_owned()).collect())
}

fn model() -> ModelId {
    ModelId::new("anthropic", "claude-opus-5-5")
}

struct Mapped {
    names: Vec<String>,
    choice: Value,
    outcome: ToolChoiceOutcome,
}

fn map_with(
    request: &ChatRequest,
    capabilities: &ModelCapabilities,
    thinks: bool,
) -> Result<Mapped, ModelError> {
    let options = MessagesOptions::default();
    let names = ToolNames::from_request(request, NameRule::ANTHROPIC);
    let tools = map_tools(
        ToolMappingContext {
            request,
            model: &model(),
            names: &names,
            capabilities,
            options: &options,
            schemas: &ToolSchemas::default(),
            thinks_with_budget: thinks,
        },
        &mut Vec::new(),
    )?;
    Ok(Mapped {
        names: tools
            .declared
            .iter()
            .map(|it| it.name.to_string())
            .collect(),
        choice: json!(tools.choice),
        outcome: tools.outcome,
    })
}

#[test]
fn parallel_calls_can_be_disabled_with_every_choice() {
    for (choice, expected) in [
        (
            ToolChoice::Auto,
            json!({"type": "auto", "disable_parallel_tool_use": true}),
        ),
        (
            ToolChoice::Required,
            json!({"type": "any", "disable_parallel_tool_use": true}),
        ),
        (
            only(&["a"]),
            json!({"type": "tool", "name": "a", "disable_parallel_tool_use": true}),
        ),
        (ToolChoice::None, json!({"type": "none"})),
    ] {
        let mut request = request(choice);
        request.parallel_tool_use = Some(false);
        let mapped = map_with(&request, &ModelCapabilities::default(), false).unwrap();
        assert_eq!(mapped.choice, expected);
        request.parallel_tool_use = Some(true);
        let mapped = map_with(&request, &ModelCapabilities::default(), false).unwrap();
        assert!(mapped.choice.get("disable_parallel_tool_use").is_none());
    }
}

#[test]
fn an_impossible_choice_is_refused() {
    let unknown = ModelCapabilities::default();
    let refuse = |request: &ChatRequest| map_with(request, &unknown, false).err().unwrap();
    for (choice, words) in [
        (only(&["a", "nope"]), "`nope`"),
        (only(&[]), "allows no tool"),
    ] {
        let error = refuse(&request(choice));
        let field = Some("tool_choice".to_owned());
        assert_eq!(error.kind, ModelErrorKind::InvalidRequest { field });
        assert!(error.to_string().contains(words), "{error}");
    }
    let mut bare = request(ToolChoice::Required);
    bare.tools.clear();
    assert!(refuse(&bare).to_string().contains("none is declared"));
    bare.tool_choice = ToolChoice::None;
    let nothing = map_with(&bare, &unknown, false).unwrap();
    assert_eq!(nothing.choice, Value::Null);
}

#[test]
fn no_tools_are_sent_to_a_model_without_tool_use() {
    let without = ModelCapabilities {
        tools: Some(false),
        ..ModelCapabilities::default()
    };
    let error = map_with(&request(ToolChoice::Auto), &without, false).err();
    assert!(matches!(
        error.unwrap().kind,
        ModelErrorKind::Unsupported { .. }
    ));
    let none = map_with(&request(ToolChoice::None), &without, false).unwrap();
    assert!(none.names.is_empty());
    assert!(matches!(none.outcome, ToolChoiceOutcome::Emulated { .. }));
}

#[test]
fn a_changed_schema_root_has_a_warning() {
    let schema = json!({
        "type": "object", "properties": {"a": {}, "b": {}},
        "anyOf": [{"required": ["a"]}, {"required": ["b"]}],
    });
    let request = ChatRequest::new([Message::user("hi")]).with_tools([tool("t", schema)]);
    let mut warnings = Vec::new();
    let options = MessagesOptions::default();
    let unknown = ModelCapabilities::default();
    let names = ToolNames::from_request(&request, NameRule::ANTHROPIC);
    let tools = map_tools(
        ToolMappingContext {
            request: &request,
            model: &model(),
            names: &names,
            capabilities: &unknown,
            options: &options,
            schemas: &ToolSchemas::default(),
            thinks_with_budget: false,
        },
        &mut warnings,
    )
    .unwrap();
    let kinds: Vec<_> = warnings.iter().map(|it| it.kind).collect();
    assert_eq!(kinds, [WarningKind::PartDowngraded]);
    let sent = json!(tools.declared[0].input_schema);
    assert!(sent.get("anyOf").is_none());
    let told = sent["description"].as_str().unwrap();
    assert!(told.contains("One of these forms: {a} | {b}."), "{told}");
    assert!(tools.tool_mapping.is_empty());
}

#[test]
fn strict_tools_respect_the_limits_of_the_api() {
    let closed = |optional: usize| {
        let names = (0..optional).map(|it| (format!("p{it}"), json!({"type": "string"})));
        let properties: serde_json::Map<_, _> = names.collect();
        json!({"type": "object", "properties": properties, "additionalProperties": false})
    };
    let strict = |schemas: Vec<Value>, capabilities: &ModelCapabilities| {
        let numbered = schemas.into_iter().enumerate();
        let definitions = numbered.map(|(at, schema)| tool(&format!("t{at}"), schema));
        let request = ChatRequest::new([Message::user("hi")]).with_tools(definitions);
        let options = MessagesOptions {
            strict_tools: true,
            ..MessagesOptions::default()
        };
        let mut warnings = Vec::new();
        let names = ToolNames::from_request(&request, NameRule::ANTHROPIC);
        let tools = map_tools(
            ToolMappingContext {
                request: &request,
                model: &model(),
                names: &names,
                capabilities,
                options: &options,
                schemas: &ToolSchemas::default(),
                thinks_with_budget: false,
            },
            &mut warnings,
        )
        .unwrap();
        let flags: Vec<bool> = tools.declared.iter().map(|it| it.strict).collect();
        (flags, warnings.len())
    };
    let unknown = ModelCapabilities::default();
    let constrained =
        json!({"type": "object", "properties": {"n": {"type": "integer", "minimum": 1}}});
    assert_eq!(
        strict(
            vec![closed(2), constrained, json!({"type": "object"})],
            &unknown
        ),
        (vec![true, false, false], 1)
    );
    assert_eq!(strict(vec![closed(2)], &unknown), (vec![true], 0));
    // All strict tools together may have 24 optional properties, and there may be 20 strict tools.
    assert_eq!(
        strict(vec![closed(20), closed(5), closed(4)], &unknown).0,
        [true, false, true]
    );
    let many = strict(vec![closed(0); 21], &unknown).0;
    assert_eq!(many.iter().filter(|it| **it).count(), 20);
    let unable = ModelCapabilities {
        structured_output: Some(false),
        ..ModelCapabilities::default()
    };
    assert_eq!(strict(vec![closed(0)], &unable), (vec![false], 1));
}
