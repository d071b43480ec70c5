//! Tools that the Responses API runs on its own servers.
//!
//! Source: the types of the official SDK (openai 3.52.0).

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use switchboard_domain::JsonObject;
pub use switchboard_providers_common::UserLocation;

/// A tool that the Responses API runs on its own servers while the model answers. Its calls and
/// results arrive as [`Part::Opaque`](switchboard_domain::Part::Opaque) and are sent back
/// unchanged.
///
/// Examples in a configuration file: `{type: web_search, allowed_domains: [example.org]}` and
/// `{type: raw, declaration: {type: code_interpreter, container: {type: auto}}}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum ServerTool {
    /// The web search that the provider runs.
    WebSearch(WebSearch),
    /// A tool that has no variant here, as the JSON that the API expects.
    Raw(RawServerTool),
}

/// Settings of the tool `web_search`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct WebSearch {
    /// Domains to search, with their subdomains. An empty list allows all domains.
    pub allowed_domains: Vec<String>,
    /// Share of the context window that search results may use. `None` keeps the provider's
    /// default, which is medium.
    pub search_context_size: Option<SearchContextSize>,
    /// The user's approximate location. The provider assumes the United States for `None` and no
    /// location for `{}`.
    pub user_location: Option<UserLocation>,
    /// Whether the provider fetches web pages. With `false` it searches only pages that it has
    /// stored. `None` keeps the provider's default, which is to fetch.
    pub external_web_access: Option<bool>,
}

/// The share of the context window that search results may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SearchContextSize {
    /// Search results may use a small share of the context window.
    Low,
    /// Search results may use a medium share of the context window.
    Medium,
    /// Search results may use a large share of the context window.
    High,
}

/// A server tool without a Rust type in this crate, declared as JSON.
///
/// A declaration may contain a secret, such as the `authorization` or the `headers` of an MCP
/// server. Debug output hides its values. The declaration and its source hold the secret in plain
/// text.
///
/// A remote MCP server with `require_approval` may end the answer with an opaque part of the kind
/// `mcp_approval_request`. To continue, add a second opaque part of the same model after it, with
/// the data `{"item": {"type": "mcp_approval_response", "approval_request_id": <id>, "approve":
/// true}}`, and send the conversation again.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RawServerTool {
    /// The tool's entry in the request field `tools`: `type` and further fields.
    pub declaration: JsonObject,
}

impl ServerTool {
    /// Creates a web search without restrictions.
    pub fn web_search() -> Self {
        Self::WebSearch(WebSearch::default())
    }

    /// Creates a server tool from its entry in the request's `tools`.
    pub fn from_declaration(declaration: JsonObject) -> Self {
        Self::Raw(RawServerTool { declaration })
    }

    /// Returns the name that a tool choice uses: the label of an MCP server, the name of a custom
    /// tool, or the type. Returns "" if a JSON declaration has no `type`.
    pub fn name(&self) -> &str {
        match self {
            Self::WebSearch(_) => "web_search",
            Self::Raw(raw) => raw.name(),
        }
    }

    /// Returns the JSON entry of the tool for the request field `tools`.
    pub(crate) fn to_declaration(&self) -> JsonObject {
        let search = match self {
            Self::WebSearch(search) => search,
            Self::Raw(raw) => return raw.declaration.clone(),
        };
        let mut entry = JsonObject::new();
        let mut put = |name: &str, value: Value| entry.insert(name.to_owned(), value);
        put("type", json!("web_search"));
        if !search.allowed_domains.is_empty() {
            put(
                "filters",
                json!({"allowed_domains": search.allowed_domains}),
            );
        }
        if let Some(size) = search.search_context_size {
            put("search_context_size", json!(size));
        }
        if let Some(location) = &search.user_location {
            put("user_location", location.to_declaration());
        }
        if let Some(access) = search.external_web_access {
            put("external_web_access", json!(access));
        }
        entry
    }

    /// Returns an error message if the API would refuse this tool for every model, otherwise
    /// `None`.
    pub(crate) fn find_configuration_error(&self) -> Option<String> {
        let Self::Raw(raw) = self else {
            return None;
        };
        match raw.tool_type() {
            "" => Some("a raw server tool needs a `type`".to_owned()),
            "function" => Some(
                "a raw server tool cannot have the type `function`: declare functions in the \
                 request"
                    .to_owned(),
            ),
            _ => None,
        }
    }
}

impl RawServerTool {
    fn tool_type(&self) -> &str {
        self.text_field("type").unwrap_or_default()
    }

    fn name(&self) -> &str {
        let name = match self.tool_type() {
            "mcp" => self.text_field("server_label"),
            "custom" => self.text_field("name"),
            _ => None,
        };
        name.unwrap_or_else(|| self.tool_type())
    }

    fn text_field(&self, field: &str) -> Option<&str> {
        self.declaration.get(field).and_then(Value::as_str)
    }
}

/// Debug output hides the values, because they may contain a secret.
impl fmt::Debug for RawServerTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fields: Vec<&String> = self.declaration.keys().collect();
        f.debug_struct("RawServerTool")
            .field("type", &self.tool_type())
            .field("fields", &fields)
            .finish()
    }
}

#[cfg(test)]
#[path = "server_tool_tests.rs"]
mod tests;
