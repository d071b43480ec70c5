//! Tools that the API runs on its own side.
//!
//! Facts: the types of the official SDK (openai 3.52.0).

use std::fmt;

use http::Uri;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use switchboard_domain::JsonObject;

use crate::config::shown_address;

/// A tool that the Responses API runs on its own side while the model answers. What it did comes as
/// [`Part::Opaque`](switchboard_domain::Part::Opaque) and goes back to the provider unchanged.
///
/// In a configuration file: `{type: web_search, allowed_domains: [example.org]}`,
/// `{type: code_interpreter}`, `{type: file_search, vector_store_ids: [vs_1]}`,
/// `{type: mcp, server_label: wiki, server_url: https://example.org/mcp, require_approval: never}`,
/// `{type: raw, declaration: {type: shell}}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum ServerTool {
    /// Searches the web.
    WebSearch(WebSearch),
    /// Runs Python in a container of the provider's.
    CodeInterpreter(CodeInterpreter),
    /// Searches files that were uploaded to the provider.
    FileSearch(FileSearch),
    /// Draws. The images stay with the provider's blocks; they are not parts of the answer.
    ImageGeneration(ImageGeneration),
    /// The tools of an MCP server that the provider calls from its own side.
    Mcp(RemoteMcp),
    /// Any other, in the API's own words.
    Raw(RawServerTool),
}

/// `web_search`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct WebSearch {
    /// Domains whose pages may be found, those under them too; all if there are none.
    pub allowed_domains: Vec<String>,
    /// How much of the context window the findings may take; `None` leaves it to the provider, which
    /// takes a medium amount.
    pub search_context_size: Option<SearchContextSize>,
    /// Where the person is, roughly. `None` is the United States to the provider; `{}` is nowhere.
    pub user_location: Option<UserLocation>,
    /// Whether pages are fetched, as the provider does if it is not told; else only what it has stored is
    /// searched.
    pub external_web_access: Option<bool>,
}

/// How much of the context window findings may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SearchContextSize {
    /// Little.
    Low,
    /// Some.
    Medium,
    /// Much.
    High,
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

/// `code_interpreter`, in a container that the provider makes for the conversation or finds again by
/// itself.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CodeInterpreter {
    /// The id of a container that exists, in place of all below.
    pub container: Option<String>,
    /// Ids of uploaded files that the code finds there.
    pub file_ids: Vec<String>,
    /// What of memory it has; `None` leaves it to the provider.
    pub memory_limit: Option<MemoryLimit>,
}

/// Memory of a container.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum MemoryLimit {
    /// 1 GB.
    #[serde(rename = "1g")]
    Gb1,
    /// 4 GB.
    #[serde(rename = "4g")]
    Gb4,
    /// 16 GB.
    #[serde(rename = "16g")]
    Gb16,
    /// 64 GB.
    #[serde(rename = "64g")]
    Gb64,
}

/// `file_search`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileSearch {
    /// The ids of the vector stores that are searched, at least one.
    pub vector_store_ids: Vec<String>,
    /// Passages per search at most, 1 to 50; `None` leaves it to the provider.
    #[serde(default)]
    pub max_num_results: Option<u32>,
}

/// `image_generation`. What each field may say depends on the model that draws.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ImageGeneration {
    /// The model that draws.
    pub model: Option<String>,
    /// `1024x1024` and the like, or `auto`.
    pub size: Option<String>,
    /// `low`, `medium`, `high`, …, or `auto`.
    pub quality: Option<String>,
    /// `transparent`, `opaque` or `auto`.
    pub background: Option<String>,
    /// `png`, `webp`, `jpeg`, …
    pub output_format: Option<String>,
}

/// `mcp`: an MCP server that the provider itself calls, over the internet. It gets what the model
/// writes for its tools, unseen by this host.
///
/// A server that wants a token cannot be declared so: nothing that is configured here is kept as a
/// secret. See [`RawServerTool`].
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RemoteMcp {
    /// The name by which its calls, and a tool choice, speak of it.
    pub server_label: String,
    /// Its address, `https://…`.
    pub server_url: String,
    /// What it is for, told to the model.
    #[serde(default)]
    pub server_description: Option<String>,
    /// The tools that may be called, all if there are none.
    #[serde(default)]
    pub allowed_tools: Vec<String>,
    /// Which calls wait for an approval.
    #[serde(default)]
    pub require_approval: Approval,
}

/// Which calls of a remote server wait for an approval.
///
/// In a configuration file: `always`, `never`, `{never_for: [search, fetch]}`.
///
/// A call that waits comes as an opaque part of the kind `mcp_approval_request`, and the answer ends. It
/// goes on with the next request if that has, in the same message behind that part, another opaque part
/// minted by the same model whose data is `{"item": {"type": "mcp_approval_response",
/// "approval_request_id": <the id in the request's item>, "approve": true}}`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Approval {
    /// All, unless it is said otherwise.
    #[default]
    Always,
    /// None: the provider sends the server what the model wrote, and nobody is asked.
    Never,
    /// All but those of these tools.
    NeverFor(Vec<String>),
}

/// A tool of the API's that has no form of its own here.
///
/// Its declaration is sent as it is. It may hold a secret, such as the `authorization` or the `headers` of an
/// MCP server: its values are kept out of debug output, but it is no
/// [`SecretString`](secrecy::SecretString), and what it is read from holds it in plain text.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RawServerTool {
    /// The entry of `tools` as it is sent: `type` and more.
    pub declaration: JsonObject,
}

impl ServerTool {
    /// Searches the web, without limits.
    pub fn web_search() -> Self {
        Self::WebSearch(WebSearch::default())
    }

    /// Runs code in a container that the provider makes.
    pub fn code_interpreter() -> Self {
        Self::CodeInterpreter(CodeInterpreter::default())
    }

    /// Draws, as the provider has it.
    pub fn image_generation() -> Self {
        Self::ImageGeneration(ImageGeneration::default())
    }

    /// What a tool choice calls it: its type; the label of an MCP server and the name of a custom tool.
    /// Empty for a raw one that says none.
    pub fn name(&self) -> &str {
        match self {
            Self::WebSearch(_) => "web_search",
            Self::CodeInterpreter(_) => "code_interpreter",
            Self::FileSearch(_) => "file_search",
            Self::ImageGeneration(_) => "image_generation",
            Self::Mcp(it) => &it.server_label,
            Self::Raw(raw) => raw.name(),
        }
    }

    /// The entry of `tools`.
    pub(crate) fn declaration(&self) -> JsonObject {
        let mut entry = Entry(JsonObject::new());
        match self {
            Self::WebSearch(it) => {
                entry.put("type", json!("web_search"));
                if !it.allowed_domains.is_empty() {
                    entry.put("filters", json!({"allowed_domains": it.allowed_domains}));
                }
                entry.some("search_context_size", it.search_context_size.as_ref());
                if let Some(location) = &it.user_location {
                    let mut said = json!({"type": "approximate"});
                    if let (Value::Object(said), Ok(Value::Object(more))) =
                        (&mut said, serde_json::to_value(location))
                    {
                        said.extend(more);
                    }
                    entry.put("user_location", said);
                }
                entry.some("external_web_access", it.external_web_access.as_ref());
            }
            Self::CodeInterpreter(it) => {
                entry.put("type", json!("code_interpreter"));
                entry.put("container", it.container());
            }
            Self::FileSearch(it) => {
                entry.put("type", json!("file_search"));
                entry.put("vector_store_ids", json!(it.vector_store_ids));
                entry.some("max_num_results", it.max_num_results.as_ref());
            }
            Self::ImageGeneration(it) => {
                entry.put("type", json!("image_generation"));
                entry.some("model", it.model.as_ref());
                entry.some("size", it.size.as_ref());
                entry.some("quality", it.quality.as_ref());
                entry.some("background", it.background.as_ref());
                entry.some("output_format", it.output_format.as_ref());
            }
            Self::Mcp(it) => {
                entry.put("type", json!("mcp"));
                entry.put("server_label", json!(it.server_label));
                entry.put("server_url", json!(it.server_url));
                entry.some("server_description", it.server_description.as_ref());
                if !it.allowed_tools.is_empty() {
                    entry.put("allowed_tools", json!(it.allowed_tools));
                }
                entry.put("require_approval", it.require_approval.said());
            }
            Self::Raw(raw) => return raw.declaration.clone(),
        }
        entry.0
    }

    /// What the API would refuse whatever the model.
    pub(crate) fn fault(&self) -> Option<String> {
        let told = |is_wrong: bool, message: &str| is_wrong.then(|| message.to_owned());
        match self {
            Self::WebSearch(_) | Self::ImageGeneration(_) => None,
            Self::CodeInterpreter(it) => told(
                it.container.is_some() && !(it.file_ids.is_empty() && it.memory_limit.is_none()),
                "code_interpreter takes a container that exists, or file_ids and memory_limit for \
                 a new one, not both",
            ),
            Self::FileSearch(it) => told(
                it.vector_store_ids.is_empty(),
                "file_search needs at least one of vector_store_ids",
            )
            .or_else(|| {
                let within = it.max_num_results.is_none_or(|it| (1..=50).contains(&it));
                told(!within, "max_num_results of file_search is 1 to 50")
            }),
            Self::Mcp(it) => it.fault(),
            Self::Raw(raw) => match raw.kind() {
                "" => Some("a raw server tool needs a `type`".to_owned()),
                "function" => Some(
                    "a raw server tool is none of the type `function`: functions are declared by \
                     the request"
                        .to_owned(),
                ),
                _ => None,
            },
        }
    }
}

impl CodeInterpreter {
    fn container(&self) -> Value {
        if let Some(id) = &self.container {
            return json!(id);
        }
        let mut entry = Entry(JsonObject::new());
        entry.put("type", json!("auto"));
        if !self.file_ids.is_empty() {
            entry.put("file_ids", json!(self.file_ids));
        }
        entry.some("memory_limit", self.memory_limit.as_ref());
        Value::Object(entry.0)
    }
}

impl RemoteMcp {
    /// A server whose every call waits for an approval.
    pub fn new(label: impl Into<String>, url: impl Into<String>) -> Self {
        Self {
            server_label: label.into(),
            server_url: url.into(),
            server_description: None,
            allowed_tools: Vec::new(),
            require_approval: Approval::default(),
        }
    }

    fn fault(&self) -> Option<String> {
        if self.server_label.trim().is_empty() {
            return Some("an mcp server tool needs a server_label".to_owned());
        }
        let uri = self.server_url.parse::<Uri>();
        let is_address = uri.is_ok_and(|uri| {
            matches!(uri.scheme_str(), Some("http" | "https")) && uri.host().is_some()
        });
        (!is_address).then(|| {
            let (label, shown) = (&self.server_label, shown_address(&self.server_url));
            format!("server_url of `{label}` is no address: `{shown}`")
        })
    }
}

/// An address may hold a token.
impl fmt::Debug for RemoteMcp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RemoteMcp")
            .field("server_label", &self.server_label)
            .field("server_url", &shown_address(&self.server_url))
            .field("server_description", &self.server_description)
            .field("allowed_tools", &self.allowed_tools)
            .field("require_approval", &self.require_approval)
            .finish()
    }
}

impl Approval {
    fn said(&self) -> Value {
        match self {
            Self::Never => json!("never"),
            Self::NeverFor(tools) if !tools.is_empty() => json!({"never": {"tool_names": tools}}),
            Self::Always | Self::NeverFor(_) => json!("always"),
        }
    }
}

impl RawServerTool {
    /// A tool that is declared so.
    pub fn new(declaration: JsonObject) -> Self {
        Self { declaration }
    }

    fn kind(&self) -> &str {
        self.text("type").unwrap_or_default()
    }

    fn name(&self) -> &str {
        let own = match self.kind() {
            "mcp" => self.text("server_label"),
            "custom" => self.text("name"),
            _ => None,
        };
        own.unwrap_or_else(|| self.kind())
    }

    fn text(&self, field: &str) -> Option<&str> {
        self.declaration.get(field).and_then(Value::as_str)
    }
}

/// A declaration may hold a token.
impl fmt::Debug for RawServerTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fields: Vec<&String> = self.declaration.keys().collect();
        f.debug_struct("RawServerTool")
            .field("type", &self.kind())
            .field("fields", &fields)
            .finish()
    }
}

struct Entry(JsonObject);

impl Entry {
    /// A field that has a value.
    fn some<T: Serialize>(&mut self, name: &str, value: Option<&T>) {
        if let Some(value) = value {
            self.put(name, json!(value));
        }
    }

    fn put(&mut self, name: &str, value: Value) {
        self.0.insert(name.to_owned(), value);
    }
}

#[cfg(test)]
#[path = "server_tool_tests.rs"]
mod tests;
