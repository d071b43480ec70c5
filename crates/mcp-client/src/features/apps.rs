//! MCP Apps (extension `io.modelcontextprotocol/ui`, 2026-01-26): HTML pages that display the calls
//! of a tool. This module finds and reads pages, and an application displays them.

use std::sync::Arc;

use serde::Serialize;
use serde_json::Value;
use switchboard_domain::{JsonObject, ToolCallError, ToolDefinition, ToolOutput};

use crate::{
    features::{
        feature_client::{Capability, FeatureClient, FeatureError, ItemList},
        resources::{is_app_media_type, is_app_uri},
    },
    host::McpHost,
    tools::visibility::APP_MEDIA_TYPE,
};

/// Tool for which its server provides an HTML page of MCP Apps. An application displays the calls
/// of the tool in this page.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct App {
    /// Original name of the tool on its server.
    pub tool: String,
    /// URI of the page that displays the tool. [`McpHost::read_app`] reads the page.
    pub uri: String,
    /// Whether models may call the tool.
    pub for_model: bool,
    /// Whether HTML pages of MCP Apps from the same server may call the tool.
    pub for_app: bool,
}

/// HTML page of MCP Apps. The page is untrusted and must be displayed in a sandbox.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AppPage {
    /// URI of the page, which starts with `ui://`.
    pub uri: String,
    /// HTML source of the page.
    pub html: String,
    /// Settings of the page from its metadata (`_meta.ui`), such as `csp`, `permissions`, `domain`
    /// and `prefersBorder`. Empty if the server sends none.
    pub ui: JsonObject,
}

/// Methods for applications that display pages of MCP Apps.
impl McpHost {
    /// Returns the tools of a server that have an HTML page of MCP Apps, including tools that
    /// models may not call.
    pub async fn list_apps(&self, server: &str) -> Result<ItemList<App>, FeatureError> {
        let client = FeatureClient::new(self, server)?;
        client.connect(Capability::TOOLS).await?;
        let snapshot = client.server.snapshot();
        let apps = snapshot.tools.tools.iter().filter_map(|tool| {
            Some(App {
                tool: tool.original_name().to_owned(),
                uri: tool.visibility.page.clone()?,
                for_model: tool.visibility.model,
                for_app: tool.visibility.app,
            })
        });
        Ok(ItemList {
            items: apps.collect(),
            problems: Vec::new(),
        })
    }

    /// Returns the tools of a server that only its HTML pages of MCP Apps may call. The tool
    /// catalog does not contain these tools. Returns an empty list for an unknown server.
    pub fn app_tools(&self, server: &str) -> Vec<Arc<ToolDefinition>> {
        let Some(server) = self.get_server(server) else {
            return Vec::new();
        };
        let tools = server.snapshot().tools;
        let tools = tools.app_only_tools();
        tools.map(|tool| tool.definition.clone()).collect()
    }

    /// Calls a tool by its name on the server, on behalf of an HTML page of MCP Apps from the same
    /// server. Returns an error if pages may not call the tool. Otherwise works like
    /// [`McpHost::call_server_tool`].
    pub async fn call_tool_from_app(
        &self,
        server: &str,
        tool: &str,
        input: JsonObject,
    ) -> Result<ToolOutput, ToolCallError> {
        self.call_by_original_name(server, tool, input, true).await
    }

    /// Reads the HTML page with a URI. Returns an error if the URI does not start with `ui://`, or
    /// if the resource is not a page.
    pub async fn read_app(&self, server: &str, uri: &str) -> Result<AppPage, FeatureError> {
        // This method must not give access to resources that are not pages.
        if !is_app_uri(uri) {
            return Err(FeatureError::NotAPage {
                server: server.to_owned(),
                uri: uri.to_owned(),
            });
        }
        let client = FeatureClient::new(self, server)?;
        let invalid = |reason: String| client.invalid_answer_error("resources/read", reason);
        let read = self.read_resource(server, uri).await?;
        let page = read.items.into_iter().find(|content| {
            is_app_uri(&content.uri) && content.media_type.as_deref().is_some_and(is_app_media_type)
        });
        let page = page
            .ok_or_else(|| invalid(format!("has no content `{uri}` of type {APP_MEDIA_TYPE}")))?;
        let html = page.to_bytes().and_then(|it| String::from_utf8(it).ok());
        let html = html.ok_or_else(|| invalid(format!("has a page `{uri}` that is not UTF-8")))?;
        let mut meta = page.meta;
        Ok(AppPage {
            uri: page.uri,
            html,
            ui: match meta.remove("ui") {
                Some(Value::Object(ui)) => ui,
                _ => JsonObject::new(),
            },
        })
    }
}
