//! Tests of server tools: declarations, blocks that are sent back, and paused turns.
#![allow(
    clippy::expect_used,
    reason = "a plain function of a test file counts as production code for clippy"
)]

mod paused;

use serde_json::{Value, json};
use switchboard_domain::{
    ChatModel as _, ChatRequest, ChatResponse, Message, ModelId, ToolChoice, ToolChoiceOutcome,
    ToolDefinition, WarningKind,
};
use switchboard_providers_anthropic::{
    AnthropicConfig, AnthropicModel, CacheLifetime, CachePolicy, Effort, MessagesDecoder,
    MessagesOptions, ServerTool, capabilities,
    messages::{ToolUseIds, events_from_body},
    server_tool::{UserLocation, WebSearch},
    to_wire_request,
};
use switchboard_providers_common::TransportConfig;
use switchboard_providers_common::assemble_response;
use switchboard_providers_common::schema::ToolSchemas;
use switchboard_testkit::fake::{Answer, FakeModel};

/// Returns a web search with every setting, a web fetch and code execution, in the versions that
/// `model` supports.
fn every_tool(model: &str) -> Vec<ServerTool> {
    let search = WebSearch {
        max_uses: Some(3),
        allowed_domains: vec!["example.org".into()],
        user_location: Some(UserLocation {
            city: Some("Kiel".into()),
            country: Some("DE".into()),
            ..UserLocation::default()
        }),
        ..WebSearch::default()
    };
    let (fetch, code) = match model {
        "claude-haiku-4-5" => ("20250910", "20250825"),
        _ => ("20260318", "20260521"),
    };
    let mut fetch = json!({"type": format!("web_fetch_{fetch}"), "name": "web_fetch",
                           "max_content_tokens": 9_000, "citations": {"enabled": true}});
    if model == "claude-haiku-5-5" {
        fetch["allowed_callers"] = json!(["direct"]);
    }
    let code = json!({"type": format!("code_execution_{code}"), "name": "code_execution"});
    vec![ServerTool::WebSearch(search), raw(&fetch), raw(&code)]
}

fn raw(declaration: &Value) -> ServerTool {
    ServerTool::from_declaration(declaration.as_object().cloned().expect("an object"))
}

fn options(model: &str) -> MessagesOptions {
    MessagesOptions {
        server_tools: every_tool(model),
        cache: CachePolicy::Turns {
            lifetime: CacheLifetime::FiveMinutes,
            prefix_lifetime: Some(CacheLifetime::Hour),
        },
        ..MessagesOptions::default()
    }
}

fn weather() -> ToolDefinition {
    let schema = json!({"type": "object", "properties": {"city": {"type": "string"}}});
    ToolDefinition::new("get_weather", "Current weather of a city.", schema)
}

/// Returns the request body and the kinds of the warnings.
fn sent(
    request: &ChatRequest,
    provider: &str,
    model: &str,
    options: &MessagesOptions,
) -> (Value, Vec<WarningKind>) {
    let model = ModelId::new(provider, model);
    let wire = to_wire_request(
        request,
        &model,
        &capabilities(&model.name),
        options,
        &ToolSchemas::default(),
    )
    .expect("it maps");
    let body = serde_json::to_value(&wire.body).expect("it is JSON");
    (body, wire.warnings.into_iter().map(|it| it.kind).collect())
}

/// Returns the blocks of an answer as the server sent them, and the decoded answer.
fn answered(body: &Value, model: &str) -> (Vec<Value>, ChatResponse) {
    let model = ModelId::new("anthropic", model);
    let decoder = MessagesDecoder::new(
        model,
        ToolChoiceOutcome::Native,
        Vec::new(),
        ToolUseIds::default(),
    );
    let answer = events_from_body(decoder, &body.to_string())
        .and_then(|events| assemble_response("anthropic", &events))
        .expect("it is an answer");
    let blocks = body["content"].as_array().cloned().unwrap_or_default();
    (blocks, answer)
}

fn config(fake: &FakeModel, options: MessagesOptions) -> AnthropicConfig {
    AnthropicConfig {
        options,
        transport: TransportConfig {
            system_proxy: false,
            ..TransportConfig::default()
        },
        ..AnthropicConfig::for_compatible_server("anthropic", fake.base_url())
            .with_api_key("sk-secret-1")
    }
}

// `cargo xtask oracle` checks the requests of the tests named `golden_…` against the official SDK's
// types.

#[test]
fn golden_every_server_tool_and_every_breakpoint() {
    let request = ChatRequest::new([
        Message::system("You are a weather service."),
        Message::user("Weather in Kiel?"),
        Message::assistant("12 °C."),
        Message::user("And the mean of the year?"),
    ])
    .with_tools([weather()]);
    for model in ["claude-opus-5-5", "claude-haiku-4-5", "claude-haiku-5-5"] {
        let options = MessagesOptions {
            effort: Some(Effort::XHigh),
            ..options(model)
        };
        let (body, warnings) = sent(&request, "anthropic", model, &options);
        insta::assert_json_snapshot!(format!("request__anthropic__server_tools_on_{model}"), body);
        let effort = (model == "claude-haiku-4-5").then_some(WarningKind::OptionDropped);
        assert_eq!(warnings, Vec::from_iter(effort), "{model}");
    }
}

#[tokio::test]
async fn required_betas_are_sent() {
    let fake = FakeModel::start().await.expect("a free port");
    fake.otherwise(|_, _| Answer::transcript("anthropic/text.sse").expect("it is stored"));
    let request = ChatRequest::new([Message::user("hi")]);
    let ask = async |config: AnthropicConfig| {
        let model = AnthropicModel::new(config, "claude-haiku-4-5").expect("it is valid");
        model.complete(&request).await.expect("it answers");
        let asked = fake.requests().pop().expect("it was asked");
        asked.header("anthropic-beta").map(str::to_owned)
    };
    let all = "own-1,code-execution-2025-08-25,extended-cache-ttl-2025-04-11,web-fetch-2025-09-10";
    let wished = config(&fake, options("claude-haiku-4-5")).with_beta("own-1");
    assert_eq!(ask(wished.clone()).await.as_deref(), Some(all));
    let mut unasked = wished.clone();
    unasked.options.automatic_betas = false;
    assert_eq!(ask(unasked).await.as_deref(), Some("own-1"));
    // A configured `anthropic-beta` header is sent unchanged.
    let own = wished.with_header("anthropic-beta", "mine");
    assert_eq!(ask(own).await.as_deref(), Some("mine"));
    let plain = config(&fake, MessagesOptions::default());
    assert_eq!(ask(plain).await, None);
}

#[test]
fn a_tool_choice_may_name_a_server_tool() {
    let request = |names: &[&str]| {
        ChatRequest::new([Message::user("hi")])
            .with_tools([weather()])
            .with_tool_choice(ToolChoice::Only(
                names.iter().map(|it| (*it).to_owned()).collect(),
            ))
    };
    let sent = |names: &[&str]| {
        let (body, _) = sent(
            &request(names),
            "anthropic",
            "claude-haiku-4-5",
            &options("claude-haiku-4-5"),
        );
        let names = body["tools"].as_array().unwrap().iter();
        let names: Vec<_> = names.map(|it| it["name"].clone()).collect();
        (Value::Array(names), body["tool_choice"].clone())
    };
    let (all, one) = sent(&["web_search"]);
    let expected = json!(["web_search", "web_fetch", "code_execution", "get_weather"]);
    assert_eq!(all, expected);
    assert_eq!(one, json!({"type": "tool", "name": "web_search"}));
    let (two, any) = sent(&["get_weather", "web_fetch"]);
    assert_eq!(two, json!(["web_fetch", "get_weather"]));
    assert_eq!(any, json!({"type": "any"}));
}

#[test]
fn a_declared_tool_replaces_a_server_tool_of_its_name() {
    let schema = json!({"type": "object"});
    let request = ChatRequest::new([Message::user("hi")]).with_tools([ToolDefinition::new(
        "web_search",
        "Ours.",
        schema,
    )]);
    let mut options = options("claude-haiku-4-5");
    let again = json!({"type": "web_fetch_20250910", "name": "web_fetch"});
    options.server_tools.push(raw(&again));
    let (body, warnings) = sent(&request, "anthropic", "claude-haiku-4-5", &options);
    let names = body["tools"].as_array().unwrap().iter();
    let names: Vec<_> = names.map(|it| it["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["web_fetch", "code_execution", "web_search"]);
    assert_eq!(warnings, [WarningKind::ToolUnavailable; 2]);
}

#[test]
fn golden_a_choice_among_server_tools_alone_is_native() {
    let only = |names: &[&str]| ToolChoice::Only(names.iter().map(|it| (*it).into()).collect());
    let (free, native) = ("claude-haiku-5-5", ToolChoiceOutcome::Native);
    let all = ["web_search", "web_fetch", "code_execution"];
    for (name, choice, sent, declared) in [
        ("auto", ToolChoice::Auto, json!({"type": "auto"}), &all[..]),
        ("none", ToolChoice::None, json!({"type": "none"}), &all),
        ("any", ToolChoice::Required, json!({"type": "any"}), &all),
        (
            "one",
            only(&["web_fetch"]),
            json!({"type": "tool", "name": "web_fetch"}),
            &all,
        ),
        ("each", only(&all), json!({"type": "any"}), &all),
    ] {
        let request = ChatRequest::new([Message::user("hi")]).with_tool_choice(choice);
        let (body, outcome, warnings) = chosen(&request, free);
        assert_eq!(body["tool_choice"], sent, "{name}");
        assert_eq!(names(&body), declared, "{name}");
        assert_eq!((outcome, warnings), (native.clone(), vec![]), "{name}");
        insta::assert_json_snapshot!(
            format!("request__anthropic__only_server_tools_{name}"),
            body
        );
    }
    // With a tool choice that names some server tools, only these are declared.
    let some = only(&["web_search", "web_fetch"]);
    let request = ChatRequest::new([Message::user("hi")]).with_tool_choice(some);
    let (body, outcome, warnings) = chosen(&request, free);
    assert_eq!(body["tool_choice"], json!({"type": "any"}));
    assert_eq!(names(&body), ["web_search", "web_fetch"]);
    assert!(matches!(outcome, ToolChoiceOutcome::Emulated { .. }));
    assert!(warnings.is_empty());
}

/// Returns the request body, the outcome of the tool choice and the kinds of the warnings.
fn chosen(request: &ChatRequest, model: &str) -> (Value, ToolChoiceOutcome, Vec<WarningKind>) {
    let model = ModelId::new("anthropic", model);
    let options = options(&model.name);
    let wire = to_wire_request(
        request,
        &model,
        &capabilities(&model.name),
        &options,
        &ToolSchemas::default(),
    )
    .expect("it maps");
    let body = serde_json::to_value(&wire.body).expect("it is JSON");
    let warnings = wire.warnings.iter().map(|it| it.kind).collect();
    (body, wire.tool_choice, warnings)
}

fn names(body: &Value) -> Vec<&str> {
    let tools = body["tools"].as_array().expect("there are tools").iter();
    tools.filter_map(|tool| tool["name"].as_str()).collect()
}
