//! `providers:`, changed and additional providers.

use serde_json::Value;
use switchboard_providers_openai::Profile;

use super::{
    adapter::{AdapterOptions, TextCalling},
    document::Fields,
    error::Problem,
};

/// A provider. Its name is the part of a model name before the slash.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ProviderEntry {
    pub(crate) name: String,
    /// The wire of the provider.
    pub(crate) kind: ProviderKind,
    /// The address. `None` uses the vendor's address or its variable.
    pub(crate) base_url: Option<String>,
    /// The variable with the API key. `None` uses the vendor's variable.
    pub(crate) api_key_env: Option<String>,
    /// The default model.
    pub(crate) model: Option<String>,
    /// The differences of a compatible server.
    pub(crate) profile: Option<Profile>,
    /// Options that only this wire has: built-in tools, cache marks, effort.
    pub(crate) options: Option<AdapterOptions>,
    /// Tool calls as text, and tools in the prompt.
    pub(crate) text_calling: TextCalling,
    /// Whether the server can stream.
    pub(crate) streams: bool,
}

impl ProviderKind {
    /// Returns the value of `type:`.
    pub(crate) fn name(self) -> &'static str {
        let known = KINDS.into_iter().find(|(_, kind)| *kind == self);
        known.map_or("", |(name, _)| name)
    }
}

impl ProviderEntry {
    /// Returns a provider without settings.
    pub(crate) fn plain(name: &str, kind: ProviderKind) -> Self {
        Self {
            name: name.to_owned(),
            kind,
            base_url: None,
            api_key_env: None,
            model: None,
            profile: None,
            options: None,
            text_calling: TextCalling::default(),
            streams: true,
        }
    }
}

/// The supported wires.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ProviderKind {
    Anthropic,
    /// OpenAI Chat Completions of OpenAI.
    OpenAi,
    /// OpenAI Chat Completions of another server.
    OpenAiCompatible,
    OpenAiResponses,
    Gemini,
    Ollama,
}

/// The values of `type:`.
const KINDS: [(&str, ProviderKind); 6] = [
    ("anthropic", ProviderKind::Anthropic),
    ("openai", ProviderKind::OpenAi),
    ("openai-compatible", ProviderKind::OpenAiCompatible),
    ("openai-responses", ProviderKind::OpenAiResponses),
    ("gemini", ProviderKind::Gemini),
    ("ollama", ProviderKind::Ollama),
];

const KEYS: [&str; 9] = [
    "type",
    "base_url",
    "api_key_env",
    "model",
    "profile",
    "options",
    "text_calls",
    "tools_by_prompt",
    "stream",
];

/// The name of the offline planner's provider.
pub(crate) const OFFLINE: &str = "offline";

pub(super) fn read(value: &Value) -> Result<Vec<ProviderEntry>, Problem> {
    let Some(entries) = value.as_object() else {
        return Err(Problem::wrong("providers", "a map of providers by name"));
    };
    entries
        .iter()
        .map(|(name, value)| entry(name, value))
        .collect()
}

/// Returns whether other vendors' servers use this wire, with differences.
fn takes_profile(kind: ProviderKind) -> bool {
    matches!(
        kind,
        ProviderKind::OpenAiCompatible | ProviderKind::OpenAiResponses
    )
}

fn entry(name: &str, value: &Value) -> Result<ProviderEntry, Problem> {
    let place = format!("providers.{name}");
    if name.is_empty() || name.contains('/') || name == OFFLINE {
        return Err(Problem::wrong(
            place,
            "under another name: without a slash, and not `offline`",
        ));
    }
    let fields = Fields::of(value, &place, &KEYS)?;
    let kind = match (fields.one_of("type", &KINDS)?, name) {
        (Some(kind), _) => kind,
        // The name of a wire selects that wire.
        (None, name) => KINDS
            .into_iter()
            .find(|(known, _)| *known == name)
            .map_or(ProviderKind::OpenAiCompatible, |(_, kind)| kind),
    };
    let base_url = fields.text("base_url")?;
    let profile = match fields.text("profile")? {
        None => None,
        Some(_) if !takes_profile(kind) => {
            return Err(Problem::wrong(
                format!("{place}.profile"),
                "given for servers of type openai-compatible or openai-responses only",
            ));
        }
        Some(name) => Some(Profile::named(&name).ok_or_else(|| {
            Problem::wrong(
                format!("{place}.profile"),
                format!("one of {}", Profile::NAMES.join(", ")),
            )
        })?),
    };
    let options = match fields.get("options") {
        Some(options) => Some(AdapterOptions::read(options, kind, &place)?),
        None => None,
    };
    let text_calling = TextCalling::read(&fields, &place)?;
    match &base_url {
        Some(url) if !(url.starts_with("http://") || url.starts_with("https://")) => {
            return Err(Problem::wrong(
                format!("{place}.base_url"),
                "an address that begins with http:// or https://",
            ));
        }
        None if kind == ProviderKind::OpenAiCompatible => {
            return Err(Problem::wrong(
                format!("{place}.base_url"),
                "given: the address of the server, such as http://127.0.0.1:4000/v1",
            ));
        }
        _ => {}
    }
    Ok(ProviderEntry {
        name: name.to_owned(),
        kind,
        base_url,
        api_key_env: fields.text("api_key_env")?,
        model: fields.text("model")?,
        profile,
        options,
        text_calling,
        streams: fields.flag("stream")?.unwrap_or(true),
    })
}
