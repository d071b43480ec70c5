//! Tools that the API runs on its own servers.
//!
//! Source: the types of the official SDK (anthropic 2.11.0). The web search version of each model
//! is in [`model_rules`](mod@crate::model_rules).

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use switchboard_domain::JsonObject;
pub use switchboard_providers_common::UserLocation;

use crate::model_rules::{DEFAULT_WEB_SEARCH, ModelRules};

/// A tool that the API runs on its own servers while the model answers. Its calls and results
/// arrive as [`Part::Opaque`](switchboard_domain::Part::Opaque) and are sent back unchanged.
///
/// Examples in a configuration file: `{type: web_search, max_uses: 3}` and
/// `{type: raw, declaration: {type: code_execution_20250825, name: code_execution}}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum ServerTool {
    /// The web search that the API runs.
    WebSearch(WebSearch),
    /// A tool that has no variant here, as the JSON that the API expects.
    Raw(RawServerTool),
}

/// Settings of the web search that the API runs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct WebSearch {
    /// The version of the web search tool: the date in its type, such as `20250305`. `None` selects
    /// the newest version that the model supports.
    pub version: Option<String>,
    /// Maximum number of searches per request. `None` means no maximum.
    pub max_uses: Option<u32>,
    /// Domains to search. An empty list allows all domains.
    pub allowed_domains: Vec<String>,
    /// Domains to exclude. The API refuses a request with both allowed and blocked domains.
    pub blocked_domains: Vec<String>,
    /// The user's approximate location.
    pub user_location: Option<UserLocation>,
}

/// A tool that the API runs and that has no type in this crate, declared as JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RawServerTool {
    /// The entry for the request field `tools`: `type`, usually `name`, and further fields.
    pub declaration: JsonObject,
    /// Values of the `anthropic-beta` header that the tool requires.
    #[serde(default)]
    pub betas: Vec<String>,
}

impl ServerTool {
    /// Creates a web search tool without limits.
    pub fn web_search() -> Self {
        Self::WebSearch(WebSearch::default())
    }

    /// Creates a tool from its entry for the request field `tools`.
    pub fn from_declaration(declaration: JsonObject) -> Self {
        let betas = Vec::new();
        Self::Raw(RawServerTool { declaration, betas })
    }

    /// Returns the name by which the model calls the tool. Returns "" if a JSON declaration has no
    /// `name`.
    pub fn name(&self) -> &str {
        match self {
            Self::WebSearch(_) => "web_search",
            Self::Raw(raw) => {
                let name = raw.declaration.get("name").and_then(Value::as_str);
                name.unwrap_or_default()
            }
        }
    }

    /// Returns the values of the `anthropic-beta` header that the tool requires.
    pub(crate) fn required_betas(&self) -> &[String] {
        match self {
            Self::WebSearch(_) => &[],
            Self::Raw(raw) => &raw.betas,
        }
    }

    /// Returns the tool's entry for the request field `tools`. `rules` are the features of the
    /// model, or `None` for an unknown model. For an unknown model, a web search without a
    /// configured version gets the oldest version.
    pub(crate) fn to_declaration(&self, rules: Option<&ModelRules>) -> JsonObject {
        let search = match self {
            Self::WebSearch(search) => search,
            Self::Raw(raw) => return raw.declaration.clone(),
        };
        let supported = rules.map_or(DEFAULT_WEB_SEARCH, |rules| rules.web_search);
        let version = search.version.as_deref().unwrap_or(supported.version);
        let mut entry = JsonObject::new();
        let mut put = |name: &str, value: Value| entry.insert(name.to_owned(), value);
        put("type", json!(format!("web_search_{version}")));
        put("name", json!("web_search"));
        if let Some(count) = search.max_uses {
            put("max_uses", count.into());
        }
        for (name, domains) in [
            ("allowed_domains", &search.allowed_domains),
            ("blocked_domains", &search.blocked_domains),
        ] {
            if !domains.is_empty() {
                put(name, json!(domains));
            }
        }
        if let Some(location) = &search.user_location {
            put("user_location", location.to_declaration());
        }
        if supported.direct_only && search.version.is_none() {
            put("allowed_callers", json!(["direct"]));
        }
        entry
    }

    /// Returns an error message if the API would refuse this tool for every model, otherwise
    /// `None`.
    pub(crate) fn find_configuration_error(&self) -> Option<String> {
        let search = match self {
            Self::WebSearch(search) => search,
            Self::Raw(raw) => {
                let kind = raw.declaration.get("type").and_then(Value::as_str);
                let missing = kind.is_none_or(str::is_empty);
                return missing.then(|| "a raw server tool needs a `type`".to_owned());
            }
        };
        let is_date = |it: &String| it.len() == 8 && it.bytes().all(|byte| byte.is_ascii_digit());
        if let Some(version) = search.version.as_ref().filter(|it| !is_date(it)) {
            return Some(format!(
                "`{version}` is not a version of web_search: use the date in its type, such as \
                 20250305"
            ));
        }
        (!search.allowed_domains.is_empty() && !search.blocked_domains.is_empty())
            .then(|| "web_search accepts allowed_domains or blocked_domains, not both".to_owned())
    }
}

#[cfg(test)]
#[path = "server_tool_tests.rs"]
mod tests;
