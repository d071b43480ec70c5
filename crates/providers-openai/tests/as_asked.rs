//! Tests that answers are restored to the declared names and shapes, against a server on the
//! loopback interface.
#![allow(
    clippy::expect_used,
    reason = "a plain function of a test file counts as production code for clippy"
)]

use serde_json::{Value, json};
use switchboard_domain::{
    ChatModel, ChatRequest, FinishReason, Message, ResponseFormat, ToolDefinition, ToolInput,
};
use switchboard_providers_common::TransportConfig;
use switchboard_providers_openai::{OpenAiClient, OpenAiConfig, Profile, ResponsesApi};
use switchboard_testkit::fake::{Answer, FakeModel, Say};

fn client(fake: &FakeModel, profile: Profile) -> OpenAiClient {
    let base_url = format!("{}/v1", fake.base_url());
    let config = OpenAiConfig {
        transport: TransportConfig {
            system_proxy: false,
            ..TransportConfig::default()
        },
        profile,
        ..OpenAiConfig::for_compatible_server("acme", base_url)
    };
    OpenAiClient::new(config).expect("a valid configuration")
}

/// Function that creates the answer of the server for one API.
type Script = fn(Vec<Say>) -> Answer;

fn models(fake: &FakeModel, profile: &Profile) -> [(Box<dyn ChatModel>, Script); 2] {
    let client = client(fake, profile.clone());
    [
        (Box::new(client.model("m")), |said| {
            Answer::openai_chat(said)
        }),
        (
            Box::new(client.model_with_protocol::<ResponsesApi>("m")),
            |said| Answer::openai_responses(said),
        ),
    ]
}

fn schema() -> Value {
    let text = || json!({"type": "string"});
    json!({"type": "object", "properties": {"city": text(), "zip": text()}, "required": ["city"]})
}

fn question() -> ChatRequest {
    ChatRequest::new([Message::user("hi")]).with_tools([ToolDefinition::new(
        "geo/find",
        "",
        schema(),
    )])
}

/// Name under which the tool `geo/find` is sent.
const ALIAS: &str = "geo_find_f548cccf";

#[tokio::test]
async fn calls_of_a_strict_tool_under_another_name() {
    let fake = FakeModel::start().await.expect("a free port");
    let profile = Profile {
        strict_tools: true,
        ..Profile::openai()
    };
    for (index, (model, script)) in models(&fake, &profile).into_iter().enumerate() {
        let written = json!({"city": "Kiel", "zip": null});
        fake.answer(script(vec![Say::call("call_1", ALIAS, written)]));
        let answer = model.complete(&question()).await.unwrap();
        assert_eq!(answer.finish, FinishReason::ToolUse);
        assert!(answer.warnings.is_empty(), "{:?}", answer.warnings);
        let call = answer.message.tool_uses().next().unwrap();
        assert_eq!(call.name, "geo/find");
        assert_eq!(call.input, ToolInput::parse_input(r#"{"city":"Kiel"}"#));
        let sent = fake.request(index).await;
        assert!(sent.json().to_string().contains(ALIAS), "{}", sent.json());
    }
}

#[tokio::test]
async fn answers_to_a_schema() {
    let fake = FakeModel::start().await.expect("a free port");
    let request = ChatRequest {
        response_format: ResponseFormat::JsonSchema {
            name: "place".into(),
            schema: schema(),
        },
        ..ChatRequest::new([Message::user("hi")])
    };
    for (model, script) in models(&fake, &Profile::generic()) {
        fake.answer(script(vec![Say::text(r#"{"city":"Kiel","zip":null}"#)]));
        let answer = model.complete(&request).await.unwrap();
        assert_eq!(answer.message.text(), r#"{"city":"Kiel"}"#);
        assert_eq!(answer.finish, FinishReason::Stop);
    }
}

#[tokio::test]
async fn calls_as_text_under_another_name() {
    let fake = FakeModel::start().await.expect("a free port");
    let model = client(&fake, Profile::llamacpp()).model("m");
    let call = json!({"name": ALIAS, "arguments": {"city": "Kiel"}});
    let text = format!("<tool_call>{call}</tool_call>");
    fake.answer(Answer::openai_chat([Say::text(text)]));
    let answer = model.complete(&question()).await.unwrap();
    let call = answer.message.tool_uses().next().unwrap();
    assert_eq!(call.name, "geo/find");
    assert_eq!(call.input, ToolInput::parse_input(r#"{"city":"Kiel"}"#));
}
