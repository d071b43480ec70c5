//! How conversations go over the wire.

use WarningKind::{PartDowngraded, PartDropped};
use serde_json::{Value, json};
use switchboard_domain::{
    ChatRequest, Document, Media, ModelId, Opaque, ProviderState, Reasoning, Text, ToolContent,
    ToolInput, ToolUse, Warning,
};
use switchboard_providers_common::schema::ToolSchemas;

use super::*;
use crate::{GeminiOptions, capabilities, generate::to_wire};

const NEW: &str = "gemini-3.8-flash";
const OLD: &str = "gemini-2.5-flash";

fn mapped(request: &ChatRequest, model: &str) -> (Value, Vec<Warning>) {
    let model = ModelId::new("gemini", model);
    let options = GeminiOptions::default();
    let wire = to_wire(
        request,
        &model,
        &capabilities(&model.name),
        &options,
        &ToolSchemas::default(),
    )
    .unwrap();
    (serde_json::to_value(&wire.body).unwrap(), wire.warnings)
}

fn body<M: Into<std::sync::Arc<Message>>>(messages: impl IntoIterator<Item = M>) -> Value {
    mapped(&ChatRequest::new(messages), NEW).0
}

/// The contents, with the kinds of warnings that came with them.
fn sent(messages: Vec<Message>, model: &str) -> (Value, Vec<WarningKind>) {
    let (mut body, warnings) = mapped(&ChatRequest::new(messages), model);
    let kinds = warnings.into_iter().map(|it| it.kind).collect();
    (body["contents"].take(), kinds)
}

#[expect(clippy::unnecessary_wraps, reason = "as it stands in a part")]
fn state(model: &str, data: Value) -> Option<ProviderState> {
    Some(ProviderState::minted_by(
        &ModelId::new("gemini", model),
        data,
    ))
}

fn call(id: &str, name: &str, provider_state: Option<ProviderState>) -> Part {
    Part::ToolUse(ToolUse {
        provider_state,
        ..ToolUse::new(id, name, ToolInput::parse(r#"{"city":"Kiel"}"#))
    })
}

fn assistant(parts: impl IntoIterator<Item = Part>) -> Message {
    Message::new(Role::Assistant, parts)
}

fn response(content: &Value) -> Value {
    content["parts"][0]["functionResponse"]["response"].clone()
}

#[test]
fn case_03_signatures_go_back_to_their_minter_exactly_and_to_nobody_else() {
    let messages = |minter: &str| {
        vec![
            Message::user("Weather?"),
            assistant([
                Part::Reasoning(Reasoning {
                    text: "Hm.".into(),
                    provider_state: state(minter, json!({})),
                }),
                Part::Text(Text {
                    text: String::new(),
                    provider_state: state(minter, json!({"thoughtSignature": "c2ln-1"})),
                }),
                call(
                    "a",
                    "t",
                    state(minter, json!({"id": "a", "thoughtSignature": "c2ln/2=="})),
                ),
                call("b", "t", None),
            ]),
            Message::tool_results([
                ToolResult::text("a", "t", "1"),
                ToolResult::text("b", "t", "2"),
            ]),
        ]
    };
    let (contents, warnings) = sent(messages(NEW), NEW);
    let args = json!({"city": "Kiel"});
    assert_eq!(
        contents[1]["parts"],
        json!([
            {"text": "Hm.", "thought": true},
            {"text": "", "thoughtSignature": "c2ln-1"},
            {"functionCall": {"id": "a", "name": "t", "args": args}, "thoughtSignature": "c2ln/2=="},
            {"functionCall": {"name": "t", "args": args}},
        ])
    );
    assert_eq!(
        contents[2]["parts"],
        json!([
            {"functionResponse": {"id": "a", "name": "t", "response": {"output": "1"}}},
            {"functionResponse": {"name": "t", "response": {"output": "2"}}},
        ])
    );
    assert_eq!(warnings, []);

    // Another model of the same provider: neither ids, nor thoughts, nor signatures. It would
    // refuse the turn without the word that stands for one.
    let (contents, warnings) = sent(messages(OLD), NEW);
    assert_eq!(
        contents[1]["parts"],
        json!([
            {"functionCall": {"name": "t", "args": args}, "thoughtSignature": NOT_SIGNED},
            {"functionCall": {"name": "t", "args": args}},
        ])
    );
    assert_eq!(warnings, [PartDropped, PartDowngraded]);
    let (contents, _) = sent(messages(NEW), OLD);
    assert!(
        !contents.to_string().contains("thoughtSignature"),
        "{contents}"
    );
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
        Message::tool_results([
            ToolResult::text("a", "t", "1"),
            ToolResult::text("b", "t", "2"),
        ]),
    ]);
    let options = GeminiOptions {
        replay_thoughts: false,
        ..GeminiOptions::default()
    };
    let wire = to_wire(
        &request,
        &model,
        &capabilities(&model.name),
        &options,
        &ToolSchemas::default(),
    )
    .unwrap();
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
            Message::tool_results([ToolResult::text(id, "t", "ok")]),
        ]
    };
    let mut messages = vec![Message::user("One?")];
    messages.extend(turn("1"));
    messages.push(Message::user("Two?"));
    messages.extend(turn("2"));
    // What is shown beside a result is not said by the person.
    let mut heard = ToolResult::text("3", "t", "ok");
    let sound = Media::base64("audio/wav", "AA==");
    heard = heard.with_content([ToolContent::Audio(sound)]);
    messages.push(assistant([call("3", "t", None)]));
    messages.push(Message::tool_results([heard]));
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
fn case_05_local_ids_are_never_sent_and_results_pair_by_order() {
    let (contents, warnings) = sent(
        vec![
            Message::user("?"),
            assistant([
                call("call_local_1", "t", None),
                call("call_local_2", "t", None),
            ]),
            // In the wrong order, and over two messages.
            Message::tool_results([ToolResult::text("call_local_2", "t", "second")]),
            Message::tool_results([ToolResult::text("call_local_1", "t", "first")]),
        ],
        OLD,
    );
    assert!(!contents.to_string().contains("call_local"), "{contents}");
    let outputs: Vec<_> = contents[2]["parts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|part| part["functionResponse"]["response"]["output"].clone())
        .collect();
    assert_eq!(outputs, ["first", "second"]);
    assert_eq!(warnings, []);
}

/// The response that a result of the one call becomes.
fn answered(result: ToolResult) -> Value {
    let messages = [
        Message::user("?"),
        assistant([call("1", "t", None)]),
        Message::tool_results([result]),
    ];
    response(&body(messages)["contents"][2])
}

#[test]
fn case_06_a_result_is_an_object_whatever_the_tool_gave() {
    let text = |text: &str| ToolResult::text("1", "t", text);
    let data = |text: &str, data: Value| ToolResult {
        structured: Some(data.into()),
        ..ToolResult::text("1", "t", text)
    };
    assert_eq!(answered(text("12 °C")), json!({"output": "12 °C"}));
    assert_eq!(answered(text("")), json!({"output": ""}));
    assert_eq!(answered(text("[1,2]")), json!({"output": "[1,2]"}));
    // Data are told once, and as data.
    assert_eq!(
        answered(data(r#"{"b": 1, "a": 2}"#, json!({"b": 1, "a": 2}))),
        json!({"b": 1, "a": 2})
    );
    assert_eq!(answered(data("", json!([1, 2]))), json!({"output": [1, 2]}));
    assert_eq!(answered(data("", json!("x"))), json!({"output": "x"}));
    assert_eq!(
        answered(data("in words", json!({"n": 1}))),
        json!({"output": "in words"})
    );
    // Names that the API reads otherwise.
    let named = json!({"error": null, "rows": []});
    assert_eq!(answered(data("", named.clone())), json!({"output": named}));
    let mut several = text("one");
    several = several.with_content([ToolContent::text("two")]);
    several.structured = Some(json!({}).into());
    assert_eq!(answered(several), json!({"output": "one\ntwo"}));
}

#[test]
fn case_23_a_failure_is_told_as_one() {
    let error = |text: &str| ToolResult::error("1", "t", text);
    assert_eq!(answered(error("not found")), json!({"error": "not found"}));
    assert_eq!(
        answered(error(" ")),
        json!({"error": "the tool failed without saying why"})
    );
    let mut data = error("");
    data.structured = Some(json!({"code": 7}).into());
    assert_eq!(answered(data), json!({"error": {"code": 7}}));
}

#[test]
fn case_24_all_results_come_right_after_the_calls_and_before_other_words() {
    let (contents, warnings) = sent(
        vec![
            Message::user("?"),
            assistant([
                Part::text("I look."),
                call("1", "t", None),
                call("2", "u", None),
            ]),
            Message::new(
                Role::User,
                [
                    Part::text("And hurry."),
                    Part::ToolResult(ToolResult::text("1", "t", "a")),
                    Part::ToolResult(ToolResult::text("2", "u", "b")),
                ],
            ),
            Message::user("Please."),
        ],
        OLD,
    );
    let shape: Vec<_> = contents
        .as_array()
        .unwrap()
        .iter()
        .map(|content| {
            (
                content["role"].as_str().unwrap(),
                content["parts"].as_array().unwrap().len(),
            )
        })
        .collect();
    assert_eq!(shape, [("user", 1), ("model", 3), ("user", 2), ("user", 2)]);
    assert!(contents[2].to_string().contains("functionResponse"));
    assert_eq!(
        contents[3]["parts"],
        json!([{"text": "And hurry."}, {"text": "Please."}])
    );
    assert_eq!(warnings, []);
}

#[test]
fn every_call_has_one_result_and_every_result_a_call() {
    let (contents, warnings) = sent(
        vec![
            assistant([call("1", "t", None), call("2", "t", None)]),
            Message::tool_results([
                ToolResult::text("9", "old", "stray"),
                ToolResult::text("2", "t", "two"),
            ]),
            assistant([call("3", "t", None)]),
        ],
        OLD,
    );
    assert_eq!(
        contents[0]["parts"][0]["text"],
        "[The conversation begins with the assistant.]"
    );
    let answers = &contents[2]["parts"];
    assert_eq!(
        answers[0]["functionResponse"]["response"],
        json!({"error": NO_RESULT})
    );
    assert_eq!(
        answers[1]["functionResponse"]["response"],
        json!({"output": "two"})
    );
    assert_eq!(
        contents[3]["parts"],
        json!([{"text": "[Result of an earlier call of tool `old`:]\nstray"}])
    );
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
    // One that takes none.
    let (body, warnings) = mapped(&ChatRequest::new(messages()), "gemma-3-27b-it");
    assert_eq!(body.get("systemInstruction"), None);
    assert_eq!(body["contents"][0]["parts"][0]["text"], "Be brief.");
    assert_eq!(body["contents"][0]["parts"][3]["text"], "Hi.");
    assert_eq!(warnings.len(), 2);
    let (body, _) = mapped(
        &ChatRequest::new([Message::system("Go.")]),
        "gemma-3-27b-it",
    );
    assert_eq!(
        body["contents"],
        json!([{"role": "user", "parts": [{"text": "Go."}]}])
    );
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
        let error = to_wire(
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
fn media_are_sent_as_bytes_or_by_their_address() {
    let document = |media: Media, title: Option<&str>| {
        Part::Document(Document {
            media,
            title: title.map(Into::into),
        })
    };
    let (contents, warnings) = sent(
        vec![Message::new(
            Role::User,
            [
                Part::Image(Media::base64("image/jpg", "AA==")),
                Part::Image(Media::url("image/png", "https://example.org/a.png")),
                Part::Image(Media::url("image/png", "data:image/webp;base64,BB==")),
                Part::Audio(Media::base64("audio/x-wav", "CC==")),
                document(Media::base64("application/pdf", "DD=="), Some("trip.pdf")),
                document(
                    Media::base64("application/json; charset=utf-8", "EE=="),
                    Some(" "),
                ),
            ],
        )],
        NEW,
    );
    assert_eq!(
        contents[0]["parts"],
        json!([
            {"inlineData": {"mimeType": "image/jpeg", "data": "AA=="}},
            {"fileData": {"mimeType": "image/png", "fileUri": "https://example.org/a.png"}},
            {"inlineData": {"mimeType": "image/webp", "data": "BB=="}},
            {"inlineData": {"mimeType": "audio/wav", "data": "CC=="}},
            {"text": "[document: trip.pdf]"},
            {"inlineData": {"mimeType": "application/pdf", "data": "DD=="}},
            {"inlineData": {"mimeType": "text/plain", "data": "EE=="}},
        ])
    );
    assert_eq!(warnings, []);
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
    let media = || Media::base64("image/png", "AA==");
    let document = Document {
        media: Media::base64("application/pdf", "AA=="),
        title: None,
    };
    let audio = Media::base64("audio/wav", "AA==");
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
        Message::tool_results([pictured]),
    ]);
    let wire = to_wire(
        &request,
        &model,
        &blind,
        &GeminiOptions::default(),
        &ToolSchemas::default(),
    )
    .unwrap();
    let body = serde_json::to_value(&wire.body).unwrap();
    assert_eq!(
        body["contents"][0]["parts"],
        json!([{"text": "[image image/png]"}, {"text": "[audio audio/wav]"}, {"text": "[document application/pdf]"}])
    );
    assert_eq!(
        response(&body["contents"][2]),
        json!({"output": "ok\n[image image/png]"})
    );
    assert_eq!(wire.warnings.len(), 4);
}

#[test]
fn media_of_a_result_are_in_it_where_the_model_takes_them_there() {
    let messages = || {
        let mut result = ToolResult::text("1", "shot", "The page:");
        result = result.with_content([
            ToolContent::Image(Media::base64("image/png", "AA==")),
            ToolContent::Audio(Media::base64("audio/wav", "BB==")),
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
            Message::tool_results([result]),
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
fn blocks_of_others_get_their_words_and_ones_own_go_back() {
    let block = |model: &str, text: Option<&str>, data: Value| {
        Part::Opaque(Opaque {
            kind: "executableCode".into(),
            text: text.map(Into::into),
            provider_state: state(model, data).unwrap(),
        })
    };
    let piece = json!({"executableCode": {"code": "1"}, "thoughtSignature": "c2ln"});
    let (contents, warnings) = sent(
        vec![
            Message::user("?"),
            assistant([
                block(NEW, Some("1"), json!({"part": piece})),
                block("other", Some("print(1)"), json!({"part": piece})),
                block("other", None, json!({"part": piece})),
                block(NEW, None, json!({"part": 3})),
                // Beside the content: not sent back, and nothing is lost.
                Part::Opaque(Opaque {
                    kind: "groundingMetadata".into(),
                    text: Some("sources".into()),
                    provider_state: state(NEW, json!({"groundingMetadata": {}})).unwrap(),
                }),
            ]),
            Message::user("!"),
        ],
        NEW,
    );
    assert_eq!(contents[1]["parts"], json!([piece, {"text": "print(1)"}]));
    assert_eq!(warnings, [PartDowngraded, PartDropped, PartDropped]);
}

#[test]
fn malformed_input_is_told_and_never_as_an_empty_object() {
    let broken = ToolUse::new("1", "a/b", ToolInput::parse(r#"{"city": "Ki"#));
    let (contents, warnings) = sent(
        vec![
            Message::user("?"),
            assistant([Part::ToolUse(broken)]),
            Message::tool_results([ToolResult::error("1", "a/b", "unreadable")]),
        ],
        OLD,
    );
    let call = &contents[1]["parts"][0]["functionCall"];
    assert_eq!(call["args"], json!({"malformed_input": r#"{"city": "Ki"#}));
    // A name that the wire cannot say, the same in the call and its result.
    assert_eq!((&call["name"], warnings), (&json!("a_b_c14cddc0"), vec![]));
    let response = &contents[2]["parts"][0]["functionResponse"];
    assert_eq!(response["name"], call["name"]);
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
            Message::new(Role::System, [Part::Image(Media::base64("image/png", ""))]),
        ],
        NEW,
    );
    assert_eq!(
        contents,
        json!([{"role": "user", "parts": [{"text": "Hi."}]}])
    );
    assert_eq!(warnings, [PartDropped; 3]);
}
