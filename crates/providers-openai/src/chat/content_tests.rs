//! Tests of the mapping of messages.

use WarningKind::{PartDowngraded, PartDropped};

use super::*;

#[test]
fn media_without_a_form_are_described_with_a_warning() {
    let request = ChatRequest::new([Message::new(
        Role::User,
        [
            Part::Audio(Media::base64("audio/ogg", "AA==")),
            Part::Audio(Media::url("audio/wav", "https://example.org/a.wav")),
            Part::Document(Document {
                media: Media::url("application/pdf", "https://example.org/a.pdf"),
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
fn an_image_is_described_to_a_model_without_image_input() {
    let mut result = ToolResult::text("1", "shot", "ok");
    let media = || Media::base64("image/png", "AA==");
    result = result.with_content([ToolContent::Image(media())]);
    let request = ChatRequest::new([
        Message::tool_results([result]),
        Message::new(Role::User, [Part::Image(media())]),
    ]);
    let blind = ModelCapabilities {
        images: Some(false),
        ..ModelCapabilities::default()
    };
    let model = ModelId::new("p", "m");
    let mapped = mapped_with(&request, &model, &blind, &Profile::generic());
    assert_eq!(
        mapped["body"]["messages"],
        json!([
            {"role": "tool", "tool_call_id": "1", "content": "ok\n[image image/png]"},
            {"role": "user", "content": "[image image/png]"},
        ])
    );
    assert_eq!(mapped["warnings"].as_array().unwrap().len(), 2);
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
            [Part::Image(Media::base64("image/png", "AA=="))],
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
    assert_eq!(
        body(&request)["messages"],
        json!([{"role": "assistant", "content": "Found:\n\na page\n\nIt rains."}])
    );
    let kinds: Vec<_> = warnings(&request).into_iter().map(|it| it.0).collect();
    // All reasoning parts have one warning.
    assert_eq!(
        kinds,
        [PartDropped, PartDropped, PartDowngraded, PartDropped]
    );
}

#[test]
fn reasoning_is_sent_back_to_servers_that_require_it() {
    let model = ModelId::new("deepseek", "deepseek-v4-pro");
    let thought = |minter: &ModelId, text: &str| {
        Part::Reasoning(Reasoning {
            text: text.into(),
            provider_state: Some(ProviderState::minted_by(
                minter,
                json!({"field": "reasoning_content"}),
            )),
        })
    };
    let call = ToolUse::new("call_1", "f", ToolInput::parse("{}"));
    let other = ModelId::new("anthropic", "claude");
    let mut request = ChatRequest::new([
        Message::user("hi"),
        Message::new(
            Role::Assistant,
            [thought(&model, "I need f."), Part::ToolUse(call)],
        ),
        Message::tool_results([ToolResult::text("call_1", "f", "1")]),
        Message::new(
            Role::Assistant,
            [thought(&other, "Done."), Part::text("It is 1.")],
        ),
    ]);
    let unknown = ModelCapabilities::default();
    let sent = |request: &ChatRequest, profile: &Profile| {
        let mapped = mapped_with(request, &model, &unknown, profile);
        let messages = mapped["body"]["messages"].as_array().unwrap();
        let assistant = messages.iter().filter(|it| it["role"] == "assistant");
        let thoughts: Vec<_> = assistant
            .map(|it| it["reasoning_content"].clone())
            .collect();
        (thoughts, mapped["warnings"].as_array().unwrap().len())
    };
    // The API refuses a message without reasoning, so a blank is sent.
    assert_eq!(
        sent(&request, &Profile::deepseek()),
        (vec![json!("I need f."), json!(" ")], 1)
    );
    assert_eq!(
        sent(&request, &Profile::vllm()),
        (vec![json!("I need f."), Value::Null], 1)
    );
    assert_eq!(
        sent(&request, &Profile::generic()),
        (vec![Value::Null, Value::Null], 1)
    );
    request.reasoning = Some(ReasoningEffort::None);
    assert_eq!(
        sent(&request, &Profile::deepseek()),
        (vec![json!("I need f."), Value::Null], 1)
    );
}

#[test]
fn the_state_of_a_call_is_sent_back_to_the_same_model_only() {
    let gemini = ModelId::new("google", "gemini-3.8-flash");
    let signature = json!({"extra_content": {"google": {"thought_signature": "sig"}}});
    let mut call = ToolUse::new("call_1", "f", ToolInput::parse("{}"));
    call.provider_state = Some(ProviderState::minted_by(&gemini, signature.clone()));
    let mut said = switchboard_domain::Text {
        text: "I call f.".into(),
        provider_state: None,
    };
    said.provider_state = Some(ProviderState::minted_by(&gemini, json!("sig")));
    let parts = [Part::Text(said), Part::ToolUse(call)];
    let request = ChatRequest::new([Message::new(Role::Assistant, parts)]);
    let unknown = ModelCapabilities::default();
    let sent = |model: &ModelId| {
        let mapped = mapped_with(&request, model, &unknown, &Profile::generic());
        let call = &mapped["body"]["messages"][0]["tool_calls"][0];
        let message = mapped["warnings"][0]["message"].as_str().unwrap();
        (call["extra_content"].clone(), message[..1].to_owned())
    };
    // The state has the form of another wire.
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
        provider_state: Some(ProviderState::minted_by(&model, data)),
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
