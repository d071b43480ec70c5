//! Resources: what there is to read, and reading it.

use base64::{Engine, prelude::BASE64_STANDARD};
use rmcp::model::{
    ClientRequest, ListResourceTemplatesRequest, ListResourcesRequest, ReadResourceRequest,
    ReadResourceRequestParams,
};
use serde::Serialize;
use serde_json::Value;
use switchboard_domain::{JsonObject, ToolContent};

use crate::features::{
    apps::APP_MEDIA_TYPE,
    error::FeatureError,
    pages::{self, Listing, meta, needed, text},
    request::{Asker, Capability},
};
use crate::host::McpHost;

/// Something that a server lets read.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Resource {
    /// Its address, in a scheme of the server's choice.
    pub uri: String,
    /// Its name; its address where it has none.
    pub name: String,
    /// Its name for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Its media type, where the server says it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub media_type: Option<String>,
    /// Its size in bytes, where the server says it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
    /// `_meta` as the server says it; of a page of MCP Apps, `ui` in it.
    #[serde(skip_serializing_if = "JsonObject::is_empty")]
    pub meta: JsonObject,
}

impl Resource {
    /// Whether it is a page of MCP Apps, to be shown and not to be read by a model.
    pub fn is_app(&self) -> bool {
        is_app(&self.uri, self.media_type.as_deref())
    }
}

/// A pattern of addresses that can be read (RFC 6570).
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ResourceTemplate {
    /// The pattern, such as `file:///{path}`.
    pub uri_template: String,
    /// Its name; the pattern where it has none.
    pub name: String,
    /// Its name for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The media type of everything of this pattern, where that is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub media_type: Option<String>,
    /// `_meta` as the server says it.
    #[serde(skip_serializing_if = "JsonObject::is_empty")]
    pub meta: JsonObject,
}

/// A piece of what a resource holds.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ResourceContent {
    /// The address; mostly the one that was asked for, or one below it.
    pub uri: String,
    /// Its media type, where the server says it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub media_type: Option<String>,
    /// What it holds; as JSON a field `text` or `blob`.
    #[serde(flatten)]
    pub body: ResourceBody,
    /// `_meta` as the server says it; of a page of MCP Apps, `ui` in it.
    #[serde(skip_serializing_if = "JsonObject::is_empty")]
    pub meta: JsonObject,
}

/// What a piece of a resource holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ResourceBody {
    /// Text.
    Text(String),
    /// Bytes, in base64.
    Blob(String),
}

impl ResourceContent {
    /// Whether it is a page of MCP Apps.
    pub fn is_app(&self) -> bool {
        is_app(&self.uri, self.media_type.as_deref())
    }

    /// What it holds as bytes; `None` if it is no text and no base64 either.
    pub fn bytes(&self) -> Option<Vec<u8>> {
        match &self.body {
            ResourceBody::Text(text) => Some(text.clone().into_bytes()),
            ResourceBody::Blob(blob) => BASE64_STANDARD.decode(blob).ok(),
        }
    }

    /// As content for a model.
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

/// By its scheme, which is reserved (MCP Apps, 2026-01-26); and where the media type is said, by that too.
fn is_app(uri: &str, media_type: Option<&str>) -> bool {
    is_app_address(uri) && media_type.is_none_or(is_app_media_type)
}

/// By its scheme.
pub(super) fn is_app_address(uri: &str) -> bool {
    let scheme = uri.get(..5);
    scheme.is_some_and(|scheme| scheme.eq_ignore_ascii_case("ui://"))
}

/// Whether a media type is that of MCP Apps, however it is spaced.
pub(super) fn is_app_media_type(media_type: &str) -> bool {
    let bare: String = media_type.split_whitespace().collect();
    bare.eq_ignore_ascii_case(APP_MEDIA_TYPE)
}

/// What servers let read. Every request ends within the server's
/// [`call_timeout`](crate::ServerConfig::call_timeout) ([`HostOptions::call_timeout`](crate::HostOptions)
/// where it has none); one to a server that is starting waits for it within that.
impl McpHost {
    /// All resources that a server lists.
    pub async fn resources(&self, server: &str) -> Result<Listing<Resource>, FeatureError> {
        let mut asker = Asker::new(self, server).await?;
        let request = |params| {
            ClientRequest::ListResourcesRequest(ListResourcesRequest {
                params,
                ..ListResourcesRequest::default()
            })
        };
        let read = resource;
        pages::all(
            &mut asker,
            Capability::Resources,
            "resources",
            request,
            read,
        )
        .await
    }

    /// All patterns of addresses that a server lists.
    pub async fn resource_templates(
        &self,
        server: &str,
    ) -> Result<Listing<ResourceTemplate>, FeatureError> {
        let mut asker = Asker::new(self, server).await?;
        let request = |params| {
            ClientRequest::ListResourceTemplatesRequest(ListResourceTemplatesRequest {
                params,
                ..ListResourceTemplatesRequest::default()
            })
        };
        let (key, read) = ("resourceTemplates", template);
        pages::all(&mut asker, Capability::Resources, key, request, read).await
    }

    /// Reads a resource, or one of a template. A piece that cannot be read is a problem of the listing.
    pub async fn read_resource(
        &self,
        server: &str,
        uri: &str,
    ) -> Result<Listing<ResourceContent>, FeatureError> {
        let mut asker = Asker::new(self, server).await?;
        let params = ReadResourceRequestParams::new(uri);
        let request = ClientRequest::ReadResourceRequest(ReadResourceRequest::new(params));
        let method = request.method().to_owned();
        let result = asker.ask(Capability::Resources, request).await?;
        let Some(Value::Array(pieces)) = result.get("contents") else {
            return Err(FeatureError::Malformed {
                server: server.to_owned(),
                request: method,
                reason: "it has no contents".to_owned(),
            });
        };
        let mut read = Listing {
            items: Vec::new(),
            problems: Vec::new(),
        };
        for piece in pieces {
            match content(piece, uri) {
                Ok(piece) => read.items.push(piece),
                Err(why) => {
                    tracing::warn!(server, uri, why, "a piece of a resource is left out");
                    read.problems.push(format!("{why}, so it is left out"));
                }
            }
        }
        Ok(read)
    }
}

fn resource(item: &Value) -> Result<Resource, String> {
    let uri = needed(item, "uri", "resource")?;
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

fn template(item: &Value) -> Result<ResourceTemplate, String> {
    let uri_template = needed(item, "uriTemplate", "resource template")?;
    Ok(ResourceTemplate {
        name: text(item, "name").unwrap_or_else(|| uri_template.clone()),
        title: text(item, "title"),
        description: text(item, "description"),
        media_type: text(item, "mimeType"),
        meta: meta(item),
        uri_template,
    })
}

/// `asked` is the address that was asked for, which some servers do not repeat.
fn content(piece: &Value, asked: &str) -> Result<ResourceContent, String> {
    let uri = text(piece, "uri").unwrap_or_else(|| asked.to_owned());
    let body = match (text(piece, "text"), text(piece, "blob")) {
        (Some(text), _) => ResourceBody::Text(text),
        (None, Some(blob)) => ResourceBody::Blob(blob),
        (None, None) => return Err(format!("a piece of `{uri}` is neither text nor a blob")),
    };
    Ok(ResourceContent {
        media_type: text(piece, "mimeType"),
        body,
        meta: meta(piece),
        uri,
    })
}
