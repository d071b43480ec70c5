use serde_json::{Value, json};
use switchboard_domain::{
    Document, Media, Message, ModelErrorKind, Opaque, Part, ProviderState, Reasoning,
    ReasoningEffort, ResponseFormat, Role, Sampling, ToolChoice, ToolDefinition, ToolInput,
    ToolUse, WarningKind,
};

use super::*;
use crate::capabilities;

/// Maps a request for a server without a profile.
fn mapped_generic<'a>(
    request: &'a ChatRequest,
    model: &'a ModelId,
    can: &ModelCapabilities,
) -> Result<WireRequest<'a>, ModelError> {
    let profile = Profile::generic();
    to_wire_request(request, model, can, &profile, &ToolSchemas::default())
}

fn mapped(request: &ChatRequest, model: &str, profile: &Profile) -> Value {
    let model: ModelId = model.parse().unwrap();
    let capabilities = capabilities(&model.name, profile);
    mapped_with(request, &model, &capabilities, profile)
}

fn mapped_with(
    request: &ChatRequest,
    model: &ModelId,
    capabilities: &ModelCapabilities,
    profile: &Profile,
) -> Value {
    let schemas = ToolSchemas::default();
    let wire = to_wire_request(request, model, capabilities, profile, &schemas).unwrap();
    json!({
        "body": wire.body,
        "tool_choice": wire.tool_choice,
        "warnings": wire.warnings,
    })
}

fn body(request: &ChatRequest) -> Value {
    mapped(request, "litellm/any", &Profile::generic())["body"].take()
}

fn warnings(request: &ChatRequest) -> Vec<(WarningKind, String)> {
    let model = ModelId::new("litellm", "any");
    let wire = mapped_generic(request, &model, &ModelCapabilities::default()).unwrap();
    let pairs = wire.warnings.into_iter();
    pairs.map(|it| (it.kind, it.message)).collect()
}

fn weather() -> ToolDefinition {
    ToolDefinition::new(
        "get_weather",
        "Current weather of a city.",
        json!({
            "type": "object",
            "properties": {"city": {"type": "string"}, "unit": {"enum": ["c", "f"]}},
            "required": ["city"],
        }),
    )
}

fn every_option() -> ChatRequest {
    ChatRequest {
        parallel_tool_use: Some(false),
        response_format: ResponseFormat::JsonSchema {
            name: "answer".into(),
            schema: json!({
                "type": "object",
                "properties": {"celsius": {"type": ["number", "null"]}},
                "required": ["celsius"],
                "additionalProperties": false,
            }),
        },
        sampling: Sampling {
            temperature: Some(0.2),
            top_p: Some(0.9),
            stop: vec!["END".into()],
            seed: Some(7),
        },
        max_output_tokens: Some(512),
        extra: json!({"service_tier": "flex", "seed": 8, "user": "u1"})
            .as_object()
            .cloned()
            .unwrap(),
        ..ChatRequest::new([Message::user("Weather in Hamburg?")])
    }
    .with_tools([weather()])
    .with_tool_choice(ToolChoice::Only(vec!["get_weather".into()]))
}

#[test]
fn extra_wins_over_everything_but_stream() {
    let extra = json!({"model": "other", "stream": false, "top_k": 5, "tool_choice": "none"});
    let request = ChatRequest {
        extra: extra.as_object().cloned().unwrap(),
        ..ChatRequest::new([Message::user("hi")]).with_tools([weather()])
    };
    let text = {
        let model = ModelId::new("p", "m");
        let wire = mapped_generic(&request, &model, &ModelCapabilities::default()).unwrap();
        assert_eq!(wire.warnings[0].kind, WarningKind::OptionDropped);
        serde_json::to_string(&wire.body).unwrap()
    };
    assert_eq!(text.matches("\"model\"").count(), 1, "{text}");
    assert_eq!(text.matches("\"stream\"").count(), 1, "{text}");
    let body: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(body["model"], "other");
    assert_eq!(body["stream"], true);
    assert_eq!(body["top_k"], 5);
    assert_eq!(body["tool_choice"], "none");
}

#[test]
fn reasoning_effort_is_limited_to_the_models_levels() {
    let effort = |model: &str, wanted: Option<ReasoningEffort>, with_tools: bool| {
        let mut request = ChatRequest::new([Message::user("hi")]);
        request.reasoning = wanted;
        if with_tools {
            request = request.with_tools([weather()]);
        }
        let mapped = mapped(&request, model, &Profile::openai());
        let effort = mapped["body"]["reasoning_effort"].clone();
        (effort, mapped["warnings"].as_array().unwrap().len())
    };
    let high = Some(ReasoningEffort::High);
    let none = Some(ReasoningEffort::None);
    // Without tools, the requested effort is sent.
    assert_eq!(effort("openai/gpt-6-luna", high, false), (json!("high"), 0));
    assert_eq!(effort("openai/gpt-6-luna", None, false), (Value::Null, 0));
    // With tools, the effort is `none`, with a warning unless it was requested.
    assert_eq!(effort("openai/gpt-6-luna", high, true), (json!("none"), 1));
    assert_eq!(effort("openai/gpt-6-luna", None, true), (json!("none"), 1));
    assert_eq!(effort("openai/gpt-6-luna", none, true), (json!("none"), 0));
    // This model does not reason by default, so the field is not needed.
    assert_eq!(effort("openai/gpt-5.4", None, true), (Value::Null, 0));
    assert_eq!(effort("openai/gpt-5.4", high, true), (json!("none"), 1));
    // Reasoning of this model cannot be turned off, so the requested effort is sent and the API
    // refuses tools.
    assert_eq!(effort("openai/gpt-6-astra", high, true), (json!("high"), 0));
    assert_eq!(effort("openai/gpt-6-astra", none, false), (Value::Null, 1));
    // This model does not reason.
    assert_eq!(effort("openai/gpt-4.1", high, false), (Value::Null, 1));
    // Older reasoning models accept reasoning together with tools.
    assert_eq!(effort("openai/gpt-5", high, true), (json!("high"), 0));
}

#[test]
fn sampling_options_are_dropped_only_if_the_model_refuses_them() {
    let temperature = |model: &str, value: f64, reasoning: Option<ReasoningEffort>| {
        let mut request = ChatRequest::new([Message::user("hi")]);
        request.sampling.temperature = Some(value);
        request.reasoning = reasoning;
        let mapped = mapped(&request, model, &Profile::openai());
        let sent = mapped["body"]["temperature"].clone();
        (sent, mapped["warnings"].as_array().unwrap().len())
    };
    let none = Some(ReasoningEffort::None);
    assert_eq!(temperature("openai/gpt-4o", 0.0, None), (json!(0.0), 0));
    let expected = (Value::Null, 1);
    assert_eq!(temperature("openai/gpt-6-luna", 0.0, None), expected);
    assert_eq!(temperature("openai/gpt-6-luna", 0.0, none), (json!(0.0), 0));
    assert_eq!(temperature("openai/gpt-5.1", 0.0, None), (json!(0.0), 0));
    // A temperature of 1 is the default, so it is dropped without a warning.
    assert_eq!(temperature("openai/o3", 1.0, None), (Value::Null, 0));
}

#[test]
fn schemas_outside_the_strict_subset_are_sent_unenforced() {
    let mut request = ChatRequest::new([Message::user("hi")]);
    let schema = json!({"type": "object", "additionalProperties": {"type": "string"}});
    let name = "answer".to_owned();
    request.response_format = ResponseFormat::JsonSchema { name, schema };
    assert_eq!(
        body(&request)["response_format"]["json_schema"]["strict"],
        false
    );
    assert_eq!(warnings(&request)[0].0, WarningKind::OptionDropped);

    let unable = ModelCapabilities {
        structured_output: Some(false),
        ..ModelCapabilities::default()
    };
    let model = ModelId::new("p", "m");
    let error = mapped_generic(&request, &model, &unable).unwrap_err();
    assert!(matches!(error.kind, ModelErrorKind::Unsupported { .. }));
    let (deepseek, name) = (Profile::deepseek(), "deepseek-v4-pro");
    let known = capabilities(name, &deepseek);
    let v4 = ModelId::new("deepseek", name);
    let error =
        to_wire_request(&request, &v4, &known, &deepseek, &ToolSchemas::default()).unwrap_err();
    assert!(matches!(error.kind, ModelErrorKind::Unsupported { .. }));

    let name = "my answer".to_owned();
    let schema = json!({});
    request.response_format = ResponseFormat::JsonSchema { name, schema };
    let unknown = ModelCapabilities::default();
    let error = mapped_generic(&request, &model, &unknown).unwrap_err();
    assert!(error.to_string().contains("`my answer`"), "{error}");
}

#[test]
fn the_limits_of_a_server_are_applied() {
    let old = Profile {
        stream_options: false,
        ..Profile::generic()
    };
    let request = ChatRequest {
        max_output_tokens: Some(9),
        ..ChatRequest::new([Message::user("hi")])
    }
    .with_tools([weather()]);
    let mapped = mapped(&request, "old/m", &old);
    assert!(mapped["body"].get("stream_options").is_none());
    assert_eq!(mapped["body"]["max_tokens"], 9);
}

#[test]
fn reasoning_is_disabled_by_the_switch_of_deepseek() {
    let mut request = ChatRequest::new([Message::user("hi")])
        .with_tools([weather()])
        .with_tool_choice(ToolChoice::Required);
    let sent = |request: &ChatRequest| {
        let mapped = mapped(request, "deepseek/deepseek-v4-pro", &Profile::deepseek());
        let field = |name: &str| mapped["body"].get(name).cloned().unwrap_or_default();
        let outcome = mapped["tool_choice"]["outcome"].clone();
        (
            field("reasoning_effort"),
            field("thinking"),
            field("tool_choice"),
            outcome,
        )
    };
    let off = json!({"type": "disabled"});
    // This server reasons by default, and refuses a forced tool choice while the model reasons.
    assert_eq!(
        sent(&request),
        (
            Value::Null,
            off.clone(),
            json!("required"),
            json!("emulated")
        )
    );
    request.reasoning = Some(ReasoningEffort::High);
    let expected = (json!("high"), Value::Null, json!("auto"), json!("relaxed"));
    assert_eq!(sent(&request), expected);
    request.reasoning = Some(ReasoningEffort::None);
    assert_eq!(
        sent(&request),
        (Value::Null, off, json!("required"), json!("native"))
    );
    request.reasoning = None;
    request.tool_choice = ToolChoice::Auto;
    let expected = (Value::Null, Value::Null, json!("auto"), json!("native"));
    assert_eq!(sent(&request), expected);
}

#[test]
fn a_structured_answer_is_requested_whole_if_it_cannot_be_streamed() {
    let groq = Profile::from_name("groq").unwrap();
    let mut request = every_option();
    let body = mapped(&request, "groq/any", &groq)["body"].take();
    assert_eq!(body["stream"], false);
    assert!(body.get("stream_options").is_none());
    request.response_format = ResponseFormat::Text;
    let body = mapped(&request, "groq/any", &groq)["body"].take();
    assert_eq!(body["stream"], true);
    assert!(body.get("stream_options").is_some());
}

#[test]
fn mistral_gets_only_known_fields() {
    let request = every_option();
    let mapped = mapped(&request, "mistral/mistral-large", &Profile::mistral());
    let body = mapped["body"].as_object().unwrap();
    assert!(!body.contains_key("stream_options"));
    assert_eq!(body["random_seed"], 7);
    // A field of the caller's `extra` keeps its name.
    assert_eq!(body["seed"], 8);
    assert!(!body.contains_key("max_completion_tokens"));
}

#[test]
fn xai_gets_the_newer_field_of_the_output_limit() {
    let request = ChatRequest {
        max_output_tokens: Some(100),
        ..ChatRequest::new([Message::system("Be brief."), Message::user("hi")])
    };
    let sent = mapped(&request, "xai/grok-4.3", &Profile::xai());
    let body = &sent["body"];
    assert_eq!(body["max_completion_tokens"], 100);
    assert!(body.get("max_tokens").is_none());
    assert_eq!(body["messages"][0]["role"], "system");
}

#[path = "content_tests.rs"]
mod content;
