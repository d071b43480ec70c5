use serde_json::json;
use switchboard_domain::{
    Message, ModelErrorKind, Part, ProviderState, Reasoning, ReasoningEffort, ResponseFormat, Role,
    ToolDefinition, ToolInput, ToolResult, ToolUse,
};

use super::*;
use crate::{Effort, capabilities};

fn mapped_with(request: &ChatRequest, model: &str, options: &MessagesOptions) -> Value {
    let model = ModelId::new("anthropic", model);
    let capabilities = capabilities(&model.name);
    let schemas = ToolSchemas::default();
    let wire = to_wire_request(request, &model, &capabilities, options, &schemas).unwrap();
    json!({
        "body": wire.body,
        "tool_choice": wire.tool_choice,
        "warnings": wire.warnings,
    })
}

fn mapped(request: &ChatRequest, model: &str) -> Value {
    mapped_with(request, model, &MessagesOptions::default())
}

fn refusal(request: &ChatRequest, model: &str) -> ModelError {
    let model = ModelId::new("anthropic", model);
    let options = MessagesOptions::default();
    let (can, schemas) = (capabilities(&model.name), ToolSchemas::default());
    let error = to_wire_request(request, &model, &can, &options, &schemas);
    error.unwrap_err()
}

fn kinds(mapped: &Value) -> Vec<&str> {
    let warnings = mapped["warnings"].as_array().unwrap().iter();
    warnings.map(|it| it["kind"].as_str().unwrap()).collect()
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

fn minted(model: &str, data: Value) -> ProviderState {
    ProviderState::new_for_model(&ModelId::new("anthropic", model), data)
}

fn thought(text: &str, provider_state: ProviderState) -> Part {
    Part::Reasoning(Reasoning {
        text: text.into(),
        provider_state: Some(provider_state),
    })
}

fn schema_format() -> ResponseFormat {
    ResponseFormat::JsonSchema {
        name: "answer".into(),
        schema: json!({
            "type": "object",
            "properties": {"celsius": {"type": ["number", "null"], "minimum": -90}},
            "required": ["celsius"],
        }),
    }
}

#[test]
fn extra_fields_override_everything_but_stream() {
    let extra = json!({"model": "other", "stream": false, "top_k": 5, "max_tokens": 7});
    let request = ChatRequest {
        extra: extra.as_object().cloned().unwrap(),
        ..ChatRequest::new([Message::user("hi")])
    };
    let model = ModelId::new("p", "m");
    let options = MessagesOptions::default();
    let (unknown, schemas) = (ModelCapabilities::default(), ToolSchemas::default());
    let wire = to_wire_request(&request, &model, &unknown, &options, &schemas).unwrap();
    assert_eq!(wire.warnings[0].kind, WarningKind::OptionDropped);
    let text = serde_json::to_string(&wire.body).unwrap();
    assert_eq!(text.matches("\"model\"").count(), 1, "{text}");
    assert_eq!(text.matches("\"stream\"").count(), 1, "{text}");
    let body: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(body["model"], "other");
    assert_eq!(body["stream"], true);
    assert_eq!(body["top_k"], 5);
    assert_eq!(body["max_tokens"], 7);
}

#[test]
fn max_tokens_is_always_sent_and_at_most_the_models_maximum() {
    let sent = |model: &str, wanted: Option<u32>, default: Option<u32>| {
        let request = ChatRequest {
            max_output_tokens: wanted,
            ..ChatRequest::new([Message::user("hi")])
        };
        let options = MessagesOptions {
            default_max_tokens: default,
            ..MessagesOptions::default()
        };
        let mapped = mapped_with(&request, model, &options);
        let warnings = kinds(&mapped).len();
        (mapped["body"]["max_tokens"].as_u64().unwrap(), warnings)
    };
    assert_eq!(sent("claude-opus-5-5", None, None), (32_000, 0));
    assert_eq!(sent("claude-3-5-haiku-20241022", None, None), (8_192, 0));
    assert_eq!(sent("kimi-k3", None, None), (8_192, 0));
    assert_eq!(sent("kimi-k3", None, Some(100)), (100, 0));
    assert_eq!(sent("kimi-k3", Some(500_000), None), (500_000, 0));
    assert_eq!(sent("claude-opus-5-5", Some(500_000), None), (128_000, 1));
}

#[test]
fn thinking_uses_the_mode_of_the_model() {
    let sent = |model: &str, wanted: ReasoningEffort| {
        let request = ChatRequest {
            reasoning: Some(wanted),
            ..ChatRequest::new([Message::user("hi")])
        };
        let mut mapped = mapped(&request, model);
        let warnings = kinds(&mapped).len();
        let effort = mapped["body"]["output_config"]["effort"].take();
        (mapped["body"]["thinking"].take(), effort, warnings)
    };
    let (none, low, high) = (
        ReasoningEffort::None,
        ReasoningEffort::Low,
        ReasoningEffort::High,
    );
    let adaptive = || json!({"type": "adaptive", "display": "summarized"});
    let disabled = || json!({"type": "disabled"});
    let budget = |tokens: u32| json!({"type": "enabled", "budget_tokens": tokens});
    let null = Value::Null;
    for (model, wanted, thinking, effort, warnings) in [
        ("claude-opus-5-5", high, adaptive(), json!("high"), 0),
        ("claude-sonnet-4-6", low, adaptive(), json!("low"), 0),
        ("claude-next", low, adaptive(), json!("low"), 0),
        ("claude-haiku-4-5", high, budget(16_000), null.clone(), 0),
        ("claude-haiku-4-5", low, budget(2_000), null.clone(), 0),
        ("kimi-k3", high, budget(4_096), null.clone(), 0),
        (
            "claude-3-5-haiku-20241022",
            high,
            null.clone(),
            null.clone(),
            1,
        ),
        (
            "claude-3-5-haiku-20241022",
            none,
            null.clone(),
            null.clone(),
            0,
        ),
        ("claude-haiku-4-5", none, disabled(), null.clone(), 0),
        ("claude-haiku-5-5", none, disabled(), null.clone(), 0),
        (
            "claude-sonnet-5-5",
            none,
            json!({"type": "between_tools"}),
            null.clone(),
            1,
        ),
        ("claude-fable-5-2", none, null.clone(), json!("low"), 1),
    ] {
        assert_eq!(sent(model, wanted), (thinking, effort, warnings), "{model}");
    }
    let quiet = mapped(&ChatRequest::new([Message::user("hi")]), "claude-opus-5-5");
    assert!(quiet["body"].get("thinking").is_none());
    // The thinking budget must be less than the output limit.
    let small = ChatRequest {
        reasoning: Some(high),
        max_output_tokens: Some(1_024),
        ..ChatRequest::new([Message::user("hi")])
    };
    let small = mapped(&small, "claude-haiku-4-5");
    assert!(small["body"].get("thinking").is_none());
    assert_eq!(kinds(&small), ["option_dropped"]);
}

#[test]
fn a_configured_effort_is_lowered_to_the_models_maximum() {
    let sent = |model: &str, wanted: Effort, reasoning: Option<ReasoningEffort>| {
        let request = ChatRequest {
            reasoning,
            ..ChatRequest::new([Message::user("hi")])
        };
        let options = MessagesOptions {
            effort: Some(wanted),
            ..MessagesOptions::default()
        };
        let mut mapped = mapped_with(&request, model, &options);
        let warnings = kinds(&mapped).len();
        (mapped["body"]["output_config"]["effort"].take(), warnings)
    };
    let low = Some(ReasoningEffort::Low);
    let off = Some(ReasoningEffort::None);
    for (model, wanted, reasoning, effort, warnings) in [
        ("claude-opus-5-5", Effort::Max, None, json!("max"), 0),
        ("claude-opus-5-5", Effort::XHigh, low, json!("xhigh"), 0),
        ("claude-opus-4-6", Effort::XHigh, low, json!("high"), 1),
        ("claude-opus-4-6", Effort::Max, low, json!("max"), 0),
        ("claude-opus-4-5", Effort::Max, low, json!("high"), 1),
        ("claude-haiku-4-5", Effort::Low, low, Value::Null, 1),
        ("kimi-k3", Effort::Max, None, json!("max"), 0),
        // With thinking off, the API refuses an effort above `high`.
        ("claude-haiku-5-5", Effort::Max, off, json!("high"), 1),
    ] {
        let told = sent(model, wanted, reasoning);
        assert_eq!(told, (effort, warnings), "{model} {wanted:?}");
    }
}

#[test]
fn thinking_between_calls_needs_a_beta_on_older_models_only() {
    let betas = |model: &str, tools: bool| {
        let mut request = ChatRequest {
            reasoning: Some(ReasoningEffort::Low),
            ..ChatRequest::new([Message::user("hi")])
        };
        if tools {
            request = request.with_tools([weather()]);
        }
        let options = MessagesOptions {
            interleaved_thinking: true,
            ..MessagesOptions::default()
        };
        let model = ModelId::new("anthropic", model);
        let capabilities = capabilities(&model.name);
        let schemas = ToolSchemas::default();
        let wire = to_wire_request(&request, &model, &capabilities, &options, &schemas).unwrap();
        wire.betas
    };
    let beta = ["interleaved-thinking-2025-05-14"];
    assert_eq!(betas("claude-haiku-4-5", true), beta);
    assert!(betas("claude-haiku-4-5", false).is_empty());
    assert!(betas("claude-opus-4-6", true).is_empty());
    assert!(betas("claude-3-7-sonnet-20250219", true).is_empty());
}

#[test]
fn thinking_with_a_budget_needs_the_thinking_before_the_calls() {
    let request = |minter: &str| ChatRequest {
        reasoning: Some(ReasoningEffort::Medium),
        ..ChatRequest::new([
            Message::user("Weather?"),
            Message::new(
                Role::Assistant,
                [
                    thought("hm", minted(minter, json!({"signature": "s"}))),
                    Part::ToolUse(ToolUse::new(
                        "t",
                        "get_weather",
                        ToolInput::parse_input("{}"),
                    )),
                ],
            ),
            Message::from_tool_results([ToolResult::text("t", "get_weather", "rain")]),
        ])
    };
    let own = mapped(&request("claude-haiku-4-5"), "claude-haiku-4-5");
    assert_eq!(own["body"]["thinking"]["type"], "enabled");
    assert!(kinds(&own).is_empty());
    let foreign = mapped(&request("claude-opus-4-5"), "claude-haiku-4-5");
    assert!(foreign["body"].get("thinking").is_none());
    assert_eq!(kinds(&foreign), ["part_dropped", "option_dropped"]);
    // With adaptive thinking, the conversation may lack earlier thinking.
    let adaptive = mapped(&request("claude-opus-4-5"), "claude-opus-4-6");
    assert_eq!(adaptive["body"]["thinking"]["type"], "adaptive");
}

#[test]
fn sampling_is_dropped_only_where_it_would_be_refused() {
    let sent = |model: &str, options: &MessagesOptions, change: &dyn Fn(&mut ChatRequest)| {
        let mut request = ChatRequest::new([Message::user("hi")]);
        request.sampling.temperature = Some(0.5);
        change(&mut request);
        let mut mapped = mapped_with(&request, model, options);
        let warnings = kinds(&mapped).len();
        let body = &mut mapped["body"];
        (body["temperature"].take(), body["top_p"].take(), warnings)
    };
    let (old, new) = (
        MessagesOptions::default(),
        MessagesOptions {
            api_version: "2026-10-21".into(),
            ..MessagesOptions::default()
        },
    );
    let null = Value::Null;
    let as_is = |_: &mut ChatRequest| {};
    let both = |request: &mut ChatRequest| request.sampling.top_p = Some(0.9);
    let half = json!(0.5);
    assert_eq!(
        sent("claude-haiku-4-5", &old, &as_is),
        (half.clone(), null.clone(), 0)
    );
    assert_eq!(
        sent("claude-haiku-4-5", &new, &as_is),
        (null.clone(), null.clone(), 1)
    );
    assert_eq!(
        sent("claude-opus-4-7", &old, &as_is),
        (null.clone(), null.clone(), 1)
    );
    // Claude 4.5 accepts only one of `temperature` and `top_p`, other models accept both.
    assert_eq!(
        sent("claude-haiku-4-5", &old, &both),
        (half.clone(), null.clone(), 1)
    );
    assert_eq!(sent("kimi-k3", &old, &both), (half, json!(0.9), 0));
    // A temperature of 1 is the default, so it is dropped without a warning.
    let one = |request: &mut ChatRequest| request.sampling.temperature = Some(1.0);
    assert_eq!(
        sent("claude-opus-5-5", &old, &one),
        (null.clone(), null.clone(), 0)
    );
    let hot = |request: &mut ChatRequest| request.sampling.temperature = Some(1.7);
    assert_eq!(
        sent("claude-haiku-4-5", &old, &hot),
        (json!(1.0), null.clone(), 1)
    );
    // With thinking, the API accepts no `temperature` and only a high `top_p`.
    let thinking = |request: &mut ChatRequest| {
        request.reasoning = Some(ReasoningEffort::Low);
        request.sampling.top_p = Some(0.96);
    };
    assert_eq!(
        sent("claude-sonnet-4-6", &old, &thinking),
        (null, json!(0.96), 1)
    );
}

#[test]
fn a_schema_that_cannot_be_enforced_is_added_to_the_instructions() {
    let mut request = ChatRequest::new([Message::system("Be brief."), Message::user("hi")]);
    let schema = json!({"type": "object", "additionalProperties": {"type": "string"}});
    let name = "map".to_owned();
    request.response_format = ResponseFormat::JsonSchema { name, schema };
    let told = mapped(&request, "claude-opus-5-5");
    assert!(told["body"].get("output_config").is_none());
    let system = told["body"]["system"].as_array().unwrap();
    assert_eq!(system.len(), 2);
    let text = system[1]["text"].as_str().unwrap();
    assert!(
        text.contains(r#""additionalProperties":{"type":"string"}"#),
        "{text}"
    );
    assert_eq!(kinds(&told), ["option_dropped"]);

    request.response_format = schema_format();
    let error = refusal(&request, "claude-3-5-haiku-20241022");
    assert!(matches!(error.kind, ModelErrorKind::Unsupported { .. }));
    // The API can enforce this schema, so there is no warning.
    let schema = json!({"type": "object", "properties": {"a": {"type": "string"}}});
    let name = "plain".to_owned();
    request.response_format = ResponseFormat::JsonSchema { name, schema };
    let plain = mapped(&request, "kimi-k3");
    assert!(kinds(&plain).is_empty());
    let format = &plain["body"]["output_config"]["format"];
    assert_eq!(format["schema"]["additionalProperties"], false);
}

#[test]
fn a_request_without_a_message_is_refused_before_it_is_sent() {
    for request in [
        ChatRequest::default(),
        ChatRequest::new([Message::system("Be brief.")]),
        ChatRequest::new([Message::user(" \n")]),
    ] {
        let error = refusal(&request, "claude-opus-5-5");
        let field = Some("messages".to_owned());
        assert_eq!(error.kind, ModelErrorKind::InvalidRequest { field });
    }
}
