//! MCP Apps (extension `io.modelcontextprotocol/ui`, 2026-01-26): pages that servers have for showing
//! what their tools do. Here they are found and read; who can show them does so.

use std::sync::Arc;

use base64::{Engine, prelude::BASE64_STANDARD};
use rmcp::model::{ClientCapabilities, ClientRequest, ListToolsRequest};
use serde::Serialize;
use serde_json::{Value, json};
use switchboard_domain::{JsonObject, ToolCallError, ToolDefinition, ToolOutput};

use crate::features::{
    error::FeatureError,
    pages::{self, Listing, meta, needed},
    request::{Asker, Capability},
    resources::{ResourceBody, is_app_address, is_app_media_type},
};
use crate::host::{Behalf, McpHost};

/// The media type of pages of MCP Apps.
pub const APP_MEDIA_TYPE: &str = "text/html;profile=mcp-app";

/// The extension's id, by which a host says that it can show pages.
const EXTENSION: &str = "io.modelcontextprotocol/ui";

/// Adds to what is offered that pages can be shown.
pub(crate) fn offer(capabilities: &mut ClientCapabilities) {
    let mut types = rmcp::model::JsonObject::new();
    types.insert("mimeTypes".to_owned(), json!([APP_MEDIA_TYPE]));
    capabilities
        .extensions
        .get_or_insert_default()
        .insert(EXTENSION.to_owned(), types);
}

/// Whom a tool is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Audience {
    pub(crate) model: bool,
    pub(crate) app: bool,
}

impl Audience {
    pub(crate) const EVERYBODY: Self = Self {
        model: true,
        app: true,
    };

    /// By its `_meta`. A tool that says nothing is for both.
    pub(crate) fn of(meta: &JsonObject) -> Self {
        let visibility = meta.get("ui").and_then(|ui| ui.get("visibility"));
        let visible = |to: &str| match visibility {
            Some(Value::Array(all)) => all.iter().any(|one| one == to),
            _ => true,
        };
        Self {
            model: visible("model"),
            app: visible("app"),
        }
    }
}

/// A tool with a page of its own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct App {
    /// The tool's own name.
    pub tool: String,
    /// The address of the page, for [`McpHost::read_app`].
    pub uri: String,
    /// Whether models may call the tool.
    pub for_model: bool,
    /// Whether the page may call the tool.
    pub for_app: bool,
}

/// A page, as it is to be shown: in a sandbox, for it comes from the server.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AppPage {
    /// Its address.
    pub uri: String,
    /// HTML.
    pub html: String,
    /// What it wants, as the server says it: `csp`, `permissions`, `domain`, `prefersBorder`.
    pub ui: JsonObject,
}

/// Pages that servers have for showing what their tools do.
impl McpHost {
    /// The tools of a server that have a page, also those that are not for models.
    pub async fn apps(&self, server: &str) -> Result<Listing<App>, FeatureError> {
        let mut asker = Asker::new(self, server).await?;
        let request = |params| {
            ClientRequest::ListToolsRequest(ListToolsRequest {
                params,
                ..ListToolsRequest::default()
            })
        };
        let all = pages::all(&mut asker, Capability::Tools, "tools", request, app).await?;
        Ok(Listing {
            items: all.items.into_iter().flatten().collect(),
            problems: all.problems,
        })
    }

    /// The tools of a server that are for its pages and not for models: they are in no catalog. Empty if
    /// there is no such server.
    pub fn app_tools(&self, server: &str) -> Vec<Arc<ToolDefinition>> {
        let servers = self.shared().servers.iter();
        let mut named = servers.filter(|found| found.config.name == server);
        let found = named.next().map(|found| found.now().tools.app_only.clone());
        found.unwrap_or_default()
    }

    /// Runs a tool for a page of the same server, by its own name. Otherwise like
    /// [`McpHost::call_raw`]; a tool that is not for pages is refused, as the extension demands.
    pub async fn call_from_app(
        &self,
        server: &str,
        tool: &str,
        input: JsonObject,
    ) -> Result<ToolOutput, ToolCallError> {
        self.call_own(server, tool, input, Behalf::Page).await
    }

    /// Reads a page. It is an error if the address does not begin with `ui://`, for which the server is not asked, or if what is
    /// there is no page.
    pub async fn read_app(&self, server: &str, uri: &str) -> Result<AppPage, FeatureError> {
        // Who may only see pages must not have a server read anything else: that can do something, too.
        if !is_app_address(uri) {
            return Err(FeatureError::NoPage {
                server: server.to_owned(),
                uri: uri.to_owned(),
            });
        }
        let malformed = |reason: String| FeatureError::Malformed {
            server: server.to_owned(),
            request: "resources/read".to_owned(),
            reason,
        };
        let read = self.read_resource(server, uri).await?;
        let page = read.items.into_iter().find(|content| {
            // Unlike in a list, the type has to be said here.
            content.is_app() && content.media_type.as_deref().is_some_and(is_app_media_type)
        });
        let page =
            page.ok_or_else(|| malformed(format!("`{uri}` is no page of {APP_MEDIA_TYPE}")))?;
        let html = match page.body {
            ResourceBody::Text(text) => text,
            ResourceBody::Blob(blob) => BASE64_STANDARD
                .decode(blob)
                .ok()
                .and_then(|bytes| String::from_utf8(bytes).ok())
                .ok_or_else(|| malformed(format!("the page `{uri}` is no text")))?,
        };
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

/// `None` for a tool without a page.
fn app(tool: &Value) -> Result<Option<App>, String> {
    let meta = meta(tool);
    let ui = meta.get("ui");
    let uri = ui
        .and_then(|ui| ui.get("resourceUri"))
        // As it was before the extension was final.
        .or_else(|| meta.get("ui/resourceUri"));
    let Some(uri) = uri.and_then(Value::as_str) else {
        return Ok(None);
    };
    let audience = Audience::of(&meta);
    Ok(Some(App {
        tool: needed(tool, "name", "tool")?,
        uri: uri.to_owned(),
        for_model: audience.model,
        for_app: audience.app,
    }))
}
