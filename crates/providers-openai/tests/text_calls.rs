//! Tests of tool calls that a model writes as text, by itself or because the prompt describes
//! tools.
#![allow(
    clippy::expect_used,
    reason = "a plain function of a test file counts as production code for clippy"
)]

use serde_json::{Value, json};
use switchboard_domain::{
    ChatModel, ChatRequest, FinishReason, Message, ModelCapabilities, ModelErrorKind, ToolChoice,
    ToolChoiceOutcome, ToolDefinition, ToolResult,
};
use switchboard_providers_common::{
    TransportConfig,
    text_tool_calls::{TextCallFormat, TextCallFormats},
};
use switchboard_providers_openai::{OpenAiChatModel, OpenAiConfig, Profile};
use switchboard_testkit::fake::{Answer, FakeModel, Say};

const CALL: &str =
    "<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Bonn\"}}\n</tool_call>";

async fn server() -> FakeModel {
    FakeModel::start().await.expect("a free port")
}

fn model(fake: &FakeModel, profile: Profile) -> OpenAiChatModel {
    let config = OpenAiConfig {
        transport: TransportConfig {
            system_proxy: false,
            ..TransportConfig::default()
        },
        ..OpenAiConfig::for_compatible_server("acme", format!("{}/v1", fake.base_url()))
    };
    OpenAiChatModel::new(config.with_profile(profile), "acme-1").expect("a valid configuration")
}

fn toolless() -> ModelCapabilities {
    ModelCapabilities {
        tools: Some(false),
        ..ModelCapabilities::default()
    }
}

fn question() -> ChatRequest {
    let schema = json!({"type": "object", "properties": {"city": {"type": "string"}}});
    ChatRequest::new([Message::user("Weather in Bonn?")]).with_tools([ToolDefinition::new(
        "get_weather",
        "The weather of a city.",
        schema,
    )])
}

#[tokio::test]
async fn a_call_in_text_becomes_a_tool_use_if_the_profile_allows_it() {
    let fake = server().await;
    fake.otherwise(|_, _| Answer::openai_chat([Say::text("I look. "), Say::text(CALL)]));
    let one_form = Profile {
        recovery: TextCallFormats::from_forms(&[TextCallFormat::ToolCallTag]),
        ..Profile::generic()
    };
    for profile in [Profile::llamacpp(), one_form] {
        let answer = model(&fake, profile).complete(&question()).await.unwrap();
        assert_eq!(answer.finish, FinishReason::ToolUse);
        assert_eq!(answer.message.text().trim(), "I look.");
        let calls: Vec<_> = answer.message.tool_uses().collect();
        assert_eq!(calls.len(), 1);
        assert_eq!(calls[0].name, "get_weather");
        let expected = json!({"city": "Bonn"});
        assert_eq!(calls[0].input.as_object(), expected.as_object());
    }
    // The request declared the tools, although the model writes calls as text.
    let sent = fake.request(0).await;
    let expected = json!("get_weather");
    assert_eq!(sent.json()["tools"][0]["function"]["name"], expected);
}

#[tokio::test]
async fn calls_in_text_are_not_recovered_unless_the_profile_allows_it() {
    let fake = server().await;
    fake.otherwise(|_, _| Answer::openai_chat([Say::text(CALL)]));
    let other_form = Profile {
        recovery: TextCallFormats::from_forms(&[TextCallFormat::MistralToken]),
        ..Profile::generic()
    };
    for profile in [Profile::generic(), Profile::vllm(), other_form] {
        let answer = model(&fake, profile).complete(&question()).await.unwrap();
        assert_eq!(answer.finish, FinishReason::Stop);
        assert_eq!(answer.message.text(), CALL);
        assert_eq!(answer.message.tool_uses().count(), 0);
    }
    // With the tool choice `None`, the text is not searched for calls.
    let request = question().with_tool_choice(ToolChoice::None);
    let llamacpp = model(&fake, Profile::llamacpp());
    let answer = llamacpp.complete(&request).await.unwrap();
    assert_eq!(answer.message.text(), CALL);
}

/// Joins the parts of a text message.
fn text(message: &Value) -> String {
    match &message["content"] {
        Value::Array(parts) => parts.iter().filter_map(|it| it["text"].as_str()).collect(),
        content => content.as_str().unwrap_or_default().to_owned(),
    }
}

#[tokio::test]
async fn prompted_tools_work_over_a_whole_round() {
    let by_prompt = Profile {
        tools_by_prompt: true,
        ..Profile::generic()
    };
    let fake = server().await;
    let known = model(&fake, Profile::generic()).with_capabilities(toolless());
    for model in [model(&fake, by_prompt), known] {
        let before = fake.requests().len();
        fake.answer(Answer::openai_chat([Say::text(CALL)]));
        let mut request = question();
        let answer = model.complete(&request).await.unwrap();
        assert_eq!(answer.finish, FinishReason::ToolUse);
        assert!(
            matches!(answer.tool_choice, ToolChoiceOutcome::Emulated { .. }),
            "{:?}",
            answer.tool_choice
        );
        let call = answer.message.tool_uses().next().unwrap().clone();
        assert_eq!(call.name, "get_weather");

        let results =
            Message::from_tool_results([ToolResult::text(&call.id, &call.name, "12 degrees")]);
        request
            .messages
            .extend([answer.message.into(), results.into()]);
        fake.answer(Answer::openai_chat([Say::text("It is 12 degrees.")]));
        let last = model.complete(&request).await.unwrap();
        let expected = ("It is 12 degrees.", FinishReason::Stop);
        assert_eq!((last.message.text().as_str(), last.finish), expected);

        // In a request without tools, earlier calls and results are sent as text, too.
        request.tools.clear();
        fake.answer(Answer::openai_chat([Say::text("12.")]));
        model.complete(&request).await.unwrap();

        for index in before..before + 3 {
            let sent = fake.request(index).await;
            let body = sent.json();
            for absent in ["tools", "tool_choice", "parallel_tool_calls"] {
                assert!(body.get(absent).is_none(), "{absent} in {body}");
            }
            let messages = body["messages"].as_array().unwrap();
            assert!(
                messages
                    .iter()
                    .all(|it| it["role"] != "tool" && it.get("tool_calls").is_none()),
                "{body}"
            );
            let described = messages[0]["role"] == "system"
                && text(&messages[0]).contains("The weather of a city.");
            assert_eq!(described, index < before + 2, "{body}");
            let told: String = messages.iter().map(text).collect();
            assert_eq!(told.contains("12 degrees"), index > before, "{told}");
        }
    }
}

#[tokio::test]
async fn a_forced_call_by_prompt_is_constrained_if_the_server_supports_it() {
    let fake = server().await;
    fake.otherwise(|_, _| {
        let call = json!({"name": "get_weather", "arguments": {"city": "Bonn"}});
        Answer::openai_chat([Say::text(call.to_string())])
    });
    let request = question().with_tool_choice(ToolChoice::Required);
    let holds_schemas = ModelCapabilities {
        structured_output: Some(true),
        ..toolless()
    };
    let strict = model(&fake, Profile::llamacpp()).with_capabilities(holds_schemas);
    let answer = strict.complete(&request).await.unwrap();
    assert_eq!(answer.message.tool_uses().count(), 1);
    assert!(matches!(
        answer.tool_choice,
        ToolChoiceOutcome::Emulated { .. }
    ));
    let sent = fake.request(0).await;
    let format = &sent.json()["response_format"];
    assert_eq!(format["json_schema"]["name"], "tool_call", "{format}");

    let loose = model(&fake, Profile::llamacpp()).with_capabilities(toolless());
    let answer = loose.complete(&request).await.unwrap();
    assert_eq!(answer.message.tool_uses().count(), 1);
    assert!(matches!(
        answer.tool_choice,
        ToolChoiceOutcome::Relaxed { .. }
    ));
    let sent = fake.request(1).await;
    assert!(sent.json().get("response_format").is_none());

    // A tool choice that names an undeclared tool fails before a request is sent.
    let absent = question().with_tool_choice(ToolChoice::Only(vec!["absent".into()]));
    let error = loose.complete(&absent).await.unwrap_err();
    assert!(
        matches!(&error.kind, ModelErrorKind::InvalidRequest { field: Some(field) } if field == "tool_choice"),
        "{error:?}"
    );
    assert_eq!(fake.requests().len(), 2);
}
