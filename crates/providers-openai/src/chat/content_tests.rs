//! Tests of the mapping of messages.

use WarningKind::{PartDowngraded, PartDropped};

use super::*;

#[test]
fn media_without_a_form_are_described_with_a_warning() {
    let request = ChatRequest::new([Message::new(
        Role::User,
        [
            Part::Audio(Media::from_base64("audio/ogg", "AA==")),
            Part::Audio(Media::from_url("audio/wav", "https://example.org/a.wav")),
            Part::Document(Document {
                media: Media::from_url("application/pdf", "https://example.org/a.pdf"),
                title: None,
            }),
        ],
    )]);
    assert_eq!(
        body(&request)["messages"][0]["content"],
        "[audio audio/ogg]\n\n[audio audio/wav]\n\n[document: https://example.org/a.pdf]"
    );
    let kinds: Vec<_> = warnings(&request).into_iter().map(|it| it.0).collect();
    assert_eq!(kinds, [WarningKind::PartDowngraded; 3]);
}

#[test]
fn parts_without_a_form_are_dropped_with_a_warning() {
    let state = || ProviderState {
        provider: "anthropic".into(),
        model: None,
        data: json!({}),
    };
    let opaque = |text: Option<&str>| {
        Part::Opaque(Opaque {
            kind: "web_search_tool_result".into(),
            text: text.map(str::to_owned),
            provider_state: state(),
        })
    };
    let reasoning = || {
        Part::Reasoning(Reasoning {
            text: "hm".into(),
            provider_state: None,
        })
    };
    let request = ChatRequest::new([
        Message::new(
            Role::System,
            [Part::Image(Media::from_base64("image/png", "AA=="))],
        ),
        // All parts are dropped: no message is sent, because the API refuses an empty one.
        Message::new(Role::Assistant, [reasoning(), opaque(None)]),
        Message::new(
            Role::Assistant,
            [
                reasoning(),
                Part::text("Found:"),
                opaque(Some("a page")),
                Part::text("It "),
                Part::text("rains."),
            ],
        ),
        Message::new(Role::User, []),
    ]);
    let expected = json!([{"role": "assistant", "content": "Found:\n\na page\n\nIt rains."}]);
    assert_eq!(body(&request)["messages"], expected);
    let kinds: Vec<_> = warnings(&request).into_iter().map(|it| it.0).collect();
    // All reasoning parts together have one warning.
    let expected = [PartDropped, PartDropped, PartDowngraded, PartDropped];
    assert_eq!(kinds, expected);
}

#[test]
fn the_state_of_a_call_is_sent_back_to_the_same_model_only() {
    let gemini = ModelId::new("google", "gemini-3.8-flash");
    let signature = json!({"extra_content": {"google": {"thought_signature": "sig"}}});
    let mut call = ToolUse::new("call_1", "f", ToolInput::parse_input("{}"));
    call.provider_state = Some(ProviderState::new_for_model(&gemini, signature.clone()));
    let mut said = switchboard_domain::Text {
        text: "I call f.".into(),
        provider_state: None,
    };
    said.provider_state = Some(ProviderState::new_for_model(&gemini, json!("sig")));
    let parts = [Part::Text(said), Part::ToolUse(call)];
    let request = ChatRequest::new([Message::new(Role::Assistant, parts)]);
    let unknown = ModelCapabilities::default();
    let sent = |model: &ModelId| {
        let mapped = mapped_with(&request, model, &unknown, &Profile::generic());
        let call = &mapped["body"]["messages"][0]["tool_calls"][0];
        let message = mapped["warnings"][0]["message"].as_str().unwrap();
        (call["extra_content"].clone(), message[..1].to_owned())
    };
    // The Gemini API created this provider state, in its own form.
    assert_eq!(
        sent(&gemini),
        (signature["extra_content"].clone(), "1".to_owned())
    );
    let other = ModelId::new("google", "gemini-4-argon");
    assert_eq!(sent(&other), (Value::Null, "2".to_owned()));
}

#[test]
fn an_answer_of_reasoning_only_is_dropped_with_a_warning() {
    let model = ModelId::new("acme", "acme-1");
    let data = json!({"field": "reasoning_content"});
    let thought = Part::Reasoning(Reasoning {
        text: "Hm.".into(),
        provider_state: Some(ProviderState::new_for_model(&model, data)),
    });
    let request = ChatRequest::new([
        Message::user("hi"),
        Message::new(Role::Assistant, [thought]),
        Message::user("Go on."),
    ]);
    for profile in [Profile::vllm(), Profile::deepseek()] {
        let unknown = ModelCapabilities::default();
        let mapped = mapped_with(&request, &model, &unknown, &profile);
        let roles: Vec<_> = mapped["body"]["messages"]
            .as_array()
            .unwrap()
            .iter()
            .map(|it| &it["role"])
            .collect();
        assert_eq!(roles, ["user", "user"]);
        let warnings = mapped["warnings"].as_array().unwrap();
        assert_eq!(warnings.len(), 1, "{warnings:?}");
        let message = warnings[0]["message"].as_str().unwrap();
        assert!(message.starts_with("1 reasoning part(s) were dropped: the answer has no other"));
    }
}
