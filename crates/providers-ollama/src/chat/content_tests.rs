use serde_json::json;
use switchboard_domain::Role;

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
    let sent = super::map_messages(&request, &model(), capabilities, None, &mut warnings);
    let kinds = warnings.iter().map(|it| it.kind).collect();
    (json!(sent), kinds)
}

#[test]
fn added_instructions_follow_those_of_the_host() {
    let instructed = |request: &ChatRequest| {
        let unknown = ModelCapabilities::default();
        let own = Some("Call a tool.".to_owned());
        let sent = super::map_messages(request, &model(), &unknown, own, &mut Vec::new());
        json!(sent)
    };
    let with = ChatRequest::new([Message::system("Be brief."), Message::user("Hi")]);
    let expected = json!({"role": "system", "content": "Be brief.\n\nCall a tool."});
    assert_eq!(instructed(&with)[0], expected);
    let without = instructed(&ChatRequest::new([Message::user("Hi")]));
    let expected = json!({"role": "system", "content": "Call a tool."});
    assert_eq!(without[0], expected);
    assert_eq!(without[1]["content"], "Hi");
}

#[test]
fn unsupported_content_is_described_with_a_warning() {
    let document = Document {
        media: Media::from_base64("application/pdf", "JVBERi0="),
        title: Some("trip.pdf".into()),
    };
    let url = "https://example.org/a.jpg";
    let (messages, warnings) = sent([Message::new(
        Role::User,
        [
            Part::Image(Media::from_url("image/jpeg", url)),
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
            Part::Image(Media::from_base64("image/png", PNG)),
            Part::Audio(Media::from_base64("audio/wav", "UklGRg==")),
        ]
    };
    let (messages, warnings) = sent_to(&blind, [Message::new(Role::User, media())]);
    let expected = "[image image/png]\n\n[audio audio/wav]";
    assert_eq!(messages[0]["content"], expected);
    assert_eq!(warnings, [WarningKind::PartDowngraded; 2]);
    // Audio is sent in the field `images`.
    let (messages, _) = sent([Message::new(Role::User, media())]);
    assert_eq!(messages[0]["images"], json!([PNG, "UklGRg=="]));
}

#[test]
fn a_text_document_is_sent_as_text() {
    let document = |media_type: &str, data: &str| {
        Part::Document(Document {
            media: Media::from_base64(media_type, data),
            title: Some("numbers".into()),
        })
    };
    let (messages, warnings) = sent([Message::new(
        Role::User,
        [
            Part::text("Add them."),
            document("text/csv; charset=utf-8", "b25lLHR3bw=="),
            document("application/json", "WzEsMl0="),
            // The data is not valid text, although the media type is.
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
        let (mut messages, kinds) = sent_to(capabilities, [Message::from_tool_results([result])]);
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
    let expected = (json!("abc"), Value::Null, vec![]);
    assert_eq!((content, images, kinds), expected);
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
