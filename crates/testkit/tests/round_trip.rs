//! What a provider attached to its answer goes back to it as it came.
//!
//! Every transcript whose answer carries opaque state (signed thinking, encrypted reasoning, blocks
//! of tools that ran at the provider) is decoded, and then asked to go on. The body of that next
//! request is stored as `round_trip__request__<kind>__<stem>`, so that `cargo xtask oracle` asks the
//! official SDKs about it. Another wire is one entry of [`WIRES`].

mod stored;

use std::{
    collections::BTreeSet,
    error::Error,
    panic::{AssertUnwindSafe, catch_unwind},
};

use serde_json::Value;
use switchboard_domain::{
    ChatRequest, ChatResponse, FinishReason, Message, ModelId, ModelStream, Part,
    ToolChoiceOutcome, ToolResult,
};
use switchboard_providers_anthropic::{MessagesOptions, messages};
use switchboard_providers_common::schema::ToolSchemas;
use switchboard_providers_common::{decode_ndjson, decode_sse};
use switchboard_providers_gemini::{GeminiOptions, generate};
use switchboard_providers_ollama::ThinkForm;
use switchboard_providers_openai::{
    Profile, chat,
    responses::{self, ResponsesOptions},
};
use switchboard_testkit::{
    fixtures,
    replay::{Arrival, Body, Cutting, Delivery, ReplayError, play},
    transcripts::{self, Form, Transcript},
};

/// Both directions of a wire.
struct Wire {
    /// The folder of its transcripts.
    name: &'static str,
    /// What `cargo xtask oracle` calls the body. What it does not know it does not judge.
    kind: &'static str,
    /// Transcripts with things that no API has yet. No SDK is a judge of them.
    invented: &'static [&'static str],
    stream: fn(Body) -> ModelStream,
    send: fn(&ChatRequest) -> Result<Value, Box<dyn Error>>,
}

const WIRES: &[Wire] = &[
    Wire {
        name: "anthropic",
        kind: "anthropic",
        invented: &["ping-and-unknown"],
        stream: |body| {
            let model = fixtures::anthropic_model();
            let ids = messages::LocalIds::default();
            let native = ToolChoiceOutcome::Native;
            let decoder = messages::MessagesDecoder::new(model, native, Vec::new(), ids);
            decode_sse("anthropic", body, decoder)
        },
        send: |request| {
            let model = fixtures::anthropic_model();
            let capabilities = switchboard_providers_anthropic::capabilities(&model.name);
            let options = MessagesOptions::default();
            let wire = messages::to_wire(
                request,
                &model,
                &capabilities,
                &options,
                &ToolSchemas::default(),
            )?;
            Ok(serde_json::to_value(&wire.body)?)
        },
    },
    Wire {
        name: "openai-chat",
        // OpenAI itself attaches nothing on this wire; servers that speak it do.
        kind: "openai-compatible",
        invented: &[],
        stream: |body| {
            let model = fixtures::compatible_model();
            let ids = chat::LocalIds::default();
            let native = ToolChoiceOutcome::Native;
            let decoder = chat::ChatDecoder::new(model, native, Vec::new(), ids);
            decode_sse("deepseek", body, decoder)
        },
        send: |request| {
            let model = fixtures::compatible_model();
            let profile = Profile::generic();
            let capabilities = switchboard_providers_openai::capabilities(&model.name, &profile);
            let wire = chat::to_wire(
                request,
                &model,
                &capabilities,
                &profile,
                &ToolSchemas::default(),
            )?;
            Ok(serde_json::to_value(&wire.body)?)
        },
    },
    Wire {
        name: "openai-responses",
        kind: "openai-responses",
        invented: &["unknown-events"],
        stream: |body| {
            let model = fixtures::openai_model();
            let ids = responses::LocalIds::default();
            let native = ToolChoiceOutcome::Native;
            let decoder = responses::ResponsesDecoder::new(model, native, Vec::new(), ids);
            decode_sse("openai", body, decoder)
        },
        send: |request| {
            let model = fixtures::openai_model();
            let profile = Profile::openai();
            let capabilities = switchboard_providers_openai::capabilities(&model.name, &profile);
            let options = ResponsesOptions::default();
            let wire = responses::to_wire(
                request,
                &model,
                &capabilities,
                &profile,
                &options,
                &ToolSchemas::default(),
            )?;
            Ok(serde_json::to_value(&wire.body)?)
        },
    },
    Wire {
        name: "gemini",
        kind: "gemini",
        invented: &["unknown-values"],
        stream: |body| {
            let ids = generate::LocalIds::default();
            let native = ToolChoiceOutcome::Native;
            let decoder = generate::GenerateDecoder::new(gemini(), native, Vec::new(), ids);
            decode_sse("gemini", body, decoder)
        },
        send: |request| {
            let model = gemini();
            let capabilities = switchboard_providers_gemini::capabilities(&model.name);
            let options = GeminiOptions::default();
            let wire = generate::to_wire(
                request,
                &model,
                &capabilities,
                &options,
                &ToolSchemas::default(),
            )?;
            Ok(serde_json::to_value(&wire.body)?)
        },
    },
    Wire {
        name: "ollama",
        kind: "ollama",
        invented: &[],
        stream: |body| {
            use switchboard_providers_ollama::chat::{ChatDecoder, LocalIds};
            let native = ToolChoiceOutcome::Native;
            let decoder = ChatDecoder::new(ollama(), native, Vec::new(), LocalIds::default());
            decode_ndjson("ollama", body, decoder)
        },
        send: |request| {
            let model = ollama();
            let capabilities = switchboard_providers_ollama::capabilities(&model.name, false);
            let think = ThinkForm::default();
            let wire = switchboard_providers_ollama::chat::to_wire(
                request,
                &model,
                &capabilities,
                think,
                &ToolSchemas::default(),
            )?;
            Ok(serde_json::to_value(&wire.body)?)
        },
    },
];

/// One that wants its signatures back.
fn gemini() -> ModelId {
    ModelId::new("gemini", "gemini-3.8-flash")
}

fn ollama() -> ModelId {
    ModelId::new("ollama", "qwen3:8b")
}

/// The answer, followed by what a run or a person would say next.
fn go_on(answer: &ChatResponse) -> ChatRequest {
    let message = &answer.message;
    let results: Vec<ToolResult> = message
        .tool_uses()
        .map(|it| ToolResult::text(&it.id, &it.name, "12 °C, rain"))
        .collect();
    let mut messages = vec![Message::user("What is the weather?"), message.clone()];
    if !results.is_empty() {
        messages.push(Message::tool_results(results));
    } else if answer.finish != FinishReason::Paused {
        messages.push(Message::user("Go on."));
    }
    ChatRequest::new(messages).with_tools([fixtures::weather(), fixtures::list_cities()])
}

/// The answer of a transcript, if it is whole and carries state.
fn answer(transcript: &Transcript, wire: &Wire) -> Result<Option<ChatResponse>, ReplayError> {
    let delivery = Delivery {
        cutting: Cutting::Whole,
        arrival: Arrival::AtOnce,
    };
    let replayed = play(&transcript.bytes, delivery, wire.stream)?;
    let mut parts = replayed.response.message.parts.iter();
    let carries = parts.any(|it| it.provider_state().is_some());
    Ok((replayed.failure.is_none() && carries).then_some(replayed.response))
}

#[test]
fn what_carries_state_goes_back_as_it_came() {
    let transcripts = transcripts::all().unwrap();
    let mut expected = BTreeSet::new();
    let mut wrong = Vec::new();
    for wire in WIRES {
        let before = expected.len();
        let streams = transcripts
            .iter()
            .filter(|it| it.wire == wire.name && it.form != Form::Json);
        for transcript in streams {
            let Some(answer) = answer(transcript, wire).unwrap() else {
                continue;
            };
            let body = (wire.send)(&go_on(&answer)).unwrap();
            let stem = transcript.stem.as_str();
            let name = if wire.invented.contains(&stem) {
                format!("invented__{}__{stem}", wire.kind)
            } else {
                format!("request__{}__{stem}", wire.kind)
            };
            expected.insert(format!("round_trip__{name}"));
            let mut settings = insta::Settings::clone_current();
            settings.set_omit_expression(true);
            let assert = || settings.bind(|| insta::assert_json_snapshot!(name.as_str(), body));
            if catch_unwind(AssertUnwindSafe(assert)).is_err() {
                wrong.push(name);
            }
        }
        assert!(expected.len() > before, "{} has no such answer", wire.name);
    }
    assert!(wrong.is_empty(), "these differ: {wrong:#?}");
    let stored = stored::snapshots("round_trip__").unwrap();
    let stale: Vec<_> = stored.difference(&expected).collect();
    assert!(stale.is_empty(), "no transcript has these: {stale:#?}");
}

/// The same answers, to a model that did not give them: nothing of the state may reach it.
#[test]
fn state_never_reaches_another_provider() {
    let transcripts = transcripts::all().unwrap();
    for from in WIRES {
        for transcript in transcripts.iter().filter(|it| it.wire == from.name) {
            if transcript.form == Form::Json {
                continue;
            }
            let Some(answer) = answer(transcript, from).unwrap() else {
                continue;
            };
            let parts = answer.message.parts.iter();
            let states: Vec<String> = parts
                .filter_map(Part::provider_state)
                .flat_map(|state| secrets(&state.data))
                .collect();
            for to in WIRES.iter().filter(|it| it.name != from.name) {
                let body = (to.send)(&go_on(&answer)).unwrap().to_string();
                for secret in &states {
                    assert!(
                        !body.contains(secret.as_str()),
                        "{} {} reached {}: {secret}",
                        from.name,
                        transcript.stem,
                        to.name
                    );
                }
            }
        }
    }
}

/// Signatures and encrypted texts: what no person reads and no other model understands.
fn secrets(data: &Value) -> Vec<String> {
    const NAMES: [&str; 7] = [
        "signature",
        "thoughtSignature",
        "redacted",
        "data",
        "encrypted_content",
        "encrypted_index",
        "format",
    ];
    match data {
        Value::Object(object) => object
            .iter()
            .flat_map(|(name, value)| match value {
                Value::String(text) if NAMES.contains(&name.as_str()) => vec![text.clone()],
                other => secrets(other),
            })
            .collect(),
        Value::Array(values) => values.iter().flat_map(secrets).collect(),
        _ => Vec::new(),
    }
}
