//! Visibility of tools to models and to pages of MCP Apps (extension `io.modelcontextprotocol/ui`,
//! 2026-01-26).

use serde_json::Value;
use switchboard_domain::JsonObject;

/// Media type (MIME type) of the HTML pages of MCP Apps.
pub const APP_MEDIA_TYPE: &str = "text/html;profile=mcp-app";
/// Id of the MCP Apps extension. A host declares the extension if it can display pages.
pub(crate) const APPS_EXTENSION_ID: &str = "io.modelcontextprotocol/ui";

/// Callers that may call a tool (models, pages of MCP Apps, or both), and the page that displays
/// the calls of the tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Visibility {
    pub(crate) model: bool,
    pub(crate) app: bool,
    /// URI of the MCP Apps page that displays the calls of the tool, if any.
    pub(crate) page: Option<String>,
}

impl Visibility {
    /// Reads the visibility from the `_meta` object of a tool. By default, and if the list of
    /// callers is empty, models and pages may call the tool.
    pub(crate) fn from_meta(meta: Option<&JsonObject>) -> Self {
        let ui = meta.and_then(|meta| meta.get("ui"));
        let page = ui.and_then(|ui| ui.get("resourceUri"));
        // Drafts of the MCP Apps extension use the key `ui/resourceUri` instead.
        let page = page.or_else(|| meta?.get("ui/resourceUri"));
        let visibility = ui.and_then(|ui| ui.get("visibility"));
        let visible_to = |caller: &str| match visibility {
            Some(Value::Array(callers)) if !callers.is_empty() => {
                callers.iter().any(|it| it == caller)
            }
            _ => true,
        };
        Self {
            model: visible_to("model"),
            app: visible_to("app"),
            page: page.and_then(Value::as_str).map(str::to_owned),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn models_and_pages_may_call_a_tool_without_a_list_of_callers() {
        for (ui, expected) in [
            (json!({}), (true, true)),
            (json!({"visibility": []}), (true, true)),
            (json!({"visibility": ["app"]}), (false, true)),
            (json!({"visibility": ["model"]}), (true, false)),
        ] {
            let meta = json!({"ui": ui});
            let visibility = Visibility::from_meta(meta.as_object());
            assert_eq!((visibility.model, visibility.app), expected, "{ui}");
        }
    }
}
