//! Tool results as MCP's `CallToolResult` (2025-11-25), which front ends for MCP tools expect.

use serde::{
    Serialize, Serializer,
    ser::{SerializeMap as _, SerializeSeq as _},
};
use serde_json::Value;
use switchboard_domain::{Media, MediaSource, ToolContent};

/// A tool result that serialises as a `CallToolResult`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ToolOutput<'a> {
    pub(crate) content: &'a [ToolContent],
    pub(crate) structured: Option<&'a Value>,
}

impl Serialize for ToolOutput<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("content", &Contents(self.content))?;
        if let Some(structured) = self.structured {
            map.serialize_entry("structuredContent", structured)?;
        }
        map.end()
    }
}

struct Contents<'a>(&'a [ToolContent]);

impl Serialize for Contents<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut list = serializer.serialize_seq(Some(self.0.len()))?;
        for content in self.0 {
            list.serialize_element(&Content(content))?;
        }
        list.end()
    }
}

struct Content<'a>(&'a ToolContent);

impl Serialize for Content<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        match self.0 {
            ToolContent::Text { text } => {
                map.serialize_entry("type", "text")?;
                map.serialize_entry("text", text)?;
            }
            ToolContent::Image(media) => media_entries::<S>(&mut map, "image", media)?,
            ToolContent::Audio(media) => media_entries::<S>(&mut map, "audio", media)?,
            ToolContent::Resource {
                uri,
                media_type,
                text,
                blob,
            } => {
                map.serialize_entry("type", "resource")?;
                map.serialize_entry(
                    "resource",
                    &Resource {
                        uri,
                        mime_type: media_type.as_deref(),
                        text: text.as_deref(),
                        blob: blob.as_deref(),
                    },
                )?;
            }
            ToolContent::ResourceLink {
                uri,
                name,
                media_type,
                description,
            } => {
                map.serialize_entry("type", "resource_link")?;
                map.serialize_entry("uri", uri)?;
                map.serialize_entry("name", name)?;
                if let Some(media_type) = media_type {
                    map.serialize_entry("mimeType", media_type)?;
                }
                if let Some(description) = description {
                    map.serialize_entry("description", description)?;
                }
            }
            ToolContent::Unknown {
                value: Value::Object(object),
            } => {
                for (key, value) in object {
                    map.serialize_entry(key, value)?;
                }
            }
            // Later variants of the domain become text.
            other => {
                map.serialize_entry("type", "text")?;
                map.serialize_entry("text", &other.as_text())?;
            }
        }
        map.end()
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Resource<'a> {
    uri: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    mime_type: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    blob: Option<&'a str>,
}

fn media_entries<S: Serializer>(
    map: &mut S::SerializeMap,
    kind: &str,
    media: &Media,
) -> Result<(), S::Error> {
    match &media.source {
        MediaSource::Base64(data) => {
            map.serialize_entry("type", kind)?;
            map.serialize_entry("data", data)?;
        }
        // MCP represents media at a URL as a resource link.
        MediaSource::Url(url) => {
            map.serialize_entry("type", "resource_link")?;
            map.serialize_entry("uri", url)?;
            map.serialize_entry("name", kind)?;
        }
        _ => {
            map.serialize_entry("type", kind)?;
        }
    }
    map.serialize_entry("mimeType", &media.media_type)
}

/// Returns the text that the model received.
pub(crate) fn as_text(content: &[ToolContent], structured: Option<&Value>) -> String {
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
            ToolContent::Image(Media::base64("image/png", "AA==")),
            ToolContent::Audio(Media::url("audio/wav", "https://a/b.wav")),
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
        let output = ToolOutput {
            content: &content,
            structured: Some(&structured),
        };
        assert_eq!(
            serde_json::to_value(output).unwrap(),
            json!({
                "content": [
                    {"type": "text", "text": "three"},
                    {"type": "image", "data": "AA==", "mimeType": "image/png"},
                    {"type": "resource_link", "uri": "https://a/b.wav", "name": "audio", "mimeType": "audio/wav"},
                    {"type": "resource", "resource": {"uri": "file:///a", "mimeType": "text/plain", "text": "a"}},
                    {"type": "resource_link", "uri": "file:///b", "name": "b", "description": "another"},
                    {"type": "hologram", "depth": 3},
                    {"type": "text", "text": "7"},
                ],
                "structuredContent": {"sum": 3},
            })
        );
        assert_eq!(as_text(&[], Some(&structured)), r#"{"sum":3}"#);
    }
}
