//! Tests of server tools on the Responses API: their declarations, and their items, which are sent
//! back unchanged.
#![allow(
    clippy::expect_used,
    reason = "a plain function of a test file counts as production code for clippy"
)]

use serde_json::{Value, json};
use switchboard_domain::{
    ChatModel as _, ChatRequest, ChatResponse, FinishReason, Message, ModelErrorKind, ModelId,
    Opaque, Part, ProviderState, Role, ToolDefinition, ToolResult,
};
use switchboard_providers_common::{RetryPolicy, TransportConfig};
use switchboard_providers_openai::{
    OpenAiClient, OpenAiConfig, OpenAiResponsesModel, Profile, ResponsesApi, ServerTool,
    chat::ChatOptions, responses::ResponsesOptions,
};
use switchboard_testkit::fake::{Answer, FakeModel};

fn config(fake: &FakeModel, server_tools: Vec<ServerTool>) -> OpenAiConfig {
    OpenAiConfig {
        transport: TransportConfig {
            system_proxy: false,
            retry: RetryPolicy::never_retry(),
            ..TransportConfig::default()
        },
        profile: Profile::openai(),
        responses: ResponsesOptions {
            server_tools,
            ..ResponsesOptions::default()
        },
        ..OpenAiConfig::for_compatible_server("openai", format!("{}/v1", fake.base_url()))
    }
}

fn model(fake: &FakeModel, server_tools: Vec<ServerTool>) -> OpenAiResponsesModel {
    let client = OpenAiClient::new(config(fake, server_tools)).expect("a valid configuration");
    client.model_with_protocol::<ResponsesApi>("gpt-6-luna")
}

fn raw(declaration: Value) -> ServerTool {
    ServerTool::from_declaration(serde_json::from_value(declaration).expect("an object"))
}

fn every_tool() -> Vec<ServerTool> {
    vec![
        ServerTool::web_search(),
        raw(json!({"type": "code_interpreter", "container": {"type": "auto"}})),
        raw(json!({"type": "file_search", "vector_store_ids": ["vs_1"]})),
    ]
}

fn question() -> ChatRequest {
    let schema = json!({"type": "object", "properties": {"city": {"type": "string"}}});
    ChatRequest::new([Message::user("Weather in the northernmost city?")]).with_tools([
        ToolDefinition::new("get_weather", "Weather of a city.", schema),
    ])
}

/// Returns an answer of these items, streamed or whole.
fn answer(streaming: bool, items: &[Value]) -> Answer {
    let whole = json!({"id": "resp_1", "object": "response", "status": "completed",
                       "model": "gpt-6-luna", "output": items});
    if !streaming {
        return Answer::json(200, &whole);
    }
    let mut events = vec![
        json!({"type": "response.created", "response": {"id": "resp_1",
                                 "status": "in_progress", "output": []}}),
    ];
    for (at, item) in items.iter().enumerate() {
        let kind = item["type"].as_str().expect("a type");
        // A started item has no results: they arrive when the item ends.
        let begun = json!({"id": item["id"], "type": kind, "status": "in_progress", "summary": []});
        events
            .push(json!({"type": "response.output_item.added", "output_index": at, "item": begun}));
        if kind.ends_with("_call") && kind != "function_call" {
            for state in ["in_progress", "completed"] {
                let name = format!("response.{kind}.{state}");
                events.push(json!({"type": name, "output_index": at, "item_id": item["id"]}));
            }
        }
        events.push(json!({"type": "response.output_item.done", "output_index": at, "item": item}));
    }
    events.push(json!({"type": "response.completed", "response": whole}));
    let frames = events.iter().map(|event| {
        let name = event["type"].as_str().unwrap_or_default();
        format!("event: {name}\ndata: {event}\n\n")
    });
    Answer::sse(frames.collect::<String>())
}

/// Returns reasoning, a web search, executed code, a file search and a function call.
fn items() -> Vec<Value> {
    vec![
        json!({"id": "rs_1", "type": "reasoning", "summary": [], "encrypted_content": "gAAA"}),
        json!({"id": "ws_1", "type": "web_search_call", "status": "completed", "action": {
            "type": "search", "query": "northernmost city", "queries": ["northernmost city"],
            "sources": [{"type": "url", "url": "https://a.example/utqiagvik"},
                        {"type": "url", "url": "https://b.example"}]}}),
        json!({"id": "ci_1", "type": "code_interpreter_call", "status": "completed",
               "code": "print(6*7)", "container_id": "cntr_1",
               "outputs": [{"type": "logs", "logs": "42\n"}]}),
        json!({"id": "fs_1", "type": "file_search_call", "status": "completed",
               "queries": ["cities"], "results": [{"file_id": "file-1", "filename": "cities.md",
               "score": 0.9, "text": "Utqiagvik lies at 71 degrees north.", "attributes": {}}]}),
        json!({"id": "fc_1", "type": "function_call", "call_id": "call_1", "name": "get_weather",
               "arguments": "{\"city\":\"Utqiagvik\"}", "status": "completed"}),
    ]
}

fn last() -> Vec<Value> {
    vec![
        json!({"id": "msg_1", "type": "message", "role": "assistant", "status": "completed",
               "content": [{"type": "output_text", "text": "-3 °C.", "annotations": []}]}),
    ]
}

fn shown(answer: &ChatResponse) -> Vec<(&str, &str)> {
    let parts = answer.message.parts.iter();
    let shown = parts.filter_map(|part| match part {
        Part::Opaque(it) => Some((it.kind.as_str(), it.text.as_deref().unwrap_or_default())),
        _ => None,
    });
    shown.collect()
}

#[tokio::test]
async fn items_of_a_mixed_turn_are_sent_back_unchanged() {
    for streaming in [true, false] {
        let fake = FakeModel::start().await.expect("a free port");
        let model = model(&fake, every_tool());
        fake.answer(answer(streaming, &items()));
        fake.answer(answer(streaming, &last()));
        let mut request = question();
        let first = model.complete(&request).await.unwrap();
        assert_eq!(first.finish, FinishReason::ToolUse);
        assert!(first.warnings.is_empty(), "{:?}", first.warnings);
        assert_eq!(
            shown(&first),
            [
                (
                    "web_search_call",
                    r#"{"action":{"query":"northernmost city","queries":["northernmost city"],"sources":[{"url":"https://a.example/utqiagvik"},{"url":"https://b.example"}]}}"#
                ),
                (
                    "code_interpreter_call",
                    r#"{"code":"print(6*7)","outputs":[{"logs":"42\n"}]}"#
                ),
                (
                    "file_search_call",
                    r#"{"queries":["cities"],"results":[{"filename":"cities.md","score":0.9,"text":"Utqiagvik lies at 71 degrees north."}]}"#
                ),
            ],
            "streaming: {streaming}"
        );
        let calls: Vec<_> = first.message.tool_uses().cloned().collect();
        let results = calls
            .iter()
            .map(|call| ToolResult::text(&call.id, &call.name, "-3"));
        let results = Message::from_tool_results(results);
        request
            .messages
            .extend([first.message.clone().into(), results.into()]);
        let second = model.complete(&request).await.unwrap();
        assert_eq!(second.message.text(), "-3 °C.");
        assert!(second.warnings.is_empty(), "{:?}", second.warnings);

        for number in [0, 1] {
            let sent = fake.request(number).await;
            let body = sent.json();
            assert_eq!(body["store"], false);
            let kinds: Vec<_> = body["tools"].as_array().unwrap().iter().collect();
            let kinds: Vec<_> = kinds
                .iter()
                .map(|it| it["type"].as_str().unwrap())
                .collect();
            let expected = ["function", "web_search", "code_interpreter", "file_search"];
            assert_eq!(kinds, expected);
            assert_eq!(
                body["include"],
                json!([
                    "reasoning.encrypted_content",
                    "web_search_call.action.sources",
                    "code_interpreter_call.outputs",
                    "file_search_call.results"
                ])
            );
        }
        let sent = fake.request(1).await;
        let input = sent.json()["input"].as_array().unwrap();
        // The items are sent back unchanged and in order, followed by the result of the function
        // call.
        assert_eq!(input[1..6], items());
        assert_eq!(input[6]["type"], "function_call_output");
    }
}

#[tokio::test]
async fn another_model_gets_the_results_of_provider_tools_as_text() {
    let fake = FakeModel::start().await.expect("a free port");
    let searching = model(&fake, vec![ServerTool::web_search()]);
    let mut found = items();
    found.truncate(2);
    found.extend(last());
    fake.answer(answer(true, &found));
    fake.answer(answer(true, &last()));
    let mut request = ChatRequest::new([Message::user("Where?")]);
    let first = searching.complete(&request).await.unwrap();
    assert_eq!(first.finish, FinishReason::Stop);
    let asked = Message::user("And now?");
    request
        .messages
        .extend([first.message.into(), asked.into()]);
    let client = OpenAiClient::new(config(&fake, Vec::new())).expect("a valid configuration");
    let other = client.model_with_protocol::<ResponsesApi>("gpt-5");
    other.complete(&request).await.unwrap();
    let sent = fake.request(1).await;
    let body = sent.json();
    assert!(body.get("tools").is_none(), "{body}");
    assert_eq!(body["include"], json!(["reasoning.encrypted_content"]));
    let said = body["input"][1]["content"].as_str().unwrap();
    assert!(
        said.contains("https://a.example/utqiagvik") && said.ends_with("-3 °C."),
        "{said}"
    );
}

/// The host adds the approval as a second opaque part.
#[tokio::test]
async fn a_call_that_waits_for_an_approval_continues_with_one() {
    let tool = json!({"type": "mcp", "server_label": "wiki",
                      "server_url": "https://example.org/mcp", "require_approval": "always"});
    let fake = FakeModel::start().await.expect("a free port");
    let model = model(&fake, vec![raw(tool)]);
    let listed = json!({"id": "mcpl_1", "type": "mcp_list_tools", "server_label": "wiki",
                        "tools": [{"name": "read", "input_schema": {}}]});
    let asked = json!({"id": "mcpr_1", "type": "mcp_approval_request", "server_label": "wiki",
                       "name": "read", "arguments": "{}"});
    fake.answer(answer(true, &[listed.clone(), asked.clone()]));
    fake.answer(answer(true, &last()));
    let mut request = ChatRequest::new([Message::user("Look it up.")]);
    let mut first = model.complete(&request).await.unwrap();
    assert_eq!(
        shown(&first),
        [
            (
                "mcp_list_tools",
                r#"{"server_label":"wiki","tools":[{"name":"read"}]}"#
            ),
            (
                "mcp_approval_request",
                r#"{"server_label":"wiki","name":"read","arguments":"{}"}"#
            )
        ]
    );
    let approval = json!({"type": "mcp_approval_response", "approval_request_id": "mcpr_1",
                          "approve": true});
    let id = ModelId::new("openai", "gpt-6-luna");
    first.message.parts.push(Part::Opaque(Opaque {
        kind: "mcp_approval_response".into(),
        text: Some("approved".into()),
        provider_state: ProviderState::new_for_model(&id, json!({"item": approval})),
    }));
    assert_eq!(first.message.role, Role::Assistant);
    request.messages.push(first.message.into());
    let second = model.complete(&request).await.unwrap();
    assert!(second.warnings.is_empty(), "{:?}", second.warnings);
    let sent = fake.request(1).await;
    let input = sent.json()["input"].as_array().unwrap();
    assert_eq!(input[1..], [listed, asked, approval]);
    assert_eq!(sent.json()["tools"][0]["require_approval"], "always");
}

#[tokio::test]
async fn the_configuration_is_checked_and_a_model_may_have_other_options() {
    let fake = FakeModel::start().await.expect("a free port");
    let wrong = vec![raw(json!({"type": "function"}))];
    let error = OpenAiClient::new(config(&fake, wrong.clone())).unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::Configuration);
    assert!(error.to_string().contains("`function`"), "{error}");

    let with = |server_tools| ResponsesOptions {
        server_tools,
        ..ResponsesOptions::default()
    };
    let searching = model(&fake, vec![ServerTool::web_search()]);
    let error = searching.clone().with_options(with(wrong));
    let error = error.complete(&question()).await.unwrap_err();
    let field = Some("tools".to_owned());
    assert_eq!(error.kind, ModelErrorKind::InvalidRequest { field });
    fake.answer(answer(true, &last()));
    let other = searching.with_options(with(vec![raw(json!({"type": "image_generation"}))]));
    other.complete(&question()).await.unwrap();
    let sent = fake.request(0).await;
    assert_eq!(sent.json()["tools"][1]["type"], "image_generation");
}

#[tokio::test]
async fn strict_tools_are_set_once_for_each_wire() {
    let fake = FakeModel::start().await.expect("a free port");
    let config = config(&fake, Vec::new());
    let responses = ResponsesOptions {
        strict_tools: Some(true),
        ..ResponsesOptions::default()
    };
    let chat: ChatOptions = serde_json::from_value(json!({"strict_tools": true})).unwrap();
    let misspelt = serde_json::from_value::<ChatOptions>(json!({"strict_tool": true}));
    assert!(misspelt.unwrap_err().to_string().contains("strict_tool"));
    let config = OpenAiConfig {
        chat,
        responses,
        ..config
    };
    let client = OpenAiClient::new(config).expect("a valid configuration");
    fake.answer(answer(true, &last()));
    client
        .model_with_protocol::<ResponsesApi>("gpt-6-luna")
        .complete(&question())
        .await
        .unwrap();
    let said = json!({"choices": [{"index": 0, "finish_reason": "stop",
                      "message": {"role": "assistant", "content": "-3"}}]});
    fake.answer(Answer::json(200, &said));
    fake.answer(Answer::json(200, &said));
    let chatting = client.model("gpt-4.1");
    chatting.complete(&question()).await.unwrap();
    let relaxed = chatting.with_options(ChatOptions::default());
    relaxed.complete(&question()).await.unwrap();
    let expected = json!(true);
    assert_eq!(fake.request(0).await.json()["tools"][0]["strict"], expected);
    let strict = |body: &Value| body["tools"][0]["function"]["strict"] == json!(true);
    assert!(strict(fake.request(1).await.json()));
    assert!(!strict(fake.request(2).await.json()));
}
