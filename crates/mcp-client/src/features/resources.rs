//! Resources of MCP servers: their lists and their contents.

use base64::{Engine, prelude::BASE64_STANDARD};
use rmcp::model::{ClientRequest, ReadResourceRequest, ReadResourceRequestParams};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use switchboard_domain::JsonObject;

use crate::{
    features::feature_client::{Capability, FeatureClient, FeatureError, ItemList, parse_item},
    host::McpHost,
    tools::visibility::APP_MEDIA_TYPE,
};

/// Resource that an MCP server lists.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Resource {
    /// URI of the resource, in any scheme.
    pub uri: String,
    /// Name of the resource. Empty if the server sends none.
    #[serde(default)]
    pub name: String,
    /// Display name of the resource.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Description of the resource.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Media type (MIME type) of the resource, if the server sends it.
    #[serde(alias = "mimeType", skip_serializing_if = "Option::is_none")]
    pub media_type: Option<String>,
    /// Size of the resource in bytes, if the server sends it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
    /// Metadata object `_meta` of the resource. A page of MCP Apps has its settings in `ui`.
    #[serde(alias = "_meta", default, skip_serializing_if = "JsonObject::is_empty")]
    pub meta: JsonObject,
}

/// Template for the URIs of resources that an MCP server offers (RFC 6570).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ResourceTemplate {
    /// URI template, such as `file:///{path}`.
    #[serde(rename(deserialize = "uriTemplate"))]
    pub uri_template: String,
    /// Name of the template. Empty if the server sends none.
    #[serde(default)]
    pub name: String,
    /// Display name of the template.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Description of the template.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Media type of the resources of this template, if all have the same one.
    #[serde(alias = "mimeType", skip_serializing_if = "Option::is_none")]
    pub media_type: Option<String>,
    /// Metadata object `_meta` of the template.
    #[serde(alias = "_meta", default, skip_serializing_if = "JsonObject::is_empty")]
    pub meta: JsonObject,
}

/// Part of the content of a resource, such as one file of a folder.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ResourceContent {
    /// URI of the part: usually the requested URI, or a URI below it.
    #[serde(default)]
    pub uri: String,
    /// Media type (MIME type) of the part, if the server sends it.
    #[serde(alias = "mimeType", skip_serializing_if = "Option::is_none")]
    pub media_type: Option<String>,
    /// Text or binary data of the part. In JSON this is a field `text` or `blob`.
    #[serde(flatten)]
    pub body: ResourceBody,
    /// Metadata object `_meta` of the part. A page of MCP Apps has its settings in `ui`.
    #[serde(alias = "_meta", default, skip_serializing_if = "JsonObject::is_empty")]
    pub meta: JsonObject,
}

/// Text or binary data of one part of a resource.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResourceBody {
    /// Text of the part.
    Text(String),
    /// Binary data of the part, encoded as base64.
    Blob(String),
}

impl ResourceContent {
    /// Returns the text or the decoded binary data as bytes. Returns `None` for invalid base64.
    pub fn to_bytes(&self) -> Option<Vec<u8>> {
        match &self.body {
            ResourceBody::Text(text) => Some(text.clone().into_bytes()),
            ResourceBody::Blob(blob) => BASE64_STANDARD.decode(blob).ok(),
        }
    }
}

/// Returns whether a URI starts with `ui://`, the scheme for pages of MCP Apps.
pub(super) fn is_app_uri(uri: &str) -> bool {
    let scheme = uri.get(..5);
    scheme.is_some_and(|scheme| scheme.eq_ignore_ascii_case("ui://"))
}

/// Returns whether a media type identifies a page of MCP Apps. Ignores white space and case.
pub(super) fn is_app_media_type(media_type: &str) -> bool {
    let compact: String = media_type.split_whitespace().collect();
    compact.eq_ignore_ascii_case(APP_MEDIA_TYPE)
}

/// Methods that list and read resources. Every request ends within the server's
/// [`call_timeout`](crate::ServerConfig::call_timeout), or
/// [`HostOptions::call_timeout`](crate::HostOptions::call_timeout) if that is not set. A request to
/// a starting server waits until the server is ready.
impl McpHost {
    /// Lists all resources of a server. Requests as many pages of `resources/list` as the server
    /// has.
    pub async fn list_resources(&self, server: &str) -> Result<ItemList<Resource>, FeatureError> {
        FeatureClient::new(self, server)?
            .list_items(Capability::RESOURCES, "resources/list", "resources")
            .await
    }

    /// Lists all resource templates of a server. Requests as many pages of
    /// `resources/templates/list` as the server has.
    pub async fn list_resource_templates(
        &self,
        server: &str,
    ) -> Result<ItemList<ResourceTemplate>, FeatureError> {
        let method = "resources/templates/list";
        FeatureClient::new(self, server)?
            .list_items(Capability::RESOURCES, method, "resourceTemplates")
            .await
    }

    /// Reads the content of a resource. Invalid parts are skipped and reported as problems.
    pub async fn read_resource(
        &self,
        server: &str,
        uri: &str,
    ) -> Result<ItemList<ResourceContent>, FeatureError> {
        let client = FeatureClient::new(self, server)?;
        let params = ReadResourceRequestParams::new(uri);
        let request = ClientRequest::ReadResourceRequest(ReadResourceRequest::new(params));
        let result = client.send_request(Capability::RESOURCES, request).await?;
        let parse = |part: &Value| parse_item::<ResourceContent>(part, "contents");
        let mut read = client.parse_items("resources/read", &result, "contents", parse)?;
        for content in &mut read.items {
            // Some servers omit the URI of a part. The part then gets the requested URI.
            if content.uri.is_empty() {
                uri.clone_into(&mut content.uri);
            }
        }
        Ok(read)
    }
}
