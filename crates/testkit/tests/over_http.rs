//! Scripted answers that the real adapters read over HTTP.
//!
//! The tests check both sides: that the answers of [`Say`] have the format of the wire, and that an
//! adapter closes its connection when its stream is dropped. A new provider needs one entry in
//! [`providers`].

mod wires;

use std::io;

use futures_util::StreamExt as _;
use serde_json::json;
use switchboard_domain::{
    ChatModel, ChatRequest, FinishReason, Message, ModelError, ModelErrorKind, ModelEvent,
    ToolInput, ToolUse,
};
use switchboard_providers_common::{RetryPolicy, TransportConfig};
use switchboard_testkit::{
    fake::{Answer, FakeModel, Gate, Say},
    fixtures, loopback,
};

use crate::wires::{Connection, WIRES, Wire};

struct Provider {
    model: Box<dyn ChatModel>,
    path: &'static str,
    /// Name and value of the header with the key.
    key: (&'static str, &'static str),
    says: fn(Vec<Say>) -> Answer,
}

/// Returns every provider whose format [`Say`] can write, connected to this server.
fn providers(fake: &FakeModel) -> [Provider; 3] {
    let says: [fn(Vec<Say>) -> Answer; 3] = [
        |said| Answer::anthropic(said),
        |said| Answer::openai_chat(said),
        |said| Answer::openai_responses(said),
    ];
    let bearer = ("authorization", "Bearer sk-test");
    let headers = [("x-api-key", "sk-test"), bearer, bearer];
    let paths = ["/v1/messages", "/v1/chat/completions", "/v1/responses"];
    std::array::from_fn(|at| Provider {
        model: model(WIRES[at], fake),
        path: paths[at],
        key: headers[at],
        says: says[at],
    })
}

fn model(wire: Wire, fake: &FakeModel) -> Box<dyn ChatModel> {
    let transport = TransportConfig {
        retry: RetryPolicy::never_retry(),
        ..TransportConfig::default()
    };
    Connection::new(wire, &fake.base_url(), transport).chat_model()
}

/// Number of frames after the last text. They are the end of the text, the finish reason with the
/// usage, and the end of the answer.
const END: usize = 3;

fn question() -> ChatRequest {
    ChatRequest::new([Message::user("What is the weather in Kiel?")])
        .with_tools([fixtures::weather()])
}

#[tokio::test]
async fn scripted_answers_say_what_they_should() {
    let fake = FakeModel::start().await.unwrap();
    let input = json!({"city": "Kiel", "unit": "celsius"});
    for (number, provider) in providers(&fake).into_iter().enumerate() {
        let said = vec![
            Say::text("I look "),
            Say::text("it up."),
            Say::call("call_1", "get_weather", input.clone()),
            Say::call("call_2", "get_weather", json!({})),
        ];
        fake.answer((provider.says)(said));
        let answer = provider.model.complete(&question()).await.unwrap();
        assert_eq!(answer.message.text(), "I look it up.");
        let calls: Vec<&ToolUse> = answer.message.tool_uses().collect();
        assert_eq!(calls.len(), 2, "{calls:?}");
        assert_eq!(calls[0].id, "call_1");
        assert_eq!(calls[0].input, ToolInput::from_json(input.clone()));
        assert_eq!(calls[1].input, ToolInput::from_json(json!({})));
        assert_eq!(answer.finish, FinishReason::ToolUse);
        assert_eq!(
            (answer.usage.input_tokens, answer.usage.output_tokens),
            (Some(20), Some(10))
        );

        let request = fake.request(number).await;
        assert_eq!((request.method(), request.path()), ("POST", provider.path));
        assert_eq!(request.header(provider.key.0), Some(provider.key.1));
        assert_eq!(request.json()["stream"], true);
    }
}

#[tokio::test]
async fn an_answer_streams_while_it_is_being_written() {
    let fake = FakeModel::start().await.unwrap();
    for provider in providers(&fake) {
        let gate = Gate::new();
        let answer = (provider.says)(vec![Say::text("one"), Say::text("two")]);
        let second = answer.pieces() - END - 1;
        fake.answer(answer.gate_before(second, &gate));
        let mut stream = provider.model.stream(&question()).await.unwrap();
        let mut text = String::new();
        while text != "one" {
            if let ModelEvent::TextDelta { text: more, .. } = stream.next().await.unwrap().unwrap()
            {
                text.push_str(&more);
            }
        }
        gate.open();
        while let Some(event) = stream.next().await {
            if let ModelEvent::TextDelta { text: more, .. } = event.unwrap() {
                text.push_str(&more);
            }
        }
        assert_eq!(text, "onetwo");
    }
}

#[tokio::test]
async fn every_model_closes_the_connection_of_a_dropped_stream() {
    let fake = FakeModel::start().await.unwrap();
    for wire in WIRES {
        let extension = if wire == Wire::Ollama {
            "ndjson"
        } else {
            "sse"
        };
        let path = format!("{}/text.{extension}", wire.name());
        let gone = loopback::lets_go(&fake, model(wire, &fake).as_ref(), &path, 2).await;
        gone.unwrap_or_else(|error| panic!("{path}: {error}"));
    }
    assert_eq!((fake.requests().len(), fake.unused()), (10, 0));
}

#[tokio::test]
async fn what_keeps_a_model_from_letting_go_is_told() {
    let fake = FakeModel::start().await.unwrap();
    let providers = providers(&fake);
    let model = providers[1].model.as_ref();
    for (path, kind) in [
        ("openai-chat/none.sse", io::ErrorKind::NotFound),
        // A whole body has no frames.
        ("openai-chat/text.json", io::ErrorKind::InvalidData),
    ] {
        let wrong = loopback::lets_go(&fake, model, path, 2).await.unwrap_err();
        let error = wrong.downcast_ref::<io::Error>();
        assert_eq!(error.map(io::Error::kind), Some(kind), "{wrong:?}");
    }
    fake.answer(Answer::json(400, &json!({"error": {"message": "No."}})));
    let wrong = loopback::lets_go(&fake, model, "openai-chat/text.sse", 2).await;
    assert!(wrong.unwrap_err().is::<ModelError>());
}

#[tokio::test]
async fn an_error_is_distinguished_from_an_answer() {
    let fake = FakeModel::start().await.unwrap();
    let providers = providers(&fake);
    let (model, question) = (providers[1].model.as_ref(), loopback::question());
    fake.answer(Answer::json(401, &json!({"error": {"message": "No."}})));
    let error = loopback::failure(model, &question).await.unwrap();
    assert_eq!(error.kind, ModelErrorKind::Authentication);
    fake.answer(Answer::openai_chat([Say::text("Hello.")]));
    let answer = loopback::failure(model, &question).await.unwrap_err();
    assert_eq!(answer.message.text(), "Hello.");
}

#[tokio::test]
async fn an_answer_that_breaks_off_is_no_answer() {
    let fake = FakeModel::start().await.unwrap();
    for provider in providers(&fake) {
        let answer = (provider.says)(vec![Say::text("half")]);
        let end = answer.pieces() - END;
        fake.answer(answer.break_before(end));
        let mut stream = provider.model.stream(&question()).await.unwrap();
        let last = loop {
            match stream.next().await {
                Some(Ok(_)) => {}
                Some(Err(error)) => break error,
                None => panic!("a quiet end in the middle of an answer"),
            }
        };
        assert_eq!(last.kind, ModelErrorKind::Interrupted, "{last}");
        assert!(stream.next().await.is_none());
    }
}

#[tokio::test]
async fn a_question_without_an_answer_is_an_error_of_the_script() {
    let fake = FakeModel::start().await.unwrap();
    let providers = providers(&fake);
    for provider in &providers {
        let error = provider.model.complete(&question()).await.unwrap_err();
        assert_eq!(error.http_status(), Some(400), "{error}");
        assert!(
            error.to_string().contains("no answer is scripted"),
            "{error}"
        );
    }
    let asked = fake.requests().len();
    assert_eq!(asked, providers.len(), "it is not tried again");
}

/// Checks that an error hides the key. Some gateways return status 200 and then the error of their
/// upstream, which may contain the key.
#[tokio::test]
async fn a_key_in_the_servers_answer_is_redacted() {
    const KEY: &str = "sk-secret-1";
    let error = json!({"error": {"message": format!("bad key {KEY}"), "code": 400}});
    for wire in WIRES {
        let fake = FakeModel::start().await.unwrap();
        let transport = TransportConfig {
            retry: RetryPolicy::never_retry(),
            ..TransportConfig::default()
        };
        let mut connection = Connection::new(wire, &fake.base_url(), transport);
        KEY.clone_into(&mut connection.key);
        let model = connection.chat_model();
        let stream = |text: String| match wire {
            Wire::Ollama => Answer::new(200)
                .header("content-type", "application/x-ndjson")
                .piece(format!("{text}\n")),
            _ => Answer::sse(format!("data: {text}\n\n")),
        };
        for (answer, status) in [
            (stream(error.to_string()), 200),
            (stream(format!("not json {KEY}")), 200),
            (Answer::json(200, &json!({ "oops": KEY })), 200),
            (Answer::json(200, &error), 200),
            (Answer::json(401, &error), 401),
        ] {
            let shown = format!("{wire:?}: {answer:?}");
            fake.answer(answer);
            let error = model.complete(&question()).await.unwrap_err();
            let mut told = format!("{error:?}");
            let mut cause: Option<&dyn std::error::Error> = Some(&error);
            while let Some(error) = cause {
                told = format!("{told} {error}");
                cause = error.source();
            }
            assert!(!told.contains(KEY), "{told}: {shown}");
            // Gemini's and Ollama's errors do not quote a body that is not an answer.
            let may_repeat = !matches!(wire, Wire::Gemini | Wire::Ollama);
            let is_repeated = may_repeat || !shown.contains("oops");
            assert_eq!(told.contains("[redacted]"), is_repeated, "{told}: {shown}");
            assert_eq!(error.http_status(), Some(status), "{error}");
        }
    }
}

#[tokio::test]
async fn a_page_of_html_is_not_an_answer() {
    let fake = FakeModel::start().await.unwrap();
    for wire in WIRES {
        let page = Answer::new(200).header("content-type", "text/html; charset=utf-8");
        fake.answer(page.piece("<html>Welcome"));
        let error = model(wire, &fake).complete(&question()).await.unwrap_err();
        assert_eq!(error.kind, ModelErrorKind::Protocol, "{wire:?}: {error}");
        assert!(error.message().contains("text/html"), "{wire:?}: {error}");
    }
}
