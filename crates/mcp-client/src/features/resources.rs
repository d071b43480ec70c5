//! Resources: listing and reading them.

use base64::{Engine, prelude::BASE64_STANDARD};
use rmcp::model::{ClientRequest, ReadResourceRequest, ReadResourceRequestParams};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use switchboard_domain::JsonObject;

use crate::{
    features::request::{Capability, FeatureClient, FeatureError, Listing, parse_item},
    host::McpHost,
    tools::visibility::APP_MEDIA_TYPE,
};

/// A resource of a server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Resource {
    /// The URI, in a scheme of the server's choice.
    pub uri: String,
    /// The name. Empty if the server sends none.
    #[serde(default)]
    pub name: String,
    /// The display name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The description.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The media type, if the server sends it.
    #[serde(
        rename(deserialize = "mimeType"),
        skip_serializing_if = "Option::is_none"
    )]
    pub media_type: Option<String>,
    /// The size in bytes, if the server sends it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
    /// `_meta`. A page of MCP Apps has its settings in `ui`.
    #[serde(
        rename(deserialize = "_meta"),
        default,
        skip_serializing_if = "JsonObject::is_empty"
    )]
    pub meta: JsonObject,
}

/// A template of URIs of resources (RFC 6570).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ResourceTemplate {
    /// The template, such as `file:///{path}`.
    #[serde(rename(deserialize = "uriTemplate"))]
    pub uri_template: String,
    /// The name. Empty if the server sends none.
    #[serde(default)]
    pub name: String,
    /// The display name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The description.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The media type of all resources of the template, if they have the same.
    #[serde(
        rename(deserialize = "mimeType"),
        skip_serializing_if = "Option::is_none"
    )]
    pub media_type: Option<String>,
    /// `_meta`.
    #[serde(
        rename(deserialize = "_meta"),
        default,
        skip_serializing_if = "JsonObject::is_empty"
    )]
    pub meta: JsonObject,
}

/// A part of the content of a resource.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ResourceContent {
    /// The URI. Mostly the requested one, or a URI below it.
    #[serde(default)]
    pub uri: String,
    /// The media type, if the server sends it.
    #[serde(
        rename(deserialize = "mimeType"),
        skip_serializing_if = "Option::is_none"
    )]
    pub media_type: Option<String>,
    /// The content. In JSON a field `text` or `blob`.
    #[serde(flatten)]
    pub body: ResourceBody,
    /// `_meta`. A page of MCP Apps has its settings in `ui`.
    #[serde(
        rename(deserialize = "_meta"),
        default,
        skip_serializing_if = "JsonObject::is_empty"
    )]
    pub meta: JsonObject,
}

/// The body of a part of a resource.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResourceBody {
    /// Text.
    Text(String),
    /// Bytes in base64.
    Blob(String),
}

impl ResourceContent {
    /// Returns the body as bytes. `None` for invalid base64.
    pub fn bytes(&self) -> Option<Vec<u8>> {
        match &self.body {
            ResourceBody::Text(text) => Some(text.clone().into_bytes()),
            ResourceBody::Blob(blob) => BASE64_STANDARD.decode(blob).ok(),
        }
    }
}

/// Returns whether a URI has the scheme of pages.
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
        let client = FeatureClient::new(self, server)?;
        client
            .list(Capability::Resources, "resources/list", "resources")
            .await
    }

    /// Returns all resource templates of a server.
    pub async fn resource_templates(
        &self,
        server: &str,
    ) -> Result<Listing<ResourceTemplate>, FeatureError> {
        let client = FeatureClient::new(self, server)?;
        let method = "resources/templates/list";
        client
            .list(Capability::Resources, method, "resourceTemplates")
            .await
    }

    /// Reads a resource. Invalid parts are skipped and reported as problems.
    pub async fn read_resource(
        &self,
        server: &str,
        uri: &str,
    ) -> Result<Listing<ResourceContent>, FeatureError> {
        let client = FeatureClient::new(self, server)?;
        let params = ReadResourceRequestParams::new(uri);
        let request = ClientRequest::ReadResourceRequest(ReadResourceRequest::new(params));
        let result = client.request(Capability::Resources, request).await?;
        let parse = |part: &Value| parse_item::<ResourceContent>(part, "contents");
        let mut read = client.parse_items("resources/read", &result, "contents", parse)?;
        for content in &mut read.items {
            // Some servers do not repeat the requested URI.
            if content.uri.is_empty() {
                uri.clone_into(&mut content.uri);
            }
        }
        Ok(read)
    }
}
