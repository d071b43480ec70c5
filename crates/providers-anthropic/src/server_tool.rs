//! Tools that the API runs on its own side.
//!
//! Facts: the types of the official SDK (anthropic 2.11.0). Which version a model takes is in
//! [`rules`](mod@crate::rules).

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use switchboard_domain::JsonObject;

use crate::rules::{FIRST_SERVER_TOOLS, Rules};

/// A tool that the API runs on its own side while the model answers. What it did comes as
/// [`Part::Opaque`](switchboard_domain::Part::Opaque) and goes back to the provider unchanged.
///
/// In a configuration file: `{type: web_search, max_uses: 3}`, `{type: code_execution}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum ServerTool {
    /// Searches the web.
    WebSearch(WebSearch),
    /// Reads pages and PDF at addresses that are in the conversation.
    WebFetch(WebFetch),
    /// Runs Python and shell commands in a container of the provider's.
    CodeExecution(CodeExecution),
    /// Any other, in the API's own words.
    Raw(RawServerTool),
}

/// `web_search`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct WebSearch {
    /// The date at the end of its type, such as `20250305`; `None` takes the newest that the model is
    /// known to take.
    pub version: Option<String>,
    /// Searches per request at most.
    pub max_uses: Option<u32>,
    /// Domains whose pages may be found, all if there are none.
    pub allowed_domains: Vec<String>,
    /// Domains whose pages are never found. The API takes no two lists at once.
    pub blocked_domains: Vec<String>,
    /// Where the person is, roughly.
    pub user_location: Option<UserLocation>,
}

/// Where the person is, roughly. Every field may be missing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct UserLocation {
    /// The city.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub city: Option<String>,
    /// The region, such as a state.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub region: Option<String>,
    /// Two letters, ISO 3166-1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub country: Option<String>,
    /// IANA time zone, such as `Europe/Berlin`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timezone: Option<String>,
}

/// `web_fetch`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct WebFetch {
    /// As in [`WebSearch::version`].
    pub version: Option<String>,
    /// Fetches per request at most.
    pub max_uses: Option<u32>,
    /// Domains that may be fetched from, all if there are none.
    pub allowed_domains: Vec<String>,
    /// Domains that are never fetched from. The API takes no two lists at once.
    pub blocked_domains: Vec<String>,
    /// Tokens of one page at most, roughly.
    pub max_content_tokens: Option<u32>,
    /// Whether the answer cites the pages.
    pub citations: bool,
}

/// `code_execution`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CodeExecution {
    /// As in [`WebSearch::version`].
    pub version: Option<String>,
}

/// A tool of the API's that has no form of its own here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RawServerTool {
    /// The entry of `tools` as it is sent: `type`, mostly `name`, and more.
    pub declaration: JsonObject,
    /// What it needs in `anthropic-beta`.
    #[serde(default)]
    pub betas: Vec<String>,
}

impl ServerTool {
    /// Searches the web, without limits.
    pub fn web_search() -> Self {
        Self::WebSearch(WebSearch::default())
    }

    /// Fetches pages, without limits.
    pub fn web_fetch() -> Self {
        Self::WebFetch(WebFetch::default())
    }

    /// Runs code.
    pub fn code_execution() -> Self {
        Self::CodeExecution(CodeExecution::default())
    }

    /// The name that the model calls it by; empty for a raw one that says none.
    pub fn name(&self) -> &str {
        match self {
            Self::WebSearch(_) => "web_search",
            Self::WebFetch(_) => "web_fetch",
            Self::CodeExecution(_) => "code_execution",
            Self::Raw(raw) => {
                let name = raw.declaration.get("name").and_then(Value::as_str);
                name.unwrap_or_default()
            }
        }
    }

    /// The entry of `tools` for a model of which `rules` are known.
    pub(crate) fn declaration(&self, rules: Option<&Rules>) -> JsonObject {
        let known = rules.map_or(FIRST_SERVER_TOOLS, |rules| rules.server_tools);
        let mut entry = Entry(JsonObject::new());
        match self {
            Self::WebSearch(it) => {
                entry.head("web_search", it.version.as_deref(), known.web_search);
                entry.count("max_uses", it.max_uses);
                entry.list("allowed_domains", &it.allowed_domains);
                entry.list("blocked_domains", &it.blocked_domains);
                if let Some(location) = &it.user_location {
                    let mut said = json!({"type": "approximate"});
                    if let (Value::Object(said), Ok(Value::Object(more))) =
                        (&mut said, serde_json::to_value(location))
                    {
                        said.extend(more);
                    }
                    entry.put("user_location", said);
                }
                entry.callers(known.direct_only && it.version.is_none());
            }
            Self::WebFetch(it) => {
                entry.head("web_fetch", it.version.as_deref(), known.web_fetch);
                entry.count("max_uses", it.max_uses);
                entry.list("allowed_domains", &it.allowed_domains);
                entry.list("blocked_domains", &it.blocked_domains);
                entry.count("max_content_tokens", it.max_content_tokens);
                if it.citations {
                    entry.put("citations", json!({"enabled": true}));
                }
                entry.callers(known.direct_only && it.version.is_none());
            }
            Self::CodeExecution(it) => {
                let version = it.version.as_deref();
                entry.head("code_execution", version, known.code_execution);
            }
            Self::Raw(raw) => return raw.declaration.clone(),
        }
        entry.0
    }

    /// What the API would refuse whatever the model.
    pub(crate) fn fault(&self) -> Option<String> {
        let name = self.name();
        let (version, allowed, blocked): (_, &[String], &[String]) = match self {
            Self::WebSearch(it) => (&it.version, &it.allowed_domains, &it.blocked_domains),
            Self::WebFetch(it) => (&it.version, &it.allowed_domains, &it.blocked_domains),
            Self::CodeExecution(it) => (&it.version, &[], &[]),
            Self::Raw(raw) => {
                let kind = raw.declaration.get("type").and_then(Value::as_str);
                let missing = kind.is_none_or(str::is_empty);
                return missing.then(|| "a raw server tool needs a `type`".to_owned());
            }
        };
        if let Some(version) = version
            && !(version.len() == 8 && version.bytes().all(|it| it.is_ascii_digit()))
        {
            return Some(format!(
                "`{version}` is no version of {name}: write the date at the end of its type, such as \
                 20250305"
            ));
        }
        (!allowed.is_empty() && !blocked.is_empty())
            .then(|| format!("{name} takes allowed_domains or blocked_domains, not both"))
    }
}

struct Entry(JsonObject);

impl Entry {
    fn head(&mut self, name: &str, version: Option<&str>, known: &str) {
        let kind = format!("{name}_{}", version.unwrap_or(known));
        self.put("type", Value::String(kind));
        self.put("name", Value::String(name.to_owned()));
    }

    fn count(&mut self, name: &str, value: Option<u32>) {
        if let Some(value) = value {
            self.put(name, value.into());
        }
    }

    fn list(&mut self, name: &str, values: &[String]) {
        if !values.is_empty() {
            self.put(name, values.into());
        }
    }

    fn callers(&mut self, direct_only: bool) {
        if direct_only {
            self.put("allowed_callers", json!(["direct"]));
        }
    }

    fn put(&mut self, name: &str, value: Value) {
        self.0.insert(name.to_owned(), value);
    }
}

#[cfg(test)]
#[path = "server_tool_tests.rs"]
mod tests;
