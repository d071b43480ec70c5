use serde_json::json;
use switchboard_domain::{Opaque, ProviderState, Role, ToolInput, ToolUse};

use super::*;

const PNG: &str = "iVBORw0KGgo=";

fn model() -> ModelId {
    ModelId::new("ollama", "qwen3:8b")
}

/// Returns the sent messages and the kinds of the warnings.
fn sent(messages: impl IntoIterator<Item = Message>) -> (Value, Vec<WarningKind>) {
    sent_to(&ModelCapabilities::default(), messages)
}

fn sent_to(
    capabilities: &ModelCapabilities,
    messages: impl IntoIterator<Item = Message>,
) -> (Value, Vec<WarningKind>) {
    let request = ChatRequest::new(messages);
    let mut warnings = Vec::new();
    let sent = super::messages(&request, &model(), capabilities, None, &mut warnings);
    let kinds = warnings.iter().map(|it| it.kind).collect();
    (json!(sent), kinds)
}

fn call(id: &str, raw: &str) -> Part {
    Part::ToolUse(ToolUse::new(id, "get_weather", ToolInput::parse(raw)))
}

fn thought(text: &str, state: Option<ProviderState>) -> Part {
    Part::Reasoning(Reasoning {
        text: text.into(),
        provider_state: state,
    })
}

#[test]
fn consecutive_instructions_are_one_message() {
    let (messages, warnings) = sent([
        Message::system("One."),
        Message::system("Two."),
        Message::user("Hello?"),
        Message::system("Three."),
        Message::system(""),
    ]);
    assert_eq!(
        messages,
        json!([
            {"role": "system", "content": "One.\n\nTwo."},
            {"role": "user", "content": "Hello?"},
            {"role": "system", "content": "Three."},
        ])
    );
    assert!(warnings.is_empty());
}

#[test]
fn added_instructions_follow_those_of_the_host() {
    let instructed = |request: &ChatRequest| {
        let unknown = ModelCapabilities::default();
        let own = Some("Call a tool.".to_owned());
        let sent = super::messages(request, &model(), &unknown, own, &mut Vec::new());
        json!(sent)
    };
    let with = ChatRequest::new([Message::system("Be brief."), Message::user("Hi")]);
    assert_eq!(
        instructed(&with)[0],
        json!({"role": "system", "content": "Be brief.\n\nCall a tool."})
    );
    let without = instructed(&ChatRequest::new([Message::user("Hi")]));
    assert_eq!(
        without[0],
        json!({"role": "system", "content": "Call a tool."})
    );
    assert_eq!(without[1]["content"], "Hi");
}

#[test]
fn images_are_sent_as_bytes_next_to_the_text() {
    let (messages, warnings) = sent([Message::new(
        Role::User,
        [
            Part::text("What"),
            Part::Image(Media::base64("image/png", PNG)),
            Part::text("is this?"),
        ],
    )]);
    assert_eq!(
        messages,
        json!([{"role": "user", "content": "What\n\nis this?", "images": [PNG]}])
    );
    assert!(warnings.is_empty());
    let (alone, _) = sent([Message::new(
        Role::User,
        [Part::Image(Media::base64("image/png", PNG))],
    )]);
    assert_eq!(alone, json!([{"role": "user", "images": [PNG]}]));
}

#[test]
fn unsupported_content_is_described_with_a_warning() {
    let document = Document {
        media: Media::base64("application/pdf", "JVBERi0="),
        title: Some("trip.pdf".into()),
    };
    let url = "https://example.org/a.jpg";
    let (messages, warnings) = sent([Message::new(
        Role::User,
        [
            Part::Image(Media::url("image/jpeg", url)),
            Part::Document(document),
        ],
    )]);
    assert_eq!(
        messages[0]["content"],
        "[image image/jpeg: https://example.org/a.jpg]\n\n\
         [document \"trip.pdf\" application/pdf]"
    );
    assert_eq!(warnings, [WarningKind::PartDowngraded; 2]);

    let blind = ModelCapabilities {
        images: Some(false),
        audio: Some(false),
        ..ModelCapabilities::default()
    };
    let media = || {
        [
            Part::Image(Media::base64("image/png", PNG)),
            Part::Audio(Media::base64("audio/wav", "UklGRg==")),
        ]
    };
    let (messages, warnings) = sent_to(&blind, [Message::new(Role::User, media())]);
    assert_eq!(
        messages[0]["content"],
        "[image image/png]\n\n[audio audio/wav]"
    );
    assert_eq!(warnings, [WarningKind::PartDowngraded; 2]);
    // Audio is sent in the field of images.
    let (messages, _) = sent([Message::new(Role::User, media())]);
    assert_eq!(messages[0]["images"], json!([PNG, "UklGRg=="]));
}

#[test]
fn a_text_document_is_sent_as_text() {
    let document = |media_type: &str, data: &str| {
        Part::Document(Document {
            media: Media::base64(media_type, data),
            title: Some("numbers".into()),
        })
    };
    let (messages, warnings) = sent([Message::new(
        Role::User,
        [
            Part::text("Add them."),
            document("text/csv; charset=utf-8", "b25lLHR3bw=="),
            document("application/json", "WzEsMl0="),
            // The media type is text, but the data is not.
            document("text/plain", "/////w=="),
        ],
    )]);
    assert_eq!(
        messages[0]["content"],
        "Add them.\n\n[document \"numbers\" text/csv; charset=utf-8]\none,two\n\n\
         [document \"numbers\" application/json]\n[1,2]\n\n[document \"numbers\" text/plain]"
    );
    assert_eq!(warnings, [WarningKind::PartDowngraded; 3]);
}

#[test]
fn arguments_are_objects_with_their_keys_in_order() {
    let (messages, _) = sent([Message::new(
        Role::Assistant,
        [
            Part::text("I look."),
            call("call_1", r#"{"z":1,"a":{"b":[]}}"#),
            call("call_2", ""),
            call("call_3", r#"{"city": "Hamb"#),
        ],
    )]);
    let function = |index: u32, arguments: Value| json!({"function": {"index": index, "name": "get_weather", "arguments": arguments}});
    assert_eq!(
        messages,
        json!([{"role": "assistant", "content": "I look.", "tool_calls": [
            function(0, json!({"z": 1, "a": {"b": []}})),
            function(1, json!({})),
            function(2, json!({"malformed_input": "{\"city\": \"Hamb"})),
        ]}])
    );
    // No id is sent: results are paired by name and order.
    assert!(!messages.to_string().contains("call_1"));
}

#[test]
fn case_24_each_result_is_a_message_before_what_the_person_says() {
    let results = [
        Part::ToolResult(ToolResult::text("call_1", "get_weather", "rain")),
        Part::text("And now?"),
        Part::ToolResult(ToolResult::text("call_2", "list_cities", "")),
    ];
    let (messages, warnings) = sent([Message::new(Role::Tool, results)]);
    assert_eq!(
        messages,
        json!([
            {"role": "tool", "content": "rain", "tool_name": "get_weather"},
            {"role": "tool", "content": "", "tool_name": "list_cities"},
            {"role": "user", "content": "And now?"},
        ])
    );
    assert!(warnings.is_empty());
}

#[test]
fn case_23_a_failure_is_said_in_the_content() {
    let failed = |text: &str| {
        let result = ToolResult::error("1", "t", text);
        let (messages, _) = sent([Message::tool_results([result])]);
        messages[0]["content"].as_str().unwrap().to_owned()
    };
    assert_eq!(failed("no such city"), "Error: no such city");
    assert_eq!(failed("error: closed"), "error: closed");
    assert_eq!(failed("Errors everywhere"), "Error: Errors everywhere");
    assert_eq!(failed(""), "Error: the tool failed without saying why");
}

#[test]
fn a_result_has_its_images_and_data_once_and_describes_the_rest() {
    let pictured = ToolResult {
        content: vec![
            ToolContent::text("The page:"),
            ToolContent::Image(Media::base64("image/png", PNG)),
            ToolContent::Image(Media::url("image/png", "https://example.org/b.png")),
            ToolContent::ResourceLink {
                uri: "file:///a".into(),
                name: "a".into(),
                media_type: None,
                description: None,
            },
        ]
        .into(),
        structured: Some(json!({"a": 1}).into()),
        ..ToolResult::text("1", "screenshot", "")
    };
    let data = ToolResult {
        content: vec![].into(),
        structured: Some(json!({"cities": ["Kiel"]}).into()),
        ..ToolResult::text("2", "list_cities", "")
    };
    let (messages, warnings) = sent([Message::tool_results([pictured, data])]);
    assert_eq!(
        messages,
        json!([
            {
                "role": "tool",
                "content": "The page:\n[image image/png: https://example.org/b.png]\n[resource a: file:///a]",
                "images": [PNG],
                "tool_name": "screenshot",
            },
            {"role": "tool", "content": "{\"cities\":[\"Kiel\"]}", "tool_name": "list_cities"},
        ])
    );
    assert_eq!(warnings, [WarningKind::PartDowngraded]);
}

#[test]
fn thinking_is_sent_back_to_the_same_model_only() {
    let ours = || Some(ProviderState::minted_by(&model(), thinking_state()));
    let other = ModelId::new("ollama", "gpt-oss:20b");
    let (messages, warnings) = sent([Message::new(
        Role::Assistant,
        [
            thought("One.", ours()),
            thought(
                "Theirs.",
                Some(ProviderState::minted_by(&other, thinking_state())),
            ),
            thought("Nobody's.", None),
            thought(" Two.", ours()),
            Part::text("Three."),
        ],
    )]);
    assert_eq!(
        messages,
        json!([{"role": "assistant", "content": "Three.", "thinking": "One. Two."}])
    );
    assert_eq!(warnings, [WarningKind::PartDropped]);
}

#[test]
fn state_of_other_models_is_dropped_with_one_warning() {
    let gemini = ModelId::new("gemini", "gemini-3.8-flash");
    let state = || ProviderState::minted_by(&gemini, json!("sig"));
    let mut signed = ToolUse::new("1", "f", ToolInput::parse("{}"));
    signed.provider_state = Some(state());
    let opaque = |text: Option<&str>| {
        Part::Opaque(Opaque {
            kind: "web_search_tool_result".into(),
            text: text.map(Into::into),
            provider_state: state(),
        })
    };
    let (messages, warnings) = sent([
        Message::new(
            Role::Assistant,
            [
                Part::text("Before."),
                opaque(Some("found")),
                Part::text("After."),
                opaque(None),
                Part::ToolUse(signed),
            ],
        ),
        Message::new(Role::Assistant, [Part::text("")]),
    ]);
    assert_eq!(messages[0]["content"], "Before.\n\nfound\n\nAfter.");
    assert_eq!(messages.as_array().unwrap().len(), 1);
    assert_eq!(
        warnings,
        [
            WarningKind::PartDowngraded,
            WarningKind::PartDropped,
            WarningKind::PartDowngraded
        ]
    );
}

#[test]
fn binary_resources_of_a_result_are_sent_or_described() {
    let sent_of = |capabilities: &ModelCapabilities, media_type: Option<&str>, blob: &str| {
        let content = ToolContent::Resource {
            uri: "file:///a".into(),
            media_type: media_type.map(str::to_owned),
            text: None,
            blob: Some(blob.to_owned()),
        };
        let result = ToolResult {
            content: vec![content].into(),
            ..ToolResult::text("1", "t", "")
        };
        let (mut messages, kinds) = sent_to(capabilities, [Message::tool_results([result])]);
        let message = messages[0].take();
        (message["content"].clone(), message["images"].clone(), kinds)
    };
    let any = ModelCapabilities::default();
    let told = vec![WarningKind::PartDowngraded];
    for media in ["image/png", "audio/wav"] {
        let (content, images, kinds) = sent_of(&any, Some(media), PNG);
        assert_eq!((content, images), (json!(""), json!([PNG])), "{media}");
        assert_eq!(kinds, [], "{media}");
    }
    let (content, images, kinds) = sent_of(&any, Some("text/plain"), "YWJj");
    assert_eq!(
        (content, images, kinds),
        (json!("abc"), Value::Null, vec![])
    );
    let blind = ModelCapabilities {
        images: Some(false),
        audio: Some(false),
        ..ModelCapabilities::default()
    };
    for (capabilities, media) in [
        (&any, Some("application/pdf")),
        (&any, Some("application/octet-stream")),
        (&any, None),
        (&blind, Some("image/png")),
        (&blind, Some("audio/wav")),
    ] {
        let (content, images, kinds) = sent_of(capabilities, media, PNG);
        let words = format!("[resource file:///a {}", media.unwrap_or_default());
        let words = format!("{}]", words.trim_end());
        assert_eq!((content, images), (json!(words), Value::Null), "{media:?}");
        assert_eq!(kinds, told, "{media:?}");
    }
}
