//! Tests of the mapping of conversations.

use WarningKind::{PartDowngraded, PartDropped};
use serde_json::{Value, json};
use switchboard_domain::{
    ChatRequest, Document, Media, ModelErrorKind, ModelId, ProviderState, Reasoning, ToolContent,
    ToolInput, ToolUse, Warning, WarningKind,
};
use switchboard_providers_common::schema::ToolSchemas;

use super::*;
use crate::{GeminiOptions, capabilities, generate::to_wire_request};

const NEW: &str = "gemini-3.8-flash";
const OLD: &str = "gemini-2.5-flash";

fn mapped(request: &ChatRequest, model: &str) -> (Value, Vec<Warning>) {
    let model = ModelId::new("gemini", model);
    let options = GeminiOptions::default();
    let (can, schemas) = (capabilities(&model.name), ToolSchemas::default());
    let wire = to_wire_request(request, &model, &can, &options, &schemas).unwrap();
    (serde_json::to_value(&wire.body).unwrap(), wire.warnings)
}

/// Returns the mapped contents and the kinds of the warnings.
fn sent(messages: Vec<Message>, model: &str) -> (Value, Vec<WarningKind>) {
    let (mut body, warnings) = mapped(&ChatRequest::new(messages), model);
    let kinds = warnings.into_iter().map(|it| it.kind).collect();
    (body["contents"].take(), kinds)
}

#[expect(clippy::unnecessary_wraps, reason = "as it stands in a part")]
fn state(model: &str, data: Value) -> Option<ProviderState> {
    Some(ProviderState::new_for_model(
        &ModelId::new("gemini", model),
        data,
    ))
}

fn call(id: &str, name: &str, provider_state: Option<ProviderState>) -> Part {
    Part::ToolUse(ToolUse {
        provider_state,
        ..ToolUse::new(id, name, ToolInput::parse_input(r#"{"city":"Kiel"}"#))
    })
}

fn assistant(parts: impl IntoIterator<Item = Part>) -> Message {
    Message::new(Role::Assistant, parts)
}

fn response(content: &Value) -> Value {
    content["parts"][0]["functionResponse"]["response"].clone()
}

#[test]
fn without_replay_a_turn_goes_on_unsigned() {
    let model = ModelId::new("gemini", "a-proxys-model");
    let signed = state(&model.name, json!({"id": "a", "thoughtSignature": "c2ln"}));
    let thought = Part::Reasoning(Reasoning {
        text: "Hm.".into(),
        provider_state: state(&model.name, json!({})),
    });
    let request = ChatRequest::new([
        Message::user("?"),
        assistant([thought, call("a", "t", signed), call("b", "t", None)]),
        Message::from_tool_results([
            ToolResult::text("a", "t", "1"),
            ToolResult::text("b", "t", "2"),
        ]),
    ]);
    let options = GeminiOptions {
        replay_thoughts: false,
        ..GeminiOptions::default()
    };
    let (can, schemas) = (capabilities(&model.name), ToolSchemas::default());
    let wire = to_wire_request(&request, &model, &can, &options, &schemas).unwrap();
    let body = serde_json::to_value(&wire.body).unwrap();
    let args = json!({"city": "Kiel"});
    assert_eq!(
        body["contents"][1]["parts"],
        json!([
            {"functionCall": {"id": "a", "name": "t", "args": args}, "thoughtSignature": NOT_SIGNED},
            {"functionCall": {"name": "t", "args": args}},
        ])
    );
    let kinds: Vec<_> = wire.warnings.iter().map(|it| it.kind).collect();
    assert_eq!(kinds, [PartDropped, PartDowngraded]);
}

#[test]
fn every_foreign_call_is_signed_the_same_at_every_step() {
    let turn = |id: &str| {
        [
            assistant([call(id, "t", None)]),
            Message::from_tool_results([ToolResult::text(id, "t", "ok")]),
        ]
    };
    let mut messages = vec![Message::user("One?")];
    messages.extend(turn("1"));
    messages.push(Message::user("Two?"));
    messages.extend(turn("2"));
    // Audio from a tool result is sent in a user message, but does not begin a new user turn.
    let mut heard = ToolResult::text("3", "t", "ok");
    let sound = Media::from_base64("audio/wav", "AA==");
    heard = heard.with_content([ToolContent::Audio(sound)]);
    messages.push(assistant([call("3", "t", None)]));
    messages.push(Message::from_tool_results([heard]));
    messages.extend(turn("4"));
    let (contents, _) = sent(messages, NEW);
    let signed: Vec<bool> = contents
        .as_array()
        .unwrap()
        .iter()
        .filter(|content| content["role"] == "model")
        .map(|content| content["parts"][0].get("thoughtSignature").is_some())
        .collect();
    assert_eq!(signed, [true; 4]);
}

#[test]
fn every_call_has_one_result_and_every_result_a_call() {
    let (contents, warnings) = sent(
        vec![
            assistant([call("1", "t", None), call("2", "t", None)]),
            Message::from_tool_results([
                ToolResult::text("9", "old", "stray"),
                ToolResult::text("2", "t", "two"),
            ]),
            assistant([call("3", "t", None)]),
        ],
        OLD,
    );
    let expected = "[The conversation begins with the assistant.]";
    assert_eq!(contents[0]["parts"][0]["text"], expected);
    let answers = &contents[2]["parts"];
    let expected = json!({"error": NO_RESULT});
    assert_eq!(answers[0]["functionResponse"]["response"], expected);
    let expected = json!({"output": "two"});
    assert_eq!(answers[1]["functionResponse"]["response"], expected);
    let expected = json!([{"text": "[Result of an earlier call of tool `old`:]\nstray"}]);
    assert_eq!(contents[3]["parts"], expected);
    assert_eq!(contents[5]["parts"].as_array().unwrap().len(), 1);
    assert_eq!(contents.as_array().unwrap().len(), 6);
    assert_eq!(warnings, vec![PartDowngraded; 4]);
}

#[test]
fn instructions_go_where_the_model_takes_them() {
    let messages = || {
        vec![
            Message::system("Be brief."),
            Message::system("Be kind."),
            Message::user("Hi."),
            Message::assistant("Hello."),
            Message::system("Now in German."),
        ]
    };
    let (body, warnings) = mapped(&ChatRequest::new(messages()), NEW);
    let texts = json!([{"text": "Be brief."}, {"text": "Be kind."}, {"text": "Now in German."}]);
    assert_eq!(body["systemInstruction"], json!({ "parts": texts }));
    assert_eq!(body["contents"].as_array().unwrap().len(), 2);
    assert_eq!(warnings.len(), 1);
    // This model does not accept `systemInstruction`.
    let (body, warnings) = mapped(&ChatRequest::new(messages()), "gemma-3-27b-it");
    assert_eq!(body.get("systemInstruction"), None);
    assert_eq!(body["contents"][0]["parts"][0]["text"], "Be brief.");
    assert_eq!(body["contents"][0]["parts"][3]["text"], "Hi.");
    assert_eq!(warnings.len(), 2);
    let (body, _) = mapped(
        &ChatRequest::new([Message::system("Go.")]),
        "gemma-3-27b-it",
    );
    let expected = json!([{"role": "user", "parts": [{"text": "Go."}]}]);
    assert_eq!(body["contents"], expected);
}

#[test]
fn nothing_to_answer_is_told_before_it_is_sent() {
    let model = ModelId::new("gemini", NEW);
    for messages in [
        vec![],
        vec![Message::system("Hi.")],
        vec![Message::user("")],
    ] {
        let request = ChatRequest::new(messages);
        let options = GeminiOptions::default();
        let error = to_wire_request(
            &request,
            &model,
            &capabilities(NEW),
            &options,
            &ToolSchemas::default(),
        )
        .unwrap_err();
        let field = Some("contents".to_owned());
        assert_eq!(error.kind, ModelErrorKind::InvalidRequest { field });
    }
}

#[test]
fn a_model_that_takes_no_media_gets_their_names() {
    let model = ModelId::new("gemini", NEW);
    let blind = switchboard_domain::ModelCapabilities {
        images: Some(false),
        audio: Some(false),
        documents: Some(false),
        ..capabilities(NEW)
    };
    let media = || Media::from_base64("image/png", "AA==");
    let document = Document {
        media: Media::from_base64("application/pdf", "AA=="),
        title: None,
    };
    let audio = Media::from_base64("audio/wav", "AA==");
    let mut pictured = ToolResult::text("1", "t", "ok");
    pictured = pictured.with_content([ToolContent::Image(media())]);
    let request = ChatRequest::new([
        Message::new(
            Role::User,
            [
                Part::Image(media()),
                Part::Audio(audio),
                Part::Document(document),
            ],
        ),
        assistant([call("1", "t", None)]),
        Message::from_tool_results([pictured]),
    ]);
    let (options, schemas) = (GeminiOptions::default(), ToolSchemas::default());
    let wire = to_wire_request(&request, &model, &blind, &options, &schemas).unwrap();
    let body = serde_json::to_value(&wire.body).unwrap();
    assert_eq!(
        body["contents"][0]["parts"],
        json!([{"text": "[image image/png]"}, {"text": "[audio audio/wav]"}, {"text": "[document application/pdf]"}])
    );
    let expected = json!({"output": "ok\n[image image/png]"});
    assert_eq!(response(&body["contents"][2]), expected);
    assert_eq!(wire.warnings.len(), 4);
}

#[test]
fn media_of_a_result_are_in_it_where_the_model_takes_them_there() {
    let messages = || {
        let mut result = ToolResult::text("1", "shot", "The page:");
        result = result.with_content([
            ToolContent::Image(Media::from_base64("image/png", "AA==")),
            ToolContent::Audio(Media::from_base64("audio/wav", "BB==")),
            ToolContent::Resource {
                uri: "file:///a.pdf".into(),
                media_type: Some("application/pdf".into()),
                text: None,
                blob: Some("CC==".into()),
            },
            ToolContent::Resource {
                uri: "file:///a.bin".into(),
                media_type: Some("application/octet-stream".into()),
                text: None,
                blob: Some("DD==".into()),
            },
        ]);
        vec![
            Message::user("?"),
            assistant([call("1", "shot", None)]),
            Message::from_tool_results([result]),
        ]
    };
    let words = "The page:\n[image image/png]\n[audio audio/wav]\n[resource file:///a.pdf]\n\
                 [resource file:///a.bin]";
    let blob = |media_type: &str, data: &str| json!({"inlineData": {"mimeType": media_type, "data": data}});
    let (png, wav, pdf) = (
        blob("image/png", "AA=="),
        blob("audio/wav", "BB=="),
        blob("application/pdf", "CC=="),
    );
    let lead = json!({"text": "From the result of tool `shot`:"});

    let (contents, warnings) = sent(messages(), NEW);
    assert_eq!(response(&contents[2]), json!({"output": words}));
    assert_eq!(
        contents[2]["parts"][0]["functionResponse"]["parts"],
        json!([png, pdf])
    );
    assert_eq!(contents[3]["parts"], json!([lead, wav]));
    assert_eq!(warnings, [PartDowngraded, PartDowngraded]);

    let (contents, warnings) = sent(messages(), OLD);
    assert_eq!(response(&contents[2]), json!({"output": words}));
    assert_eq!(
        contents[2]["parts"][0]["functionResponse"].get("parts"),
        None
    );
    assert_eq!(contents[3]["parts"], json!([lead, png, wav, pdf]));
    assert_eq!(warnings, [PartDowngraded, PartDowngraded]);
}

#[test]
fn a_part_that_no_message_of_its_role_can_hold_is_left_out() {
    let reasoning = || {
        Part::Reasoning(Reasoning {
            text: "x".into(),
            provider_state: None,
        })
    };
    let (contents, warnings) = sent(
        vec![
            Message::new(Role::User, [reasoning(), Part::text("Hi.")]),
            assistant([reasoning()]),
            Message::new(
                Role::System,
                [Part::Image(Media::from_base64("image/png", ""))],
            ),
        ],
        NEW,
    );
    let expected = json!([{"role": "user", "parts": [{"text": "Hi."}]}]);
    assert_eq!(contents, expected);
    assert_eq!(warnings, [PartDropped; 3]);
}
