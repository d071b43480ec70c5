use proptest::prelude::*;
use serde_json::{Value, json};
use switchboard_domain::{
    Document, Media, ModelCapabilities, ModelErrorKind, ModelId, Opaque, ProviderState, Reasoning,
    Text, ToolInput, ToolResult, ToolUse, Warning, WarningKind,
};

use switchboard_providers_common::tool_names::{NameRule, ToolNames};

use super::*;
use crate::{model_rules::find_rules, options::MessagesOptions};

struct Mapped {
    system: Value,
    messages: Value,
    warnings: Vec<(WarningKind, String)>,
}

fn map_with(
    messages: impl IntoIterator<Item = Message>,
    model: &str,
    capabilities: &ModelCapabilities,
    replay_reasoning: bool,
) -> Result<Mapped, ModelError> {
    let request = ChatRequest::new(messages);
    let model = ModelId::new("anthropic", model);
    let mut warnings = Vec::new();
    let names = ToolNames::from_request(&request, NameRule::ANTHROPIC);
    let options = MessagesOptions {
        replay_reasoning,
        ..MessagesOptions::default()
    };
    let mapper = ContentMapper::new(
        &request,
        &model,
        &names,
        capabilities,
        &options,
        &mut warnings,
    );
    let sent = map_conversation(&request, find_rules(&model.name), mapper)?;
    Ok(Mapped {
        system: json!(sent.system),
        messages: json!(sent.messages),
        warnings: warnings
            .into_iter()
            .map(|Warning { kind, message }| (kind, message))
            .collect(),
    })
}

fn map(messages: impl IntoIterator<Item = Message>, model: &str) -> Mapped {
    map_with(messages, model, &ModelCapabilities::default(), true).unwrap()
}

fn kinds(mapped: &Mapped) -> Vec<WarningKind> {
    mapped.warnings.iter().map(|(kind, _)| *kind).collect()
}

fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

fn user(blocks: &[Value]) -> Value {
    json!({"role": "user", "content": blocks})
}

fn call(id: &str) -> Part {
    Part::ToolUse(ToolUse::new(id, "f", ToolInput::parse_input("{}")))
}

fn result(id: &str) -> ToolResult {
    ToolResult::text(id, "f", "r")
}

/// Returns the role of each message and the text or the type of its blocks.
fn outline(mapped: &Mapped) -> Vec<String> {
    let messages = mapped.messages.as_array().unwrap().iter();
    let outline = messages.map(|message| {
        let blocks = message["content"].as_array().unwrap().iter();
        let blocks: Vec<_> = blocks
            .map(|it| {
                let text = it["text"].as_str().or(it["tool_use_id"].as_str());
                text.or(it["type"].as_str()).unwrap()
            })
            .collect();
        format!(
            "{}: {}",
            message["role"].as_str().unwrap(),
            blocks.join(", ")
        )
    });
    outline.collect()
}

const NEW: &str = "claude-opus-5-5";
const OLD: &str = "claude-haiku-4-5";

#[test]
fn later_instructions_stay_in_place_if_the_model_supports_it() {
    let conversation = || {
        [
            Message::system("a"),
            Message::user("1"),
            Message::system("b"),
            Message::user("2"),
            Message::new(Role::Assistant, [Part::text("3"), call("x")]),
            Message::system("c"),
            Message::from_tool_results([result("x")]),
            Message::system("d"),
        ]
    };
    let new = map(conversation(), NEW);
    assert_eq!(new.system, json!([text("a")]));
    assert_eq!(
        outline(&new),
        [
            "user: 1, 2",
            "system: b",
            "assistant: 3, tool_use",
            "user: x",
            "system: c, d",
        ]
    );
    assert!(new.warnings.is_empty());
    // For older models, instructions within the conversation move to `system`.
    let old = map(conversation(), OLD);
    let expected = json!([text("a"), text("b"), text("c"), text("d")]);
    assert_eq!(old.system, expected);
    assert_eq!(kinds(&old), [WarningKind::PartDowngraded]);
    assert!(old.warnings[0].1.starts_with("3 later instruction(s)"));
    assert_eq!(outline(&old).len(), 3);
}

#[test]
fn instructions_after_the_last_assistant_message_become_system() {
    let mapped = map(
        [
            Message::user("1"),
            Message::assistant("2"),
            Message::system("a"),
        ],
        "claude-sonnet-5",
    );
    assert_eq!(mapped.system, json!([text("a")]));
    let expected = ["user: 1", "assistant: 2", "user: Continue."];
    assert_eq!(outline(&mapped), expected);
    let expected = [WarningKind::PartDowngraded, WarningKind::PartDowngraded];
    assert_eq!(kinds(&mapped), expected);
}

#[test]
fn unmatched_calls_and_results_are_repaired_with_warnings() {
    let mapped = map(
        [
            Message::from_tool_results([result("gone")]),
            Message::user("1"),
            Message::new(Role::Assistant, [call("a"), call("b")]),
            Message::from_tool_results([result("a"), result("a")]),
            Message::new(Role::Assistant, [call("c")]),
        ],
        OLD,
    );
    assert_eq!(
        outline(&mapped),
        [
            "user: [Result of an earlier tool call, gone:], r, 1",
            "assistant: tool_use, tool_use",
            "user: a, b, [Result of an earlier tool call, a:], r",
            "assistant: tool_use",
            "user: c",
        ]
    );
    let missing = &mapped.messages[2]["content"][1];
    assert_eq!(missing["is_error"], true);
    assert_eq!(kinds(&mapped), [WarningKind::PartDowngraded; 4]);
}

#[test]
fn a_conversation_starts_with_the_user() {
    let mapped = map([Message::assistant("hi"), Message::user("1")], OLD);
    let expected = "user: [The conversation begins with the assistant.]";
    assert_eq!(outline(&mapped)[0], expected);
    assert_eq!(kinds(&mapped), [WarningKind::PartDowngraded]);
}

#[test]
fn a_conversation_that_ends_with_the_assistant_is_adjusted_for_the_model() {
    let prefill = || [Message::user("1"), Message::assistant("The best is ( \n")];
    let old = map(prefill(), OLD);
    assert_eq!(old.messages[1]["content"], json!([text("The best is (")]));
    assert!(old.warnings.is_empty());
    let new = map(prefill(), NEW);
    assert_eq!(new.messages[2], user(&[text("Continue.")]));
    assert_eq!(kinds(&new), [WarningKind::PartDowngraded]);
    // After a paused turn, no message is added.
    let own = |provider: &str| {
        Part::Opaque(Opaque {
            kind: "server_tool_use".into(),
            text: Some("searched".into()),
            provider_state: ProviderState {
                provider: provider.into(),
                model: None,
                data: json!({"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}),
            },
        })
    };
    let paused = map(
        [
            Message::user("1"),
            Message::new(Role::Assistant, [own("anthropic")]),
        ],
        NEW,
    );
    assert_eq!(outline(&paused), ["user: 1", "assistant: server_tool_use"]);
    assert!(paused.warnings.is_empty());
    // A block of another provider is sent as text.
    let foreign = map(
        [
            Message::user("1"),
            Message::new(Role::Assistant, [own("gateway")]),
            Message::user("2"),
        ],
        NEW,
    );
    assert_eq!(outline(&foreign)[1], "assistant: searched");
    assert_eq!(kinds(&foreign), [WarningKind::PartDowngraded]);
}

#[test]
fn further_fields_of_a_call_are_sent_back_but_cannot_override_it() {
    let carrying = |data: Value| {
        let mut tool_use = ToolUse::new("a.b", "f", ToolInput::parse_input("[1]"));
        tool_use.provider_state = Some(ProviderState {
            provider: "anthropic".into(),
            model: None,
            data,
        });
        let conversation = [
            Message::user("1"),
            Message::new(Role::Assistant, [Part::ToolUse(tool_use)]),
            Message::from_tool_results([result("a.b")]),
        ];
        map(conversation, NEW).messages
    };
    let caller = json!({"type": "code_execution_20260120", "tool_id": "s"});
    let messages = carrying(json!({"caller": caller}));
    let sent = &messages[1]["content"][0];
    let id = sent["id"].as_str().unwrap();
    assert_eq!(
        *sent,
        json!({"type": "tool_use", "id": id, "name": "f", "input": {"malformed_input": "[1]"},
               "caller": caller})
    );
    assert_eq!(messages[2]["content"][0]["tool_use_id"], id);
    let odd = carrying(json!({"input": {"evil": true}}));
    let expected = json!({"malformed_input": "[1]"});
    assert_eq!(odd[1]["content"][0]["input"], expected);
}

#[test]
fn unsupported_media_are_sent_as_text() {
    let document = |media: Media| Part::Document(Document { media, title: None });
    let parts = || {
        [
            Part::Image(Media::from_base64("image/JPG", "AA==")),
            Part::Image(Media::from_url("image/png", "data:image/png;base64,AA==")),
            Part::Image(Media::from_base64("image/tiff", "AA==")),
            document(Media::from_url(
                "application/pdf",
                "https://example.org/a.pdf",
            )),
            document(Media::from_url("text/html", "https://example.org/a.html")),
            document(Media::from_base64("text/csv", "YSxi")),
            document(Media::from_base64("text/csv", "/w==")),
        ]
    };
    let sees = map([Message::new(Role::User, parts())], NEW);
    assert_eq!(
        sees.messages[0]["content"],
        json!([
            {"type": "image", "source": {"type": "base64", "media_type": "image/jpeg", "data": "AA=="}},
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA=="}},
            text("[image image/tiff]"),
            {"type": "document", "source": {"type": "url", "url": "https://example.org/a.pdf"}},
            text("[document: https://example.org/a.html]"),
            {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "a,b"}},
            text("[document text/csv]"),
        ])
    );
    assert_eq!(kinds(&sees), [WarningKind::PartDowngraded; 3]);
    let blind = ModelCapabilities {
        images: Some(false),
        documents: Some(false),
        ..ModelCapabilities::default()
    };
    let blind = map_with([Message::new(Role::User, parts())], NEW, &blind, true).unwrap();
    assert_eq!(
        outline(&blind),
        [
            "user: [image image/JPG], [image image/png], [image image/tiff], \
          [document: https://example.org/a.pdf], [document: https://example.org/a.html], document, \
          [document text/csv]"
        ]
    );
}

#[test]
fn citations_are_sent_back_without_the_file_id() {
    let cited = Part::Text(Text {
        text: "rain".into(),
        provider_state: Some(ProviderState {
            provider: "anthropic".into(),
            model: None,
            data: json!({"citations": [{"type": "char_location", "cited_text": "r", "file_id": "f"}]}),
        }),
    });
    let conversation = [
        Message::user("1"),
        Message::new(Role::Assistant, [cited]),
        Message::user("2"),
    ];
    assert_eq!(
        map(conversation, OLD).messages[1]["content"],
        json!([{"type": "text", "text": "rain",
                "citations": [{"type": "char_location", "cited_text": "r"}]}])
    );
}

fn any_part() -> impl Strategy<Value = Part> {
    let id = prop_oneof![Just("a"), Just("b"), Just("c:1"), Just("")];
    let state = prop_oneof![
        Just(None),
        Just(Some(json!({"signature": "s"}))),
        Just(Some(json!({"redacted": "d"}))),
        Just(Some(json!(3))),
    ];
    let state = state.prop_map(|data| {
        let data = data?;
        let model = ModelId::new("anthropic", NEW);
        Some(ProviderState::new_for_model(&model, data))
    });
    prop_oneof![
        3 => prop_oneof![Just(""), Just(" "), Just("text")].prop_map(Part::text),
        3 => id.clone().prop_map(call),
        3 => (id, any::<bool>()).prop_map(|(id, is_error)| {
            Part::ToolResult(ToolResult { is_error, ..result(id) })
        }),
        1 => state.prop_map(|provider_state| Part::Reasoning(Reasoning { text: "t".into(), provider_state })),
        1 => Just(Part::Image(Media::from_base64("image/png", "AA=="))),
    ]
}

fn any_message() -> impl Strategy<Value = Message> {
    let roles = [Role::System, Role::User, Role::Assistant, Role::Tool];
    let parts = prop::collection::vec(any_part(), 0..4);
    (prop::sample::select(roles.to_vec()), parts)
        .prop_map(|(role, parts)| Message::new(role, parts))
}

/// Asserts that the order of messages and blocks follows the API's rules.
fn assert_lawful(messages: &[Value]) {
    assert_eq!(messages[0]["role"], "user");
    let mut open: Vec<Value> = Vec::new();
    let mut before = Value::Null;
    for message in messages {
        let role = &message["role"];
        let blocks = message["content"].as_array().unwrap();
        assert!(!blocks.is_empty(), "{messages:?}");
        assert_ne!(*role, before, "{messages:?}");
        if *role == "system" {
            assert_eq!(before, "user", "{messages:?}");
        }
        if *role == "user" {
            assert_ne!(before, "system", "{messages:?}");
            let is_result = |block: &&Value| block["type"] == "tool_result";
            let results: Vec<_> = blocks.iter().take_while(is_result).collect();
            let strays = blocks.iter().skip(results.len()).any(|it| is_result(&it));
            assert!(!strays, "{messages:?}");
            let ids: Vec<_> = results.iter().map(|it| it["tool_use_id"].clone()).collect();
            assert_eq!(ids.len(), open.len(), "{messages:?}");
            assert!(open.iter().all(|id| ids.contains(id)), "{messages:?}");
            open.clear();
        }
        if *role == "assistant" {
            let calls = blocks.iter().filter(|it| it["type"] == "tool_use");
            open = calls.map(|it| it["id"].clone()).collect();
        }
        for block in blocks {
            if block["type"] == "text" {
                assert!(!block["text"].as_str().unwrap().trim().is_empty());
            }
        }
        before = role.clone();
    }
    assert!(open.is_empty(), "{messages:?}");
}

proptest! {
    #[test]
    fn any_conversation_becomes_a_valid_one(
        messages in prop::collection::vec(any_message(), 0..8),
        model in prop::sample::select(vec![NEW, OLD, "kimi-k3"]),
    ) {
        // The domain requires unique ids in a conversation.
        let mut seen = HashSet::new();
        let messages = messages.into_iter().map(|mut message| {
            message.parts.retain(|part| match part {
                Part::ToolUse(tool_use) => seen.insert(tool_use.id.clone()),
                _ => true,
            });
            message
        });
        match map_with(messages, model, &ModelCapabilities::default(), true) {
            Ok(mapped) => assert_lawful(mapped.messages.as_array().unwrap()),
            Err(error) => {
                let field = Some("messages".to_owned());
                prop_assert_eq!(error.kind, ModelErrorKind::InvalidRequest { field });
            }
        }
    }
}
