//! Resources: listing and reading them.

use base64::{Engine, prelude::BASE64_STANDARD};
use rmcp::model::{ClientRequest, ReadResourceRequest, ReadResourceRequestParams};
use serde::Serialize;
use serde_json::Value;
use switchboard_domain::{JsonObject, ToolContent};

use crate::{
    features::{
        error::FeatureError,
        request::{
            Capability, FeatureClient, ListRequest, Listing, malformed, meta, required_text, text,
        },
    },
    host::McpHost,
    tools::visibility::APP_MEDIA_TYPE,
};

/// A resource of a server.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Resource {
    /// The URI, in a scheme of the server's choice.
    pub uri: String,
    /// The name. The URI if the server sends none.
    pub name: String,
    /// The display name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The description.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The media type, if the server sends it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub media_type: Option<String>,
    /// The size in bytes, if the server sends it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
    /// `_meta`. A page of MCP Apps has its settings in `ui`.
    #[serde(skip_serializing_if = "JsonObject::is_empty")]
    pub meta: JsonObject,
}

impl Resource {
    /// Returns whether the resource is a page of MCP Apps, which is displayed and not read by a
    /// model.
    pub fn is_app(&self) -> bool {
        is_app(&self.uri, self.media_type.as_deref())
    }
}

/// A template of URIs of resources (RFC 6570).
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ResourceTemplate {
    /// The template, such as `file:///{path}`.
    pub uri_template: String,
    /// The name. The template if the server sends none.
    pub name: String,
    /// The display name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The description.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The media type of all resources of the template, if they have the same.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub media_type: Option<String>,
    /// `_meta`.
    #[serde(skip_serializing_if = "JsonObject::is_empty")]
    pub meta: JsonObject,
}

/// A part of the content of a resource.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ResourceContent {
    /// The URI. Mostly the requested one, or a URI below it.
    pub uri: String,
    /// The media type, if the server sends it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub media_type: Option<String>,
    /// The content. In JSON a field `text` or `blob`.
    #[serde(flatten)]
    pub body: ResourceBody,
    /// `_meta`. A page of MCP Apps has its settings in `ui`.
    #[serde(skip_serializing_if = "JsonObject::is_empty")]
    pub meta: JsonObject,
}

/// The body of a part of a resource.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ResourceBody {
    /// Text.
    Text(String),
    /// Bytes in base64.
    Blob(String),
}

impl ResourceContent {
    /// Returns whether the resource is a page of MCP Apps.
    pub fn is_app(&self) -> bool {
        is_app(&self.uri, self.media_type.as_deref())
    }

    /// Returns the body as bytes. `None` for invalid base64.
    pub fn bytes(&self) -> Option<Vec<u8>> {
        match &self.body {
            ResourceBody::Text(text) => Some(text.clone().into_bytes()),
            ResourceBody::Blob(blob) => BASE64_STANDARD.decode(blob).ok(),
        }
    }

    /// Converts the part to content for a model.
    pub fn into_content(self) -> ToolContent {
        let (text, blob) = match self.body {
            ResourceBody::Text(text) => (Some(text), None),
            ResourceBody::Blob(blob) => (None, Some(blob)),
        };
        ToolContent::Resource {
            uri: self.uri,
            media_type: self.media_type,
            text,
            blob,
        }
    }
}

/// Pages have a reserved scheme, and their own media type if it is sent (MCP Apps, 2026-01-26).
fn is_app(uri: &str, media_type: Option<&str>) -> bool {
    is_app_uri(uri) && media_type.is_none_or(is_app_media_type)
}

pub(super) fn is_app_uri(uri: &str) -> bool {
    let scheme = uri.get(..5);
    scheme.is_some_and(|scheme| scheme.eq_ignore_ascii_case("ui://"))
}

/// Returns whether this is the media type of pages. White space is ignored.
pub(super) fn is_app_media_type(media_type: &str) -> bool {
    let compact: String = media_type.split_whitespace().collect();
    compact.eq_ignore_ascii_case(APP_MEDIA_TYPE)
}

/// Resources. Every request ends within the server's
/// [`call_timeout`](crate::ServerConfig::call_timeout), or
/// [`HostOptions::call_timeout`](crate::HostOptions::call_timeout) if that is not set. A request to
/// a starting server waits for it.
impl McpHost {
    /// Returns all resources of a server.
    pub async fn resources(&self, server: &str) -> Result<Listing<Resource>, FeatureError> {
        let mut client = FeatureClient::new(self, server).await?;
        client.list(RESOURCES, parse_resource).await
    }

    /// Returns all resource templates of a server.
    pub async fn resource_templates(
        &self,
        server: &str,
    ) -> Result<Listing<ResourceTemplate>, FeatureError> {
        let mut client = FeatureClient::new(self, server).await?;
        client.list(TEMPLATES, parse_template).await
    }

    /// Reads a resource. Invalid parts are skipped and reported as problems.
    pub async fn read_resource(
        &self,
        server: &str,
        uri: &str,
    ) -> Result<Listing<ResourceContent>, FeatureError> {
        let mut client = FeatureClient::new(self, server).await?;
        let params = ReadResourceRequestParams::new(uri);
        let request = ClientRequest::ReadResourceRequest(ReadResourceRequest::new(params));
        let method = request.method().to_owned();
        let result = client.request(Capability::Resources, request).await?;
        let Some(Value::Array(parts)) = result.get("contents") else {
            return Err(malformed(server, &method, "it has no contents"));
        };
        let mut read = Listing {
            items: Vec::new(),
            problems: Vec::new(),
        };
        for part in parts {
            match parse_content(part, uri) {
                Ok(part) => read.items.push(part),
                Err(reason) => {
                    tracing::warn!(server, uri, reason, "an invalid part of a resource");
                    read.problems.push(format!("{reason}; it is skipped"));
                }
            }
        }
        Ok(read)
    }
}

const RESOURCES: ListRequest = ListRequest {
    method: "resources/list",
    key: "resources",
    capability: Capability::Resources,
};

const TEMPLATES: ListRequest = ListRequest {
    method: "resources/templates/list",
    key: "resourceTemplates",
    capability: Capability::Resources,
};

fn parse_resource(item: &Value) -> Result<Resource, String> {
    let uri = required_text(item, "uri", "resource")?;
    Ok(Resource {
        name: text(item, "name").unwrap_or_else(|| uri.clone()),
        title: text(item, "title"),
        description: text(item, "description"),
        media_type: text(item, "mimeType"),
        size: item.get("size").and_then(Value::as_u64),
        meta: meta(item),
        uri,
    })
}

fn parse_template(item: &Value) -> Result<ResourceTemplate, String> {
    let uri_template = required_text(item, "uriTemplate", "resource template")?;
    Ok(ResourceTemplate {
        name: text(item, "name").unwrap_or_else(|| uri_template.clone()),
        title: text(item, "title"),
        description: text(item, "description"),
        media_type: text(item, "mimeType"),
        meta: meta(item),
        uri_template,
    })
}

/// Parses a part. Some servers do not repeat the requested URI.
fn parse_content(part: &Value, requested_uri: &str) -> Result<ResourceContent, String> {
    let uri = text(part, "uri").unwrap_or_else(|| requested_uri.to_owned());
    let body = match (text(part, "text"), text(part, "blob")) {
        (Some(text), _) => ResourceBody::Text(text),
        (None, Some(blob)) => ResourceBody::Blob(blob),
        (None, None) => return Err(format!("a part of `{uri}` is neither text nor a blob")),
    };
    Ok(ResourceContent {
        media_type: text(part, "mimeType"),
        body,
        meta: meta(part),
        uri,
    })
}
