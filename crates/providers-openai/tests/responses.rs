//! The model behind Responses against a server on loopback.
#![allow(
    clippy::expect_used,
    reason = "a plain function of a test file counts as production code for clippy"
)]

use futures_util::StreamExt as _;
use serde_json::{Value, json};
use switchboard_domain::{
    ChatModel, ChatRequest, FinishReason, Message, ModelEvent, ToolDefinition, ToolResult,
};
use switchboard_providers_common::{RetryPolicy, TransportConfig};
use switchboard_providers_openai::{
    OpenAiClient, OpenAiConfig, OpenAiResponsesModel, Profile, Responses,
};
use switchboard_testkit::{
    fake::{Answer, FakeModel, Gate},
    transcripts,
};

async fn server() -> FakeModel {
    FakeModel::start().await.expect("a free port")
}

fn model(fake: &FakeModel) -> OpenAiResponsesModel {
    let base_url = format!("{}/v1", fake.base_url());
    let config = OpenAiConfig {
        transport: TransportConfig {
            system_proxy: false,
            retry: RetryPolicy::never(),
            ..TransportConfig::default()
        },
        profile: Profile::openai(),
        ..OpenAiConfig::compatible("openai-responses", base_url).with_api_key("sk-secret-1")
    };
    let client = OpenAiClient::new(config).expect("a valid configuration");
    client.model_on::<Responses>("gpt-6-luna")
}

fn question() -> ChatRequest {
    let schema = json!({"type": "object", "properties": {"city": {"type": "string"}}});
    ChatRequest::new([Message::user("Weather in Hamburg and Kiel?")])
        .with_tools([ToolDefinition::new("get_weather", "", schema)])
}

fn transcript(name: &str) -> Answer {
    Answer::transcript(&format!("openai-responses/{name}")).expect("it is stored")
}

#[tokio::test]
async fn reasoning_and_parallel_calls_are_sent_back_in_order() {
    let fake = server().await;
    fake.answer(transcript("reasoning-then-calls.sse"));
    fake.answer(transcript("text.json"));
    let model = model(&fake);
    let mut request = question();
    let answer = model.complete(&request).await.unwrap();
    assert_eq!(answer.finish, FinishReason::ToolUse);
    let calls: Vec<_> = answer.message.tool_uses().cloned().collect();
    let results = calls
        .iter()
        .map(|call| ToolResult::text(&call.id, &call.name, "12"));
    let results = Message::tool_results(results);
    request
        .messages
        .extend([answer.message.into(), results.into()]);
    let last = model.complete(&request).await.unwrap();
    assert_eq!(
        (last.message.text().as_str(), last.finish),
        ("It is 12 °C.", FinishReason::Stop)
    );
    assert!(last.warnings.is_empty(), "{:?}", last.warnings);

    let sent = fake.request(1).await;
    let input = sent.json()["input"].as_array().unwrap();
    let shape: Vec<_> = input
        .iter()
        .skip(1)
        .map(|item| {
            (
                item["type"].as_str().unwrap(),
                item.get("id"),
                item.get("call_id"),
            )
        })
        .collect();
    let (rs, fc_1, fc_2) = (json!("rs_1"), json!("fc_1"), json!("fc_2"));
    let (a, b) = (json!("call_a"), json!("call_b"));
    assert_eq!(
        shape,
        [
            ("reasoning", Some(&rs), None),
            ("function_call", Some(&fc_1), Some(&a)),
            ("function_call", Some(&fc_2), Some(&b)),
            ("function_call_output", None, Some(&a)),
            ("function_call_output", None, Some(&b)),
        ]
    );
    // Unchanged.
    let stored = transcripts::read("openai-responses/reasoning-then-calls.json").unwrap();
    let stored: Value = serde_json::from_slice(&stored.bytes).unwrap();
    assert_eq!(input[1], stored["output"][0]);
}

#[tokio::test]
async fn reasoning_that_cannot_be_decrypted_is_dropped_in_a_retry() {
    let fake = server().await;
    let model = model(&fake);
    fake.answer(transcript("reasoning-then-calls.sse"));
    let mut request = question();
    let answer = model.complete(&request).await.unwrap();
    let calls: Vec<_> = answer.message.tool_uses().cloned().collect();
    let results = calls
        .iter()
        .map(|call| ToolResult::text(&call.id, &call.name, "12"));
    let results = Message::tool_results(results);
    request
        .messages
        .extend([answer.message.into(), results.into()]);

    let refused = json!({"error": {
        "message": "The encrypted content gAAA...DQ== could not be verified.",
        "type": "invalid_request_error", "param": null, "code": "invalid_encrypted_content",
    }});
    fake.answer(Answer::json(400, &refused));
    fake.answer(transcript("text.sse"));
    let last = model.complete(&request).await.unwrap();
    assert_eq!(last.message.text(), "It is 12 °C.");
    let told: Vec<_> = last.warnings.iter().map(|it| &it.message).collect();
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].starts_with("1 reasoning part(s)"), "{told:?}");

    let kept = |number: usize| {
        let request = &fake.requests()[number];
        let input = request.json()["input"].as_array().unwrap().clone();
        let ids: Vec<_> = input
            .iter()
            .filter_map(|item| item.get("id").cloned())
            .collect();
        (ids, input.len())
    };
    assert_eq!(
        kept(1),
        (vec![json!("rs_1"), json!("fc_1"), json!("fc_2")], 6)
    );
    assert_eq!(kept(2), (Vec::new(), 5));

    // Once, and only if there is reasoning to drop.
    fake.answer(Answer::json(400, &refused));
    fake.answer(Answer::json(400, &refused));
    let error = model.complete(&request).await.unwrap_err();
    assert!(
        error.to_string().contains("could not be verified"),
        "{error}"
    );
    fake.answer(Answer::json(400, &refused));
    model.complete(&question()).await.unwrap_err();
    assert_eq!((fake.requests().len(), fake.unused()), (6, 0));
}

#[tokio::test]
async fn arguments_are_streamed() {
    let fake = server().await;
    let gate = Gate::new();
    let stored = transcripts::read("openai-responses/text-then-call.sse").unwrap();
    let text = String::from_utf8(stored.bytes).unwrap();
    // Before the second piece of the arguments.
    let held = text
        .find(r#""delta":"ty"#)
        .and_then(|at| text[..at].rfind("event:"));
    let (before, after) = text.split_at(held.unwrap());
    fake.answer(
        Answer::new(200)
            .header("content-type", "text/event-stream")
            .piece(before.to_owned())
            .gate(&gate)
            .piece(after.to_owned()),
    );
    let mut stream = model(&fake).stream(&question()).await.unwrap();
    let mut arguments = String::new();
    let mut finish = None;
    while let Some(event) = stream.next().await {
        match event.unwrap() {
            ModelEvent::ToolInputDelta { json, .. } => {
                if arguments.is_empty() {
                    assert_eq!(json, r#"{"ci"#);
                    gate.reached().await;
                    gate.open();
                }
                arguments.push_str(&json);
            }
            ModelEvent::Finished { reason, .. } => finish = Some(reason),
            _ => {}
        }
    }
    assert_eq!(arguments, r#"{"city":"Hamburg"}"#);
    assert_eq!(finish, Some(FinishReason::ToolUse));
}
