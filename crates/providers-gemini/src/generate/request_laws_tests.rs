//! Properties of every conversation.

use proptest::prelude::*;
use serde_json::{Value, json};
use switchboard_domain::{
    Media, Message, ModelErrorKind, Opaque, Part, ProviderState, Reasoning, Role, Text,
    ToolContent, ToolInput, ToolResult, ToolUse,
};
use switchboard_providers_common::schema::ToolSchemas;

use super::*;
use crate::capabilities;

/// Asserts that the contents follow the rules of the API.
pub(super) fn lawful(contents: &Value, name: &str) {
    let contents = contents.as_array().unwrap();
    assert_eq!(contents[0]["role"], "user", "{name}");
    let named = |content: Option<&Value>, field: &str| -> Vec<(Value, Value)> {
        let parts = content.and_then(|it| it["parts"].as_array());
        let found = parts
            .into_iter()
            .flatten()
            .filter_map(|part| part.get(field));
        found
            .map(|it| (it["id"].clone(), it["name"].clone()))
            .collect()
    };
    for (at, content) in contents.iter().enumerate() {
        let parts = content["parts"].as_array().unwrap();
        assert!(!parts.is_empty(), "{name}");
        let empty = |part: &Value| part["text"] == "" && part.get("thoughtSignature").is_none();
        assert!(!parts.iter().any(empty), "{name}: {content}");
        // Each call has a response with the same id and name in the next content, in the same
        // order.
        let calls = named(Some(content), "functionCall");
        let answers = named(contents.get(at + 1), "functionResponse");
        assert_eq!(calls, answers, "{name}: {content}");
        let responses = named(Some(content), "functionResponse").len();
        assert!(
            responses == 0 || responses == parts.len(),
            "{name}: {content}"
        );
    }
}

fn any_part() -> impl Strategy<Value = Part> {
    let minter = prop::sample::select(vec!["gemini-3.8-flash", "gemini-2.5-flash"]);
    let state = prop::option::of((
        minter,
        prop::sample::select(vec![
            json!({}),
            json!({"thoughtSignature": "c2ln"}),
            json!({"id": "w", "thoughtSignature": "c2ln"}),
            json!({"part": {"executableCode": {"code": "1"}}}),
            json!({"part": {"toolCall": {"id": "s"}, "thoughtSignature": "c2ln"}}),
            json!(3),
        ]),
    ))
    .prop_map(|it| {
        it.map(|(name, data)| ProviderState::new_for_model(&ModelId::new("gemini", name), data))
    });
    let text = prop::sample::select(vec!["", " ", "a"]);
    let id = prop::sample::select(vec!["", "1", "2", "3"]);
    let name = prop::sample::select(vec!["f", "7zip", "a/b", ""]);
    (0..8_u32, state, text, id, name).prop_map(|(kind, state, text, id, name)| match kind {
        0 => Part::Text(Text {
            text: text.into(),
            provider_state: state,
        }),
        1 => Part::Reasoning(Reasoning {
            text: text.into(),
            provider_state: state,
        }),
        2 => Part::Image(Media::from_base64("image/png", "AA==")),
        3 => Part::Opaque(Opaque {
            kind: "executableCode".into(),
            text: Some(text.into()),
            provider_state: state.unwrap_or(ProviderState {
                provider: "other".into(),
                model: None,
                data: Value::Null,
            }),
        }),
        4 | 5 => Part::ToolUse(ToolUse {
            provider_state: state,
            ..ToolUse::new(id, name, ToolInput::parse_input(text))
        }),
        _ => {
            let mut result = ToolResult::text(id, name, text);
            result.is_error = kind == 6;
            result =
                result.with_content([ToolContent::Image(Media::from_base64("image/gif", "AA=="))]);
            Part::ToolResult(result)
        }
    })
}

fn any_message() -> impl Strategy<Value = Message> {
    let roles = vec![
        Role::System,
        Role::User,
        Role::Assistant,
        Role::Assistant,
        Role::Tool,
    ];
    let parts = prop::collection::vec(any_part(), 0..4);
    (prop::sample::select(roles), parts).prop_map(|(role, parts)| Message::new(role, parts))
}

proptest! {
    /// Any conversation is mapped to valid contents. Only a conversation without content is an
    /// error.
    #[test]
    fn any_history_is_sent_as_lawful_contents(messages in prop::collection::vec(any_message(), 0..8)) {
        let request = ChatRequest::new(messages);
        for name in ["gemini-2.5-flash", "gemini-3.8-flash", "gemma-3-27b-it"] {
            let (model, options) = (ModelId::new("gemini", name), GeminiOptions::default());
            match to_wire_request(&request, &model, &capabilities(name), &options, &ToolSchemas::default()) {
                Ok(wire) => {
                    let body = serde_json::to_value(&wire.body).unwrap();
                    lawful(&body["contents"], name);
                    // The setting is sent exactly if the contents have calls of server tools.
                    let config = &body["toolConfig"]["includeServerSideToolInvocations"];
                    let speaks = body["contents"].to_string().contains("toolCall");
                    prop_assert_eq!(config == &Value::Bool(true), speaks);
                    // No signature of another model is sent.
                    let foreign = body.to_string().matches("c2ln").count();
                    let own = request.messages.iter().flat_map(|it| &it.parts)
                        .filter_map(Part::provider_state)
                        .filter(|state| state.model.as_deref() == Some(name))
                        .count();
                    prop_assert!(foreign <= own);
                }
                Err(error) => {
                    let field = Some("contents".to_owned());
                    prop_assert_eq!(error.kind, ModelErrorKind::InvalidRequest { field });
                }
            }
        }
    }
}
