//! Checks that a request contains every kind of result content, or has a warning about it.

use switchboard_domain::{
    ChatRequest, Media, Message, Part, Role, ToolContent, ToolInput, ToolResult, ToolUse,
    WarningKind,
};

use crate::{COLUMNS, Column, draft};

/// Bytes in base64 that occur nowhere else in a request.
const BYTES: &str = "c3dpdGNoYm9hcmQh";
/// The bytes as text, for wires that send an SVG image as text.
const SAID: &str = "switchboard!";

fn blob(media_type: Option<&str>, data: &str) -> ToolContent {
    ToolContent::Resource {
        uri: "file:///what".to_owned(),
        media_type: media_type.map(str::to_owned),
        text: None,
        blob: Some(data.to_owned()),
    }
}

/// Returns contents of results, each with the text that the body must contain if there is no
/// warning.
fn pieces() -> Vec<(ToolContent, String)> {
    let bytes = |content| (content, BYTES.to_owned());
    let mut pieces = vec![
        bytes(ToolContent::Image(Media::from_base64("image/png", BYTES))),
        bytes(ToolContent::Image(Media::from_base64("image/bmp", BYTES))),
        bytes(ToolContent::Audio(Media::from_base64("audio/wav", BYTES))),
        bytes(ToolContent::Audio(Media::from_base64(
            "audio/x-strange",
            BYTES,
        ))),
        bytes(blob(None, BYTES)),
    ];
    for media_type in [
        "image/png",
        "image/svg+xml",
        "audio/wav",
        "video/mp4",
        "application/pdf",
        "application/octet-stream",
        "application/zip",
    ] {
        pieces.push(bytes(blob(Some(media_type), BYTES)));
    }
    // A text document may be sent as text instead of bytes.
    let (encoded, words) = draft::WORDS[0];
    pieces.push((blob(Some("text/plain"), encoded), words.to_owned()));
    let link = ToolContent::ResourceLink {
        uri: "file:///linked".to_owned(),
        name: "linked".to_owned(),
        media_type: None,
        description: None,
    };
    pieces.push((link, "file:///linked".to_owned()));
    let unknown = serde_json::json!({"type": "hologram", "depth": 77_077});
    let unknown = ToolContent::Unknown { value: unknown };
    pieces.push((unknown, "77077".to_owned()));
    let text = ToolContent::Resource {
        uri: "file:///t".to_owned(),
        media_type: Some("text/x-log".to_owned()),
        text: Some("all went well".to_owned()),
        blob: None,
    };
    pieces.push((text, "all went well".to_owned()));
    pieces
}

/// Returns a conversation with a call whose result has one content.
fn conversation(content: ToolContent, is_error: bool) -> ChatRequest {
    let call = ToolUse::new("call_1", "look", ToolInput::parse_input("{}"));
    let result = ToolResult {
        content: vec![content].into(),
        is_error,
        ..ToolResult::text("call_1", "look", "")
    };
    ChatRequest::new([
        Message::user("What is there?"),
        Message::new(Role::Assistant, [Part::ToolUse(call)]),
        Message::from_tool_results([result]),
    ])
}

#[test]
fn nothing_of_a_result_is_missing_without_a_warning() {
    let mut told = 0;
    for column in COLUMNS {
        for (content, essence) in pieces() {
            for is_error in [false, true] {
                let shown = format!("{column:?}, failed: {is_error}: {content:?}");
                let request = conversation(content.clone(), is_error);
                let sent = column.send(&request).unwrap();
                let data = match &content {
                    ToolContent::Resource {
                        blob: Some(data), ..
                    } => data.as_str(),
                    _ => essence.as_str(),
                };
                let is_sent = [essence.as_str(), data, SAID]
                    .iter()
                    .any(|it| sent.bytes.contains(it));
                let losses = sent.warnings.iter().filter(|warning| {
                    matches!(
                        warning.kind,
                        WarningKind::PartDowngraded | WarningKind::PartDropped
                    )
                });
                let losses = losses.count();
                assert!(is_sent || losses == 1, "{shown}: {losses}\n{}", sent.bytes);
                told += usize::from(!is_sent);
            }
        }
    }
    // Every wire has some losses, but a wire that loses everything would fail here.
    assert!((20..150).contains(&told), "{told}");
}

#[test]
fn media_in_results_are_sent_to_the_wires_that_accept_them() {
    let takes = |column: Column, content: ToolContent| {
        let sent = column.send(&conversation(content, false)).unwrap();
        sent.bytes.contains(BYTES)
    };
    for column in COLUMNS {
        let image = || Media::from_base64("image/png", BYTES);
        assert!(takes(column, ToolContent::Image(image())), "{column:?}");
        let png = blob(Some("image/png"), BYTES);
        assert!(takes(column, png), "{column:?}");
        let reads = matches!(
            column,
            Column::Anthropic | Column::Responses | Column::Gemini
        );
        let pdf = blob(Some("application/pdf"), BYTES);
        assert_eq!(takes(column, pdf), reads, "{column:?}");
        let hears = matches!(column, Column::Gemini | Column::Ollama);
        let audio = || Media::from_base64("audio/wav", BYTES);
        let capable = column.wire().capabilities().audio != Some(false);
        let audio = takes(column, ToolContent::Audio(audio()));
        assert_eq!(audio, hears && capable, "{column:?}");
    }
}
