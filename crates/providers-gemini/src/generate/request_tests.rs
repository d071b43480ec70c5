use serde_json::{Value, json};
use switchboard_domain::{
    Message, ModelErrorKind, ReasoningEffort, Sampling, ToolChoice, ToolDefinition,
};

use super::*;
use crate::capabilities;

const NEW: &str = "gemini-3.8-flash";
const OLD: &str = "gemini-2.5-flash";

fn gemini(name: &str) -> ModelId {
    ModelId::new("gemini", name)
}

fn try_map(
    request: &ChatRequest,
    model: &ModelId,
    options: &GeminiOptions,
) -> Result<(Value, ToolChoiceOutcome, Vec<Warning>), ModelError> {
    let (can, schemas) = (capabilities(&model.name), ToolSchemas::default());
    let wire = to_wire_request(request, model, &can, options, &schemas)?;
    let body = serde_json::to_value(&wire.body).unwrap();
    Ok((body, wire.tool_choice, wire.warnings))
}

fn map(request: &ChatRequest, model: &str) -> (Value, ToolChoiceOutcome, Vec<Warning>) {
    try_map(request, &gemini(model), &GeminiOptions::default()).unwrap()
}

fn refused(request: &ChatRequest, model: &str) -> ModelErrorKind {
    try_map(request, &gemini(model), &GeminiOptions::default())
        .unwrap_err()
        .kind
}

fn weather() -> ToolDefinition {
    ToolDefinition::new(
        "get_weather",
        "Current weather of a city.",
        json!({
            "type": "object",
            "properties": {"city": {"type": "string"}},
            "required": ["city"],
        }),
    )
}

fn list_cities() -> ToolDefinition {
    ToolDefinition::new("list_cities", "", json!({"type": "object"}))
}

fn question() -> ChatRequest {
    ChatRequest::new([Message::user("Weather in Hamburg?")]).with_tools([weather(), list_cities()])
}

fn structured() -> ResponseFormat {
    ResponseFormat::JsonSchema {
        name: "report".into(),
        schema: json!({
            "type": "object",
            "properties": {"degrees": {"type": "number"}},
            "required": ["degrees"],
        }),
    }
}

fn every_option() -> ChatRequest {
    ChatRequest {
        sampling: Sampling {
            temperature: Some(0.2),
            top_p: Some(0.9),
            stop: vec!["END".into()],
            seed: Some(7),
        },
        max_output_tokens: Some(4_000),
        reasoning: Some(ReasoningEffort::Medium),
        response_format: structured(),
        ..ChatRequest::new([Message::user("How warm is it?")])
    }
}

#[test]
fn what_says_nothing_is_not_sent() {
    let (body, _, _) = map(&ChatRequest::new([Message::user("Hi.")]), NEW);
    let expected = json!({"contents": [{"role": "user", "parts": [{"text": "Hi."}]}]});
    assert_eq!(body, expected);
}

#[test]
fn options_beyond_the_wire_are_left_out_and_told() {
    let mut request = every_option();
    request.sampling.stop = (0..7).map(|it| it.to_string()).collect();
    request.sampling.seed = Some(u64::MAX);
    let (body, _, warnings) = map(&request, OLD);
    let config = &body["generationConfig"];
    assert_eq!(config["stopSequences"], json!(["0", "1", "2", "3", "4"]));
    assert_eq!(config.get("seed"), None);
    assert_eq!(warnings.len(), 2);
    let mut request = question();
    request.parallel_tool_use = Some(false);
    assert_eq!(map(&request, NEW).2.len(), 1);
    request.parallel_tool_use = Some(true);
    assert_eq!(map(&request, NEW).2, []);
}

#[test]
fn a_choice_among_what_is_not_there_is_refused() {
    let field = Some("toolConfig.functionCallingConfig.allowedFunctionNames".to_owned());
    let invalid = ModelErrorKind::InvalidRequest { field };
    for (tools, choice) in [
        (vec![weather()], ToolChoice::Only(vec!["nope".into()])),
        (vec![weather()], ToolChoice::Only(vec![])),
        (vec![], ToolChoice::Required),
    ] {
        let request = ChatRequest::new([Message::user("?")]).with_tools(tools);
        assert_eq!(refused(&request.with_tool_choice(choice), NEW), invalid);
    }
    let bare = ChatRequest::new([Message::user("?")]).with_tool_choice(ToolChoice::None);
    assert_eq!(map(&bare, NEW).0.get("toolConfig"), None);
}

#[test]
fn tools_and_a_schema_at_once_only_where_the_model_takes_both() {
    let mut request = question();
    request.response_format = structured();
    let (body, _, _) = map(&request, NEW);
    assert!(body.get("tools").is_some());
    let expected = "application/json";
    assert_eq!(body["generationConfig"]["responseMimeType"], expected);
    assert!(matches!(
        refused(&request, OLD),
        ModelErrorKind::Unsupported { .. }
    ));
    // With the tool choice `None`, only the response schema is sent.
    let request = request.with_tool_choice(ToolChoice::None);
    let (body, outcome, _) = map(&request, OLD);
    assert_eq!(body.get("tools"), None);
    assert!(matches!(outcome, ToolChoiceOutcome::Emulated { .. }));
}

#[test]
fn a_model_without_tools_or_schemas_says_so() {
    let plain = ModelCapabilities {
        tools: Some(false),
        structured_output: Some(false),
        ..ModelCapabilities::default()
    };
    let (model, options) = (gemini("acme"), GeminiOptions::default());
    let try_map = |request: &ChatRequest| {
        let wire = to_wire_request(request, &model, &plain, &options, &ToolSchemas::default());
        wire.map(|wire| (serde_json::to_value(&wire.body).unwrap(), wire.tool_choice))
    };
    let unsupported = |request: &ChatRequest| {
        let kind = try_map(request).unwrap_err().kind;
        assert!(
            matches!(kind, ModelErrorKind::Unsupported { .. }),
            "{kind:?}"
        );
    };
    unsupported(&question());
    unsupported(&every_option());
    let none = question().with_tool_choice(ToolChoice::None);
    let (body, outcome) = try_map(&none).unwrap();
    assert_eq!(body.get("tools"), None);
    assert!(matches!(outcome, ToolChoiceOutcome::Emulated { .. }));
}

#[test]
fn the_older_form_of_schemas_is_sent_where_it_is_asked_for() {
    let options = GeminiOptions {
        schemas: SchemaLanguage::OpenApi,
        include_thoughts: false,
        ..GeminiOptions::default()
    };
    let mut request = question();
    request.response_format = structured();
    request.reasoning = Some(ReasoningEffort::High);
    let (body, _, _) = try_map(&request, &gemini(NEW), &options).unwrap();
    let declared = &body["tools"][0]["functionDeclarations"];
    assert_eq!(declared[0]["parameters"]["type"], "OBJECT");
    assert_eq!(declared[0].get("parametersJsonSchema"), None);
    assert_eq!(declared[1], json!({"name": "list_cities"}));
    let config = &body["generationConfig"];
    assert_eq!(config["responseSchema"]["type"], "OBJECT");
    assert_eq!(config.get("responseJsonSchema"), None);
    assert_eq!(config["thinkingConfig"], json!({"thinkingLevel": "HIGH"}));
}

#[test]
fn fields_of_the_caller_are_merged_and_win() {
    let mut request = question();
    request.max_output_tokens = Some(100);
    request.extra = json!({
        "generationConfig": {"maxOutputTokens": 5, "topK": 3, "thinkingConfig": {"thinkingBudget": 1}},
        "tools": [{"googleSearch": {}}],
        "toolConfig": {"includeServerSideToolInvocations": true, "functionCallingConfig": {"mode": "VALIDATED"}},
        "safetySettings": [],
        "contents": [],
    })
    .as_object()
    .unwrap()
    .clone();
    let (body, _, _) = map(&request, NEW);
    assert_eq!(
        body["generationConfig"],
        json!({"maxOutputTokens": 5, "topK": 3, "thinkingConfig": {"thinkingBudget": 1}})
    );
    assert_eq!(body["tools"].as_array().unwrap().len(), 2);
    assert_eq!(
        body["toolConfig"],
        json!({"functionCallingConfig": {"mode": "VALIDATED"}, "includeServerSideToolInvocations": true})
    );
    assert_eq!(
        (&body["safetySettings"], &body["contents"]),
        (&json!([]), &json!([]))
    );
    // The request has no other settings, and no field is serialized twice.
    let mut bare = ChatRequest::new([Message::user("?")]);
    bare.extra = request.extra;
    let (model, options) = (gemini(NEW), GeminiOptions::default());
    let schemas = ToolSchemas::default();
    let wire = to_wire_request(&bare, &model, &capabilities(NEW), &options, &schemas).unwrap();
    let text = serde_json::to_string(&wire.body).unwrap();
    for field in [
        "generationConfig",
        "tools",
        "toolConfig",
        "contents",
        "safetySettings",
    ] {
        assert_eq!(text.matches(&format!("\"{field}\":")).count(), 1, "{field}");
    }
}
