//! Visibility of tools to models and to pages of MCP Apps (extension `io.modelcontextprotocol/ui`,
//! 2026-01-26).

use serde_json::Value;
use switchboard_domain::JsonObject;

/// The media type of pages of MCP Apps.
pub const APP_MEDIA_TYPE: &str = "text/html;profile=mcp-app";
/// The id of the extension, by which a host declares that it can show pages.
pub(crate) const APPS_EXTENSION_ID: &str = "io.modelcontextprotocol/ui";

/// Who may call a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Visibility {
    pub(crate) model: bool,
    pub(crate) app: bool,
}

impl Visibility {
    /// Reads the visibility from the `_meta` of a tool. The default is both.
    pub(crate) fn from_meta(meta: Option<&JsonObject>) -> Self {
        let ui = meta.and_then(|meta| meta.get("ui"));
        let visibility = ui.and_then(|ui| ui.get("visibility"));
        let visible_to = |caller: &str| match visibility {
            Some(Value::Array(callers)) => callers.iter().any(|it| it == caller),
            _ => true,
        };
        Self {
            model: visible_to("model"),
            app: visible_to("app"),
        }
    }
}
