//! `providers:`, changed and additional providers.

use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};
use switchboard_providers_anthropic::MessagesOptions;
use switchboard_providers_common::text_tool_calls::{RecoveryForm, RecoveryForms};
use switchboard_providers_gemini::GeminiOptions;
use switchboard_providers_ollama::ToolsByPrompt;
use switchboard_providers_openai::{Profile, chat::ChatOptions, responses::ResponsesOptions};

use super::{
    error::Problem,
    fields::{check_map, converted, http_url, section, text},
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
    /// The forms of text that are parsed as calls. `None` uses the profile or the adapter.
    pub(crate) text_calls: Option<RecoveryForms>,
    /// Which models get tools described in the prompt. `None` uses the profile or the adapter.
    pub(crate) tools_by_prompt: Option<ToolsByPrompt>,
    /// Whether the server can stream.
    pub(crate) streams: bool,
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

/// The values of `type:`, in the order of automatic choice.
pub(crate) const KINDS: [(&str, ProviderKind); 6] = [
    ("anthropic", ProviderKind::Anthropic),
    ("openai", ProviderKind::OpenAi),
    ("openai-compatible", ProviderKind::OpenAiCompatible),
    ("openai-responses", ProviderKind::OpenAiResponses),
    ("gemini", ProviderKind::Gemini),
    ("ollama", ProviderKind::Ollama),
];

impl ProviderKind {
    /// Returns the value of `type:`.
    pub(crate) fn name(self) -> &'static str {
        let known = KINDS.into_iter().find(|(_, kind)| *kind == self);
        known.map_or("", |(name, _)| name)
    }

    fn named(name: &str) -> Option<Self> {
        let known = KINDS.into_iter().find(|(known, _)| *known == name);
        known.map(|(_, kind)| kind)
    }

    /// Returns whether other vendors' servers use this wire, with differences.
    fn takes_profile(self) -> bool {
        matches!(self, Self::OpenAiCompatible | Self::OpenAiResponses)
    }
}

/// Options that only one wire has, such as built-in tools and cache marks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum AdapterOptions {
    Anthropic(MessagesOptions),
    Gemini(GeminiOptions),
    Chat(ChatOptions),
    Responses(ResponsesOptions),
}

impl AdapterOptions {
    fn read(value: &Value, kind: ProviderKind, path: &str) -> Result<Self, Problem> {
        match kind {
            ProviderKind::Anthropic => section(path, value).map(Self::Anthropic),
            ProviderKind::Gemini => section(path, value).map(Self::Gemini),
            ProviderKind::OpenAi | ProviderKind::OpenAiCompatible => {
                section(path, value).map(Self::Chat)
            }
            ProviderKind::OpenAiResponses => section(path, value).map(Self::Responses),
            ProviderKind::Ollama => Err(Problem::wrong(path, "absent: this wire has no options")),
        }
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
            text_calls: None,
            tools_by_prompt: None,
            streams: true,
        }
    }
}

/// The name of the demo model's provider.
pub(crate) const OFFLINE: &str = "offline";

/// The keys of a provider.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields, expecting = "a map of settings")]
struct Fields {
    #[serde(rename = "type", deserialize_with = "kind")]
    kind: Option<ProviderKind>,
    #[serde(deserialize_with = "http_url")]
    base_url: Option<String>,
    #[serde(deserialize_with = "text")]
    api_key_env: Option<String>,
    #[serde(deserialize_with = "text")]
    model: Option<String>,
    #[serde(deserialize_with = "profile")]
    profile: Option<Profile>,
    options: Option<Value>,
    #[serde(deserialize_with = "recovery_forms")]
    text_calls: Option<RecoveryForms>,
    #[serde(deserialize_with = "tools_by_prompt")]
    tools_by_prompt: Option<ToolsByPrompt>,
    stream: Option<bool>,
}

pub(super) fn read(value: &Value) -> Result<Vec<ProviderEntry>, Problem> {
    let entries: Map<String, Value> = section("providers", value)
        .map_err(|_| Problem::wrong("providers", "a map of providers by name"))?;
    let entries = entries.iter().map(|(name, value)| entry(name, value));
    entries.collect()
}

fn entry(name: &str, value: &Value) -> Result<ProviderEntry, Problem> {
    let path = format!("providers.{name}");
    if name.is_empty() || name.contains('/') || name == OFFLINE {
        return Err(Problem::wrong(
            path,
            "under another name: without a slash, and not `offline`",
        ));
    }
    check_map(&path, value)?;
    let fields: Fields = section(&path, value)?;
    // The name of a wire selects that wire.
    let kind = fields.kind.or_else(|| ProviderKind::named(name));
    let kind = kind.unwrap_or(ProviderKind::OpenAiCompatible);
    if fields.profile.is_some() && !kind.takes_profile() {
        return Err(Problem::wrong(
            format!("{path}.profile"),
            "given for servers of type openai-compatible or openai-responses only",
        ));
    }
    if fields.base_url.is_none() && kind == ProviderKind::OpenAiCompatible {
        return Err(Problem::wrong(
            format!("{path}.base_url"),
            "given: the address of the server, such as http://127.0.0.1:4000/v1",
        ));
    }
    let options = fields.options.as_ref();
    let options =
        options.map(|value| AdapterOptions::read(value, kind, &format!("{path}.options")));
    Ok(ProviderEntry {
        name: name.to_owned(),
        kind,
        base_url: fields.base_url,
        api_key_env: fields.api_key_env,
        model: fields.model,
        profile: fields.profile,
        options: options.transpose()?,
        text_calls: fields.text_calls,
        tools_by_prompt: fields.tools_by_prompt,
        streams: fields.stream.unwrap_or(true),
    })
}

fn kind<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<ProviderKind>, D::Error> {
    let expected = format!("one of {}", KINDS.map(|(name, _)| name).join(", "));
    converted(deserializer, &expected, |value| {
        ProviderKind::named(value.as_str()?)
    })
}

fn profile<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Profile>, D::Error> {
    let expected = format!("one of {}", Profile::NAMES.join(", "));
    converted(deserializer, &expected, |value| {
        Profile::named(value.as_str()?)
    })
}

fn recovery_forms<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<RecoveryForms>, D::Error> {
    let known = RecoveryForm::ALL.map(RecoveryForm::as_str).join(", ");
    converted(deserializer, &format!("a list of {known}"), |value| {
        let names = value.as_array()?.iter();
        names
            .map(|name| RecoveryForm::named(name.as_str()?))
            .collect()
    })
}

fn tools_by_prompt<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<ToolsByPrompt>, D::Error> {
    converted(deserializer, "true, false or auto", |value| match value {
        Value::Bool(true) => Some(ToolsByPrompt::Always),
        Value::Bool(false) => Some(ToolsByPrompt::Never),
        Value::String(word) if word == "auto" => Some(ToolsByPrompt::Auto),
        _ => None,
    })
}
