//! Converts tool results to MCP's `CallToolResult` (2025-11-25), which MCP front ends expect.

use serde_json::{Value, json};
use switchboard_domain::{Media, MediaSource, ToolContent};

use crate::dialects::response::sse_frames::remove_null_fields;

/// Converts a tool result to MCP's `CallToolResult`.
pub(crate) fn to_mcp_result(content: &[ToolContent], structured: Option<&Value>) -> Value {
    let content: Vec<Value> = content.iter().map(content_to_mcp).collect();
    remove_null_fields(json!({"content": content, "structuredContent": structured}))
}

fn content_to_mcp(content: &ToolContent) -> Value {
    match content {
        ToolContent::Image(media) => media_to_mcp("image", media),
        ToolContent::Audio(media) => media_to_mcp("audio", media),
        ToolContent::Resource {
            uri,
            media_type,
            text,
            blob,
        } => {
            let resource = json!({"uri": uri, "mimeType": media_type, "text": text, "blob": blob});
            json!({"type": "resource", "resource": remove_null_fields(resource)})
        }
        ToolContent::ResourceLink {
            uri,
            name,
            media_type,
            description,
        } => remove_null_fields(json!({
            "type": "resource_link",
            "uri": uri,
            "name": name,
            "mimeType": media_type,
            "description": description,
        })),
        ToolContent::Unknown {
            value: value @ Value::Object(_),
        } => value.clone(),
        // Text content remains text. Content of an unknown kind becomes text too, unless its value
        // is a JSON object.
        other => json!({"type": "text", "text": other.as_text()}),
    }
}

fn media_to_mcp(kind: &str, media: &Media) -> Value {
    let media_type = &media.media_type;
    match &media.source {
        MediaSource::Base64(data) => json!({"type": kind, "data": data, "mimeType": media_type}),
        // MCP represents media at a URL as a resource link.
        MediaSource::Url(url) => {
            json!({"type": "resource_link", "uri": url, "name": kind, "mimeType": media_type})
        }
        _ => json!({"type": kind, "mimeType": media_type}),
    }
}

/// Returns the text of a tool result as the model receives it.
pub(crate) fn tool_result_text(content: &[ToolContent], structured: Option<&Value>) -> String {
    if let (Some(structured), true) = (structured, content.is_empty()) {
        return structured.to_string();
    }
    let pieces: Vec<String> = content.iter().map(ToolContent::as_text).collect();
    pieces.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_kind_of_content_serialises_as_mcp_content() {
        let structured = json!({"sum": 3});
        let content = [
            ToolContent::text("three"),
            ToolContent::Image(Media::from_base64("image/png", "AA==")),
            ToolContent::Audio(Media::from_url("audio/wav", "https://a/b.wav")),
            ToolContent::Resource {
                uri: "file:///a".into(),
                media_type: Some("text/plain".into()),
                text: Some("a".into()),
                blob: None,
            },
            ToolContent::ResourceLink {
                uri: "file:///b".into(),
                name: "b".into(),
                media_type: None,
                description: Some("another".into()),
            },
            ToolContent::Unknown {
                value: json!({"type": "hologram", "depth": 3}),
            },
            ToolContent::Unknown { value: json!(7) },
        ];
        assert_eq!(
            to_mcp_result(&content, Some(&structured)),
            json!({
                "content": [
                    {"type": "text", "text": "three"},
                    {"type": "image", "data": "AA==", "mimeType": "image/png"},
                    {
                        "type": "resource_link",
                        "uri": "https://a/b.wav",
                        "name": "audio",
                        "mimeType": "audio/wav",
                    },
                    {
                        "type": "resource",
                        "resource": {"uri": "file:///a", "mimeType": "text/plain", "text": "a"},
                    },
                    {
                        "type": "resource_link",
                        "uri": "file:///b",
                        "name": "b",
                        "description": "another",
                    },
                    {"type": "hologram", "depth": 3},
                    {"type": "text", "text": "7"},
                ],
                "structuredContent": {"sum": 3},
            })
        );
        assert_eq!(tool_result_text(&[], Some(&structured)), r#"{"sum":3}"#);
    }
}
