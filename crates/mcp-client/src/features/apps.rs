//! MCP Apps (extension `io.modelcontextprotocol/ui`, 2026-01-26): pages that servers have for showing
//! what their tools do. Here they are found and read; who can show them does so.

use base64::{Engine, prelude::BASE64_STANDARD};
use rmcp::model::{ClientRequest, ListToolsRequest};
use serde_json::Value;
use switchboard_domain::JsonObject;

use super::{
    FeatureError, Listing, ResourceBody,
    ask::{Asker, Capability},
    pages::{self, meta, needed},
    resources::is_app_media_type,
};
use crate::host::McpHost;

/// The media type of pages of MCP Apps.
pub const APP_MEDIA_TYPE: &str = "text/html;profile=mcp-app";

/// A tool with a page of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
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
#[derive(Debug, Clone, PartialEq)]
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

    /// Reads a page. It is an error if the address is not of `ui:` or what is there is no page.
    pub async fn read_app(&self, server: &str, uri: &str) -> Result<AppPage, FeatureError> {
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
    let visibility = ui.and_then(|ui| ui.get("visibility"));
    let visible = |to: &str| match visibility {
        Some(Value::Array(all)) => all.iter().any(|one| one == to),
        _ => true,
    };
    Ok(Some(App {
        tool: needed(tool, "name", "tool")?,
        uri: uri.to_owned(),
        for_model: visible("model"),
        for_app: visible("app"),
    }))
}
