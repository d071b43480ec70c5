//! Scripted answers, read by the real adapters over real HTTP.
//!
//! This checks both sides: that what [`Say`] writes is what a wire says, and that an adapter whose
//! stream is dropped lets go of the connection. Another provider is one entry of [`providers`].

use std::{error::Error, io};

use futures_util::StreamExt as _;
use serde_json::json;
use switchboard_domain::{
    ChatModel, ChatRequest, FinishReason, Message, ModelError, ModelErrorKind, ModelEvent,
    ToolInput, ToolUse,
};
use switchboard_providers_anthropic::{AnthropicConfig, AnthropicModel};
use switchboard_providers_common::{RetryPolicy, TransportConfig};
use switchboard_providers_gemini::{GeminiConfig, GeminiModel};
use switchboard_providers_ollama::{OllamaConfig, OllamaModel};
use switchboard_providers_openai::{OpenAiClient, OpenAiConfig, Responses};
use switchboard_testkit::{
    fake::{Answer, FakeModel, Gate, Say},
    fixtures, loopback,
};

struct Provider {
    model: Box<dyn ChatModel>,
    path: &'static str,
    /// The header with the key, and what it holds.
    key: (&'static str, &'static str),
    says: fn(Vec<Say>) -> Answer,
}

fn transport() -> TransportConfig {
    TransportConfig {
        retry: RetryPolicy::never(),
        system_proxy: false,
        ..TransportConfig::default()
    }
}

/// Every provider whose wire [`Say`] can write, asking this server.
fn providers(fake: &FakeModel) -> Result<Vec<Provider>, Box<dyn Error>> {
    let transport = transport();
    let base = fake.base_url();
    let anthropic = AnthropicConfig {
        transport: transport.clone(),
        ..AnthropicConfig::compatible("anthropic", &base).with_api_key("sk-ant-test")
    };
    let openai = OpenAiConfig {
        transport,
        ..OpenAiConfig::compatible("openai", format!("{base}/v1")).with_api_key("sk-test")
    };
    let openai = OpenAiClient::new(openai)?;
    Ok(vec![
        Provider {
            model: Box::new(AnthropicModel::new(anthropic, "claude-haiku-4-5")?),
            path: "/v1/messages",
            key: ("x-api-key", "sk-ant-test"),
            says: |said| Answer::anthropic(said),
        },
        Provider {
            model: Box::new(openai.model("gpt-4.1")),
            path: "/v1/chat/completions",
            key: ("authorization", "Bearer sk-test"),
            says: |said| Answer::openai_chat(said),
        },
        Provider {
            model: Box::new(openai.model_on::<Responses>("gpt-4.1")),
            path: "/v1/responses",
            key: ("authorization", "Bearer sk-test"),
            says: |said| Answer::openai_responses(said),
        },
    ])
}

/// The frames after the last text, on every wire: its end, the reason and usage, the end of all.
const END: usize = 3;

fn question() -> ChatRequest {
    ChatRequest::new([Message::user("What is the weather in Kiel?")])
        .with_tools([fixtures::weather()])
}

#[tokio::test]
async fn scripted_answers_say_what_they_should() {
    let fake = FakeModel::start().await.unwrap();
    let input = json!({"city": "Kiel", "unit": "celsius"});
    for (number, provider) in providers(&fake).unwrap().into_iter().enumerate() {
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
    for provider in providers(&fake).unwrap() {
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
async fn every_model_lets_go_of_what_is_dropped() {
    let fake = FakeModel::start().await.unwrap();
    let mut models: Vec<(Box<dyn ChatModel>, &str)> = Vec::new();
    let stored = [
        "anthropic/text.sse",
        "openai-chat/text.sse",
        "openai-responses/text.sse",
    ];
    for (provider, path) in providers(&fake).unwrap().into_iter().zip(stored) {
        models.push((provider.model, path));
    }
    let gemini = GeminiConfig {
        transport: transport(),
        ..GeminiConfig::compatible("gemini", fake.base_url())
    };
    let gemini = GeminiModel::new(gemini, "gemini-2.5-flash").unwrap();
    models.push((Box::new(gemini), "gemini/text.sse"));
    let ollama = OllamaConfig {
        transport: transport(),
        ..OllamaConfig::at(&fake.base_url()).unwrap()
    };
    let ollama = OllamaModel::new(ollama, "qwen3:8b").unwrap();
    models.push((Box::new(ollama), "ollama/text.ndjson"));
    for (model, path) in models {
        let gone = loopback::lets_go(&fake, model.as_ref(), path, 2).await;
        gone.unwrap_or_else(|error| panic!("{path}: {error}"));
    }
    assert_eq!((fake.requests().len(), fake.unused()), (10, 0));
}

#[tokio::test]
async fn what_keeps_a_model_from_letting_go_is_told() {
    let fake = FakeModel::start().await.unwrap();
    let providers = providers(&fake).unwrap();
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
async fn a_failure_is_told_from_an_answer() {
    let fake = FakeModel::start().await.unwrap();
    let providers = providers(&fake).unwrap();
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
    for provider in providers(&fake).unwrap() {
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
    let providers = providers(&fake).unwrap();
    for provider in &providers {
        let error = provider.model.complete(&question()).await.unwrap_err();
        assert_eq!(error.status(), Some(400), "{error}");
        assert!(
            error.to_string().contains("no answer is scripted"),
            "{error}"
        );
    }
    let asked = fake.requests().len();
    assert_eq!(asked, providers.len(), "it is not tried again");
}
