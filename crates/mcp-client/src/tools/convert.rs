//! Conversion of tools and tool results from MCP types to domain types. A tool must have a name and
//! an input schema. Other fields of a tool are dropped if they are invalid.

use rmcp::model::{CallToolResult, ContentBlock, ResourceContents};
use serde::Deserialize;
use serde_json::Value;
use switchboard_domain::{
    Media, ToolAnnotations, ToolContent, ToolDefinition, ToolOrigin, ToolOutput,
};

use crate::tools::{catalog_names::catalog_name, visibility::Visibility};

/// Tool from a `tools/list` response: its definition and its visibility.
pub(crate) struct ListedTool {
    pub(crate) tool: ToolDefinition,
    pub(crate) visibility: Visibility,
}

/// Converts a tool in a `tools/list` response. Returns an error if its name is missing or its input
/// schema is not an object. Ignores other invalid fields.
pub(crate) fn tool_from_json(server: &str, listed: &Value) -> Result<ListedTool, String> {
    let text = |key: &str| listed.get(key).and_then(Value::as_str).map(str::to_owned);
    let Some(name) = text("name").filter(|name| !name.is_empty()) else {
        return Err("a tool has no name".to_owned());
    };
    let Some(input_schema @ Value::Object(_)) = listed.get("inputSchema") else {
        return Err(format!(
            "the inputSchema of tool `{name}` is not a JSON object"
        ));
    };
    let hints = listed.get("annotations");
    let hint = |key: &str| hints?.get(key)?.as_bool();
    let meta = listed.get("_meta").and_then(Value::as_object);
    let visibility = Visibility::from_meta(meta);
    let output_schema = listed.get("outputSchema");
    let tool = ToolDefinition {
        name: catalog_name(server, &name),
        title: text("title").or_else(|| hints?.get("title")?.as_str().map(str::to_owned)),
        description: text("description").unwrap_or_default(),
        input_schema: input_schema.clone(),
        output_schema: output_schema.filter(|it| it.is_object()).cloned(),
        annotations: ToolAnnotations {
            read_only: hint("readOnlyHint"),
            destructive: hint("destructiveHint"),
            idempotent: hint("idempotentHint"),
            open_world: hint("openWorldHint"),
        },
        origin: Some(ToolOrigin {
            server: server.to_owned(),
            tool: name,
        }),
        // `ServerTools::new` sets this field, because it depends on the server's configuration.
        sequential: false,
    };
    Ok(ListedTool { tool, visibility })
}

/// Converts a tool result from the type of rmcp to the domain type.
pub(crate) fn to_tool_output(result: CallToolResult) -> ToolOutput {
    ToolOutput {
        content: result.content.into_iter().map(to_tool_content).collect(),
        structured: result.structured_content,
        is_error: result.is_error.unwrap_or_default(),
    }
}

/// Converts the JSON of a tool result that rmcp could not parse, for example because of an unknown
/// content type. JSON without any field of a tool result becomes one unknown content block.
pub(crate) fn tool_output_from_json(mut result: Value) -> ToolOutput {
    let known = ["content", "structuredContent", "isError"];
    let Some(fields) = result
        .as_object_mut()
        .filter(|fields| known.iter().any(|key| fields.contains_key(*key)))
    else {
        return ToolOutput {
            content: vec![ToolContent::Unknown { value: result }],
            ..ToolOutput::default()
        };
    };
    let content = match fields.remove("content") {
        Some(Value::Array(blocks)) => blocks.into_iter().map(content_from_json).collect(),
        Some(Value::String(text)) => vec![ToolContent::Text { text }],
        None | Some(Value::Null) => Vec::new(),
        Some(block) => vec![content_from_json(block)],
    };
    ToolOutput {
        content,
        structured: fields.remove("structuredContent"),
        is_error: fields.get("isError").and_then(Value::as_bool) == Some(true),
    }
}

/// Converts a content block of a tool result. A block of an unknown type stays unchanged as JSON.
pub(crate) fn content_from_json(block: Value) -> ToolContent {
    match ContentBlock::deserialize(&block) {
        Ok(block) => to_tool_content(block),
        Err(_) => ToolContent::Unknown { value: block },
    }
}

pub(crate) fn to_tool_content(block: ContentBlock) -> ToolContent {
    match block {
        ContentBlock::Text(text) => ToolContent::Text { text: text.text },
        ContentBlock::Image(image) => {
            ToolContent::Image(Media::from_base64(image.mime_type, image.data))
        }
        ContentBlock::Audio(audio) => {
            ToolContent::Audio(Media::from_base64(audio.mime_type, audio.data))
        }
        ContentBlock::Resource(embedded) => match embedded.resource {
            ResourceContents::TextResourceContents {
                uri,
                mime_type,
                text,
                ..
            } => ToolContent::Resource {
                uri,
                media_type: mime_type,
                text: Some(text),
                blob: None,
            },
            ResourceContents::BlobResourceContents {
                uri,
                mime_type,
                blob,
                ..
            } => ToolContent::Resource {
                uri,
                media_type: mime_type,
                text: None,
                blob: Some(blob),
            },
            other => to_unknown_content(&other),
        },
        ContentBlock::ResourceLink(link) => ToolContent::ResourceLink {
            uri: link.uri,
            name: link.name,
            media_type: link.mime_type,
            description: link.description,
        },
        other => to_unknown_content(&other),
    }
}

fn to_unknown_content(content: &impl serde::Serialize) -> ToolContent {
    ToolContent::Unknown {
        value: serde_json::to_value(content).unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_kind_of_content_is_kept() {
        let result = json!({
            "content": [
                {"type": "text", "text": "one"},
                {"type": "image", "data": "AA==", "mimeType": "image/png"},
                {"type": "audio", "data": "BB==", "mimeType": "audio/wav"},
                {"type": "resource", "resource": {"uri": "f:/a", "mimeType": "text/plain", "text": "t"}},
                {"type": "resource", "resource": {"uri": "f:/b", "blob": "CC=="}},
                {"type": "resource_link", "uri": "f:/c", "name": "c", "description": "d"},
            ],
            "structuredContent": {"n": 1},
            "isError": true,
        });
        let read = to_tool_output(serde_json::from_value(result.clone()).unwrap());
        assert_eq!(read, tool_output_from_json(result));
        insta::assert_json_snapshot!(read);
    }

    #[test]
    fn a_tool_needs_a_name_and_a_schema_and_other_invalid_parts_are_dropped() {
        for (listed, expected) in [
            (json!({"inputSchema": {}}), "a tool has no name"),
            (
                json!({"name": "t", "inputSchema": null}),
                "the inputSchema of tool `t` is not",
            ),
            (json!({"name": "t"}), "the inputSchema of tool `t` is not"),
            (json!(7), "a tool has no name"),
        ] {
            let error = tool_from_json("s", &listed).err().unwrap();
            assert!(error.starts_with(expected), "{error}");
        }
        let listed = json!({
            "name": "t", "description": 5, "inputSchema": {"type": "object"},
            "outputSchema": "none",
            "annotations": {"readOnlyHint": true, "destructiveHint": "maybe"},
        });
        let tool = tool_from_json("s", &listed).unwrap().tool;
        assert_eq!(
            (tool.name.as_str(), tool.description.as_str()),
            ("s__t", "")
        );
        assert_eq!(tool.annotations.read_only, Some(true));
        assert_eq!(tool.annotations.destructive, None);
        assert_eq!(tool.output_schema, None);
    }
}
