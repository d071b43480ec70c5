//! Checks that the next request contains a provider's opaque state unchanged.
//!
//! Every transcript with opaque state (signed reasoning, encrypted reasoning, blocks of built-in
//! tools) is decoded, and the conversation is continued. The body of the next request is stored as
//! `round_trip__request__<kind>__<stem>`, so that `cargo xtask oracle` can validate it with the
//! official SDKs. A new wire needs one entry in [`targets`].

mod stored;
mod wires;

use std::{
    collections::BTreeSet,
    panic::{AssertUnwindSafe, catch_unwind},
};

use serde_json::Value;
use switchboard_domain::{
    ChatRequest, ChatResponse, FinishReason, Message, ModelId, Part, ToolResult,
};
use switchboard_providers_openai::Profile;
use switchboard_testkit::{
    fixtures,
    replay::{Arrival, Cutting, Delivery, ReplayError, play},
    transcripts::{self, Form, Transcript},
};

use crate::wires::{Target, WIRES, Wire};

/// Returns the targets with the names of their requests in `cargo xtask oracle`.
fn targets() -> [(Target, &'static str); 5] {
    WIRES.map(|wire| match wire {
        // OpenAI attaches no state on this wire, but compatible servers do.
        Wire::Chat => {
            let target = Target::compatible(fixtures::compatible_model(), Profile::generic());
            (target, "openai-compatible")
        }
        Wire::Responses => (Target::new(wire, fixtures::openai_model()), wire.name()),
        Wire::Gemini => {
            let model = ModelId::new("gemini", "gemini-3.8-flash");
            (Target::new(wire, model), wire.name())
        }
        Wire::Anthropic | Wire::Ollama => (wire.target(), wire.name()),
    })
}

/// Transcripts with values that no API has yet. The SDKs do not validate them.
const INVENTED: [&str; 3] = ["ping-and-unknown", "unknown-events", "unknown-values"];

/// Returns the conversation with the answer and the results of its calls, or a further question.
fn go_on(answer: &ChatResponse) -> ChatRequest {
    let message = &answer.message;
    let results: Vec<ToolResult> = message
        .tool_uses()
        .map(|it| ToolResult::text(&it.id, &it.name, "12 °C, rain"))
        .collect();
    let mut messages = vec![Message::user("What is the weather?"), message.clone()];
    if !results.is_empty() {
        messages.push(Message::from_tool_results(results));
    } else if answer.finish != FinishReason::Paused {
        messages.push(Message::user("Go on."));
    }
    ChatRequest::new(messages).with_tools([fixtures::weather(), fixtures::list_cities()])
}

/// Returns the answer of a transcript if it is complete and has opaque state.
fn answer(transcript: &Transcript, target: &Target) -> Result<Option<ChatResponse>, ReplayError> {
    let delivery = Delivery {
        cutting: Cutting::Whole,
        arrival: Arrival::AtOnce,
    };
    let replayed = play(&transcript.bytes, delivery, |body| {
        target.decode_plain(body)
    })?;
    let mut parts = replayed.response.message.parts.iter();
    let carries = parts.any(|it| it.provider_state().is_some());
    Ok((replayed.failure.is_none() && carries).then_some(replayed.response))
}

#[test]
fn provider_state_is_sent_back_unchanged() {
    let transcripts = transcripts::all().unwrap();
    let mut expected = BTreeSet::new();
    let mut wrong = Vec::new();
    for (target, kind) in targets() {
        let (before, folder) = (expected.len(), target.wire.name());
        let streams = transcripts
            .iter()
            .filter(|it| it.wire == folder && it.form != Form::Json);
        for transcript in streams {
            let Some(answer) = answer(transcript, &target).unwrap() else {
                continue;
            };
            let body = target.send(&go_on(&answer)).unwrap().body;
            let stem = transcript.stem.as_str();
            let name = if INVENTED.contains(&stem) {
                format!("invented__{kind}__{stem}")
            } else {
                format!("request__{kind}__{stem}")
            };
            expected.insert(format!("round_trip__{name}"));
            let mut settings = insta::Settings::clone_current();
            settings.set_omit_expression(true);
            let assert = || settings.bind(|| insta::assert_json_snapshot!(name.as_str(), body));
            if catch_unwind(AssertUnwindSafe(assert)).is_err() {
                wrong.push(name);
            }
        }
        assert!(expected.len() > before, "{kind} has no such answer");
    }
    assert!(wrong.is_empty(), "these differ: {wrong:#?}");
    let stored = stored::snapshots("round_trip__").unwrap();
    let stale: Vec<_> = stored.difference(&expected).collect();
    assert!(stale.is_empty(), "no transcript has these: {stale:#?}");
}

/// Checks that another provider never gets the state.
#[test]
fn state_never_reaches_another_provider() {
    let transcripts = transcripts::all().unwrap();
    let targets = targets();
    for (from, _) in &targets {
        let name = from.wire.name();
        for transcript in transcripts.iter().filter(|it| it.wire == name) {
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
            for (to, _) in targets.iter().filter(|(it, _)| it.wire != from.wire) {
                let body = to.send(&go_on(&answer)).unwrap().bytes;
                for secret in &states {
                    assert!(
                        !body.contains(secret.as_str()),
                        "{name} {} reached {:?}: {secret}",
                        transcript.stem,
                        to.wire
                    );
                }
            }
        }
    }
}

/// Returns the signatures and encrypted texts in a state.
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
