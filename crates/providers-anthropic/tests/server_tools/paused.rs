//! Tests of a paused turn that continues, over HTTP, streamed and whole.

use serde_json::{Value, json};
use switchboard_domain::{
    ChatModel as _, ChatRequest, FinishReason, Message, Part, Role, WarningKind,
};
use switchboard_providers_anthropic::AnthropicModel;
use switchboard_testkit::fake::{Answer, FakeModel};

use super::{answered, config, options, sent};

fn body(id: &str, reason: &str, blocks: &Value) -> Value {
    json!({
        "id": id, "type": "message", "role": "assistant", "model": "claude-haiku-4-5",
        "stop_reason": reason, "content": blocks,
        "container": {"id": "container_1", "expires_at": "2026-11-21T10:00:00Z"},
        "usage": {"input_tokens": 100, "output_tokens": 10,
                  "server_tool_use": {"web_search_requests": 1}},
    })
}

/// Returns the three answers of one turn. The first two end within a server tool call, and the next
/// answer starts with its result.
fn pieces() -> [Value; 3] {
    let code = |id: &str| {
        json!({"type": "server_tool_use", "id": id, "name": "code_execution",
               "input": {"code": "print(6 * 7)"}})
    };
    let ran = json!({"type": "code_execution_result", "stdout": "42\n", "stderr": "", "return_code": 0,
                     "content": []});
    let found = json!([{
        "type": "web_search_result", "title": "Weather in Hamburg",
        "url": "https://example.org/hamburg", "encrypted_content": "EqgfCioIARgB", "page_age": null,
    }]);
    [
        json!([
            {"type": "text", "text": "I search the web."},
            {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search",
             "input": {"query": "weather Hamburg"}},
        ]),
        json!([
            {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": found},
            {"type": "text", "text": "I compute."},
            code("srvtoolu_2"),
        ]),
        json!([
            {"type": "code_execution_tool_result", "tool_use_id": "srvtoolu_2", "content": ran},
            {"type": "text", "text": "42 degrees."},
        ]),
    ]
}

/// Returns the stream that is equivalent to a whole answer.
fn streamed(body: &Value) -> String {
    let mut head = body.clone();
    head["content"] = json!([]);
    head["stop_reason"] = Value::Null;
    head["container"] = Value::Null;
    let mut events = vec![json!({"type": "message_start", "message": head})];
    for (index, block) in body["content"].as_array().into_iter().flatten().enumerate() {
        let mut first = block.clone();
        let mut deltas = Vec::new();
        if let Some(input) = block.get("input") {
            first["input"] = json!({});
            let text = input.to_string();
            let (a, b) = text.split_at(text.len() / 2);
            for part in [a, b] {
                deltas.push(json!({"type": "input_json_delta", "partial_json": part}));
            }
        }
        if let Some(text) = block["text"].as_str() {
            first["text"] = "".into();
            deltas.push(json!({"type": "text_delta", "text": text}));
        }
        events.push(json!({"type": "content_block_start", "index": index, "content_block": first}));
        for delta in deltas {
            events.push(json!({"type": "content_block_delta", "index": index, "delta": delta}));
        }
        events.push(json!({"type": "content_block_stop", "index": index}));
    }
    let delta = json!({"stop_reason": body["stop_reason"], "container": body["container"]});
    events.push(json!({"type": "message_delta", "delta": delta, "usage": body["usage"]}));
    events.push(json!({"type": "message_stop"}));
    let frames = events.iter().map(|event| {
        let kind = event["type"].as_str().unwrap_or_default();
        format!("event: {kind}\ndata: {event}\n\n")
    });
    frames.collect()
}

fn answer(is_streamed: bool, body: &Value) -> Answer {
    if is_streamed {
        Answer::sse(streamed(body))
    } else {
        Answer::json(200, body)
    }
}

/// Returns a request without the fields that a continuation adds.
fn frame(sent: &Value) -> Value {
    let mut frame = sent.clone();
    let fields = frame.as_object_mut().expect("it is an object");
    fields.remove("messages").expect("it has messages");
    fields.remove("container");
    frame
}

#[tokio::test]
async fn a_turn_that_paused_twice_is_sent_as_one_message() {
    for is_streamed in [true, false] {
        let fake = FakeModel::start().await.expect("a free port");
        let model = AnthropicModel::new(
            config(&fake, options("claude-haiku-4-5")),
            "claude-haiku-4-5",
        )
        .unwrap();
        let pieces = pieces();
        let reasons = ["pause_turn", "pause_turn", "end_turn"];
        for (at, reason) in reasons.into_iter().enumerate() {
            let id = format!("msg_{at}");
            fake.answer(answer(is_streamed, &body(&id, reason, &pieces[at])));
        }
        let mut request = ChatRequest::new([Message::user("Weather in Hamburg?")]);
        let expected = [
            FinishReason::Paused,
            FinishReason::Paused,
            FinishReason::Stop,
        ];
        // The content of the turn so far, which the next request must contain.
        let mut said: Vec<Value> = Vec::new();
        for (at, finish) in expected.into_iter().enumerate() {
            let response = model.complete(&request).await.unwrap();
            assert_eq!(response.finish, finish);
            assert!(response.warnings.is_empty(), "{:?}", response.warnings);
            assert_eq!(response.usage.server_tool_requests, Some(1));
            request.messages.push(response.message.into());
            let first = fake.request(0).await;
            let here = fake.request(at).await;
            assert_eq!(
                frame(here.json()),
                frame(first.json()),
                "the same tools and all else"
            );
            let beta = |name| {
                (
                    here.header(name).map(str::to_owned),
                    first.header(name).map(str::to_owned),
                )
            };
            let (here_beta, first_beta) = beta("anthropic-beta");
            assert_eq!(here_beta, first_beta);
            let messages = here.json()["messages"].as_array().unwrap();
            assert_eq!(messages[0], first.json()["messages"][0]);
            if at == 0 {
                assert_eq!(messages.len(), 1);
                assert!(here.json().get("container").is_none());
            } else {
                // The request contains the answer so far, unchanged, and its container.
                let so_far = json!({"role": "assistant", "content": said});
                assert_eq!(messages[1..], [so_far]);
                assert_eq!(here.json()["container"], "container_1");
            }
            said.extend(pieces[at].as_array().unwrap().iter().cloned());
        }
        // After the next user message the whole turn is one message, without a container.
        request.messages.push(Message::user("And tomorrow?").into());
        let (body, warnings) = sent(
            &request,
            "anthropic",
            "claude-haiku-4-5",
            &options("claude-haiku-4-5"),
        );
        assert!(warnings.is_empty(), "{warnings:?}");
        assert!(body.get("container").is_none());
        let messages = body["messages"].as_array().unwrap();
        assert_eq!(messages.len(), 3);
        // The assistant message has the content of all three answers.
        assert_eq!(messages[1]["content"], json!(said));
        if is_streamed {
            insta::assert_json_snapshot!("request__anthropic__after_a_pause", body);
        }
    }
}

#[test]
fn a_turn_in_one_message_is_sent_like_a_turn_in_several() {
    let parts = |piece: &Value| {
        let (_, answer) = answered(&body("m", "pause_turn", piece), "claude-haiku-4-5");
        answer.message.parts
    };
    let pieces = pieces();
    let [first, second, third] = pieces.each_ref().map(parts);
    let one = Message::new(
        Role::Assistant,
        [first.clone(), second.clone(), third.clone()].concat(),
    );
    let several = [first, second, third].map(|parts| Message::new(Role::Assistant, parts));
    let ask = |middle: Vec<Message>| {
        let mut messages = vec![Message::user("Weather in Hamburg?")];
        messages.extend(middle);
        messages.push(Message::user("And tomorrow?"));
        sent(
            &ChatRequest::new(messages),
            "anthropic",
            "claude-haiku-4-5",
            &options("claude-haiku-4-5"),
        )
    };
    assert_eq!(ask(vec![one]), ask(several.into()));
}

#[test]
fn the_container_of_a_paused_turn_is_used_again() {
    let call = json!([{"type": "server_tool_use", "id": "s", "name": "code_execution",
                       "input": {"code": "1"}}]);
    let (_, answer) = answered(&body("m", "pause_turn", &call), "claude-opus-5-5");
    let is_place = |part: &Part| matches!(part, Part::Opaque(it) if it.kind == "container");
    assert!(answer.message.parts.iter().any(is_place));
    let mut request = ChatRequest::new([Message::user("Compute."), answer.message]);
    let (body, warnings) = sent(
        &request,
        "anthropic",
        "claude-opus-5-5",
        &options("claude-opus-5-5"),
    );
    assert_eq!(body["container"], "container_1");
    assert_eq!(body["messages"][1]["content"], call);
    assert!(warnings.is_empty(), "{warnings:?}");
    // After a user message the API refuses the call without its result.
    request.messages.push(Message::user("Never mind.").into());
    let (body, warnings) = sent(
        &request,
        "anthropic",
        "claude-opus-5-5",
        &options("claude-opus-5-5"),
    );
    assert!(body.get("container").is_none());
    let left = &body["messages"][1]["content"][0];
    let text = r#"{"name":"code_execution","input":{"code":"1"}}"#;
    assert_eq!(left["text"], text);
    assert_eq!(warnings, [WarningKind::PartDowngraded]);
}
