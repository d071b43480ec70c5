//! Whole answers, read by the real adapters over HTTP.
//!
//! If an answer is stored in both forms, both must give the same response, for every combination of
//! the requested form and the form that the server returns.

mod wires;

use std::{collections::BTreeSet, error::Error};

use serde_json::json;
use switchboard_domain::{
    ChatModel, ChatRequest, ChatResponse, Delivery, Message, ModelError, ModelErrorKind, Part,
    ToolInput, ToolUse,
};
use switchboard_providers_common::{
    RetryPolicy, TextCallModel, TransportConfig, text_tool_calls::TextCallFormats,
};
use switchboard_testkit::{
    fake::{Answer, FakeModel},
    fixtures,
    transcripts::{self, Form},
};

use crate::wires::{Connection, WIRES, Wire};

struct Column {
    name: &'static str,
    model: Box<dyn ChatModel>,
    /// Path and query of a request for a stream, and of a request for a whole answer.
    paths: [&'static str; 2],
    /// Media type of a stream.
    streams_as: &'static str,
}

/// Returns all wires, connected to this server.
fn columns(fake: &FakeModel) -> [Column; 5] {
    let transport = TransportConfig {
        retry: RetryPolicy::never_retry(),
        ..TransportConfig::default()
    };
    WIRES.map(|wire| {
        let (model, paths) = match wire {
            Wire::Anthropic => ("claude-opus-5-5", ["/v1/messages"; 2]),
            Wire::Chat => ("gpt-4.1", ["/v1/chat/completions"; 2]),
            Wire::Responses => ("gpt-6-luna", ["/v1/responses"; 2]),
            Wire::Gemini => (
                "gemini-3.8-flash",
                [
                    "/v1beta/models/gemini-3.8-flash:streamGenerateContent?alt=sse",
                    "/v1beta/models/gemini-3.8-flash:generateContent",
                ],
            ),
            Wire::Ollama => ("qwen3:8b", ["/api/chat"; 2]),
        };
        let connection = Connection::new(wire, &fake.base_url(), transport.clone());
        Column {
            name: wire.name(),
            model: connection.with_model(model).chat_model(),
            paths,
            streams_as: match wire {
                Wire::Ollama => "application/x-ndjson",
                _ => "text/event-stream",
            },
        }
    })
}

impl Column {
    async fn ask(
        &self,
        request: &ChatRequest,
        delivery: Delivery,
    ) -> Result<ChatResponse, ModelError> {
        let request = ChatRequest {
            delivery,
            ..request.clone()
        };
        self.model.complete(&request).await
    }
}

fn question() -> ChatRequest {
    let messages = [Message::user("Weather in Hamburg?")];
    ChatRequest::new(messages).with_tools([fixtures::weather(), fixtures::list_cities()])
}

/// Returns the paths of the stored answers of a wire that exist as a stream and as a whole body.
fn pairs(wire: &str) -> Result<Vec<[String; 2]>, Box<dyn Error>> {
    let all = transcripts::all()?;
    let of_form = |whole: bool| -> BTreeSet<&str> {
        let of_wire = all.iter().filter(|it| it.wire == wire);
        let of_form = of_wire.filter(|it| (it.form == Form::Json) == whole);
        of_form.map(|it| it.stem.as_str()).collect()
    };
    let end = if wire == "ollama" { "ndjson" } else { "sse" };
    let (streams, bodies) = (of_form(false), of_form(true));
    let both = streams.intersection(&bodies);
    // Answers with a format are excluded, because only a request with the same format can read
    // them.
    let both = both.filter(|stem| !stem.starts_with("form-"));
    let both = both.map(|stem| [end, "json"].map(|end| format!("{wire}/{stem}.{end}")));
    Ok(both.collect())
}

/// Returns the outcome of an answer in a comparable form.
fn outcome(result: Result<ChatResponse, ModelError>) -> Result<ChatResponse, ModelErrorKind> {
    let mut answer = result.map_err(|error| error.kind)?;
    for part in &mut answer.message.parts {
        if let Part::ToolUse(ToolUse {
            input: ToolInput::Malformed { raw, .. },
            ..
        }) = part
        {
            // For an incomplete input, a stream has its beginning, and a whole body may have
            // nothing.
            raw.clear();
        }
    }
    Ok(answer)
}

/// Returns the kinds of parts in an answer.
fn sorts(answer: &ChatResponse) -> BTreeSet<&'static str> {
    let parts = answer.message.parts.iter();
    let sorts = parts.flat_map(|part| {
        let (sort, state) = match part {
            Part::Text(text) => ("text", &text.provider_state),
            Part::Reasoning(reasoning) => ("reasoning", &reasoning.provider_state),
            Part::ToolUse(tool_use) => ("tool use", &tool_use.provider_state),
            _ => ("other", &None),
        };
        [Some(sort), state.as_ref().map(|_| "state")]
    });
    sorts.flatten().collect()
}

#[tokio::test]
async fn an_answer_is_equal_for_every_requested_and_returned_form() {
    let fake = FakeModel::start().await.unwrap();
    for wire in columns(&fake) {
        let pairs = pairs(wire.name).unwrap();
        assert!(pairs.len() >= 5, "{}: {pairs:?}", wire.name);
        let mut met = BTreeSet::new();
        for pair in pairs {
            let mut outcomes = Vec::new();
            for delivery in [Delivery::Streamed, Delivery::Whole] {
                for path in &pair {
                    fake.answer(Answer::transcript(path).unwrap());
                    let outcome = outcome(wire.ask(&question(), delivery).await);
                    outcomes.push((delivery, path, outcome));
                }
            }
            let (_, _, first) = &outcomes[0];
            for (delivery, path, outcome) in &outcomes {
                assert_eq!(outcome, first, "{path} asked for {delivery:?}");
            }
            match first {
                Ok(answer) => met.extend(sorts(answer)),
                Err(_) => _ = met.insert("error"),
            }
        }
        // The stored answers of each wire contain a text and a tool use.
        let said = ["text", "tool use"].iter().all(|sort| met.contains(sort));
        assert!(said, "{}: {met:?}", wire.name);
        // Errors within a body of status 200 are not stored for all wires.
        let errs = !matches!(wire.name, "anthropic" | "openai-chat");
        assert!(!errs || met.contains("error"), "{}: {met:?}", wire.name);
        let thinks = wire.name != "openai-chat";
        assert!(!thinks || met.contains("reasoning"), "{}", wire.name);
        let signs = thinks && wire.name != "ollama";
        assert!(!signs || met.contains("state"), "{}: {met:?}", wire.name);
    }
}

#[tokio::test]
async fn a_request_for_a_whole_answer_is_not_a_request_for_a_stream() {
    let fake = FakeModel::start().await.unwrap();
    let mut number = 0;
    for wire in columns(&fake) {
        // Each form is requested twice, because the adapter keeps its URL and headers.
        for delivery in [
            Delivery::Streamed,
            Delivery::Whole,
            Delivery::Whole,
            Delivery::Streamed,
        ] {
            let path = format!("{}/text.json", wire.name);
            fake.answer(Answer::transcript(&path).unwrap());
            wire.ask(&question(), delivery).await.unwrap();
            let sent = fake.request(number).await;
            number += 1;
            let whole = delivery == Delivery::Whole;
            let query = sent.query().map(|query| format!("?{query}"));
            let address = format!("{}{}", sent.path(), query.unwrap_or_default());
            assert_eq!(address, wire.paths[usize::from(whole)]);
            let accept = if whole {
                "application/json"
            } else {
                wire.streams_as
            };
            assert_eq!(sent.header("accept"), Some(accept), "{}", wire.name);
            assert_eq!(sent.header("content-type"), Some("application/json"));
            let body = sent.json();
            if wire.name == "gemini" {
                // Gemini's URL selects the form.
                assert_eq!(body.get("stream"), None);
            } else {
                assert_eq!(body["stream"], !whole, "{}", wire.name);
            }
            if wire.name == "openai-chat" {
                assert_eq!(body.get("stream_options").is_some(), !whole);
            }
        }
        let sent = fake.request(number - 2).await;
        insta::assert_json_snapshot!(format!("request__{}__wanted_whole", wire.name), sent.json());
    }
}

#[tokio::test]
async fn an_incomplete_or_refused_whole_answer_is_an_error() {
    let fake = FakeModel::start().await.unwrap();
    for wire in columns(&fake) {
        let stored = transcripts::read(&format!("{}/text.json", wire.name)).unwrap();
        let half = stored.bytes[..stored.bytes.len() / 2].to_vec();
        let cut_off = || {
            Answer::new(200)
                .header("content-type", "application/json")
                .piece(half.clone())
        };
        fake.answer(cut_off().break_off());
        let error = wire.ask(&question(), Delivery::Whole).await.unwrap_err();
        assert_eq!(error.kind, ModelErrorKind::Interrupted, "{}", wire.name);
        assert_eq!(error.http_status(), Some(200), "{}", wire.name);
        // If the server ends an incomplete body without a connection error, the adapter also
        // returns an error.
        fake.answer(cut_off());
        let error = wire.ask(&question(), Delivery::Whole).await.unwrap_err();
        let told = [ModelErrorKind::Protocol, ModelErrorKind::Interrupted];
        assert!(told.contains(&error.kind), "{}: {error:?}", wire.name);
        assert_eq!(error.http_status(), Some(200), "{}", wire.name);

        let refusal = json!({"error": {"type": "authentication_error", "code": 401,
            "status": "UNAUTHENTICATED", "message": "who are you?"}});
        fake.answer(Answer::json(401, &refusal));
        let error = wire.ask(&question(), Delivery::Whole).await.unwrap_err();
        assert_eq!(error.kind, ModelErrorKind::Authentication, "{}", wire.name);
        assert!(error.message().contains("who are you?"), "{error}");
    }
}

/// Returns a whole answer with this text in the format of the wire.
fn says(wire: &str, text: &str) -> Answer {
    let body = match wire {
        "anthropic" => json!({"type": "message", "id": "m", "role": "assistant", "model": "m",
            "content": [{"type": "text", "text": text}], "stop_reason": "end_turn",
            "usage": {"input_tokens": 1, "output_tokens": 1}}),
        "openai-chat" => json!({"choices": [{"index": 0, "finish_reason": "stop",
            "message": {"role": "assistant", "content": text}}]}),
        "openai-responses" => json!({"id": "r", "object": "response", "status": "completed",
            "output": [{"type": "message", "id": "m", "role": "assistant", "status": "completed",
                "content": [{"type": "output_text", "text": text, "annotations": []}]}]}),
        "gemini" => json!({"candidates": [{"index": 0, "finishReason": "STOP",
            "content": {"role": "model", "parts": [{"text": text}]}}]}),
        _ => json!({"model": "m", "message": {"role": "assistant", "content": text},
            "done": true, "done_reason": "stop"}),
    };
    Answer::json(200, &body)
}

#[tokio::test]
async fn tools_that_are_told_in_words_are_asked_for_whole_too() {
    const CALL: &str = "<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Bonn\"}}\n</tool_call>";
    let fake = FakeModel::start().await.unwrap();
    for (number, wire) in columns(&fake).into_iter().enumerate() {
        let Column {
            name,
            model,
            paths: [_, whole],
            ..
        } = wire;
        let told =
            TextCallModel::wrap_model(model.into(), TextCallFormats::ALL).with_prompted_tools();
        let request = ChatRequest {
            delivery: Delivery::Whole,
            ..question()
        };
        fake.answer(says(name, CALL));
        let answer = told.complete(&request).await.unwrap();
        let call = answer.message.tool_uses().next().unwrap();
        assert_eq!(call.name, "get_weather", "{name}");
        let sent = fake.request(number).await;
        assert_eq!(sent.path(), whole);
        let body = sent.json();
        assert_eq!(body.get("tools"), None, "{name}");
        assert!(body.get("stream").is_none_or(|it| it == false), "{name}");
    }
}
