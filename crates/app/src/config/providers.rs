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
    field_parsing::{
        check_map, deserialize_converted, deserialize_http_url, deserialize_section,
        deserialize_text,
    },
};

/// Settings of a provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ProviderEntry {
    pub(crate) name: String,
    /// API format of the provider.
    pub(crate) kind: ProviderKind,
    /// Base URL of the API. `None` uses the variable or the default address of the vendor.
    pub(crate) base_url: Option<String>,
    /// Environment variable with the API key. `None` uses the variable of the vendor.
    pub(crate) api_key_env: Option<String>,
    /// Default model of the provider.
    pub(crate) model: Option<String>,
    /// Profile with the differences of an OpenAI-compatible server.
    pub(crate) profile: Option<Profile>,
    /// Options of this API format only, such as built-in tools and prompt caching.
    pub(crate) options: Option<AdapterOptions>,
    /// Text formats that are parsed as tool calls. `None` uses the default of the profile or
    /// adapter.
    pub(crate) text_calls: Option<RecoveryForms>,
    /// When tools are described in the prompt. `None` uses the default of the profile or adapter.
    pub(crate) tools_by_prompt: Option<ToolsByPrompt>,
    /// Whether the server can stream answers.
    pub(crate) streams: bool,
}

/// API formats of providers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ProviderKind {
    Anthropic,
    /// Chat Completions at OpenAI.
    OpenAi,
    /// Chat Completions at an OpenAI-compatible server.
    OpenAiCompatible,
    OpenAiResponses,
    Gemini,
    Ollama,
}

/// Values of the key `type`, in the order in which a default provider is chosen.
pub(crate) const KINDS: [(&str, ProviderKind); 6] = [
    ("anthropic", ProviderKind::Anthropic),
    ("openai", ProviderKind::OpenAi),
    ("openai-compatible", ProviderKind::OpenAiCompatible),
    ("openai-responses", ProviderKind::OpenAiResponses),
    ("gemini", ProviderKind::Gemini),
    ("ollama", ProviderKind::Ollama),
];

impl ProviderKind {
    /// Returns the value of the key `type` in the configuration.
    pub(crate) fn name(self) -> &'static str {
        let known = KINDS.into_iter().find(|(_, kind)| *kind == self);
        known.map_or("", |(name, _)| name)
    }

    fn from_name(name: &str) -> Option<Self> {
        let known = KINDS.into_iter().find(|(known, _)| *known == name);
        known.map(|(_, kind)| kind)
    }

    /// Returns whether compatible servers of other vendors use this API format. Their differences
    /// are in a profile.
    fn accepts_profile(self) -> bool {
        matches!(self, Self::OpenAiCompatible | Self::OpenAiResponses)
    }
}

/// Options of one API format, such as built-in tools and prompt caching.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum AdapterOptions {
    Anthropic(MessagesOptions),
    Gemini(GeminiOptions),
    Chat(ChatOptions),
    Responses(ResponsesOptions),
}

impl AdapterOptions {
    fn read_options(value: &Value, kind: ProviderKind, path: &str) -> Result<Self, Problem> {
        match kind {
            ProviderKind::Anthropic => deserialize_section(path, value).map(Self::Anthropic),
            ProviderKind::Gemini => deserialize_section(path, value).map(Self::Gemini),
            ProviderKind::OpenAi | ProviderKind::OpenAiCompatible => {
                deserialize_section(path, value).map(Self::Chat)
            }
            ProviderKind::OpenAiResponses => deserialize_section(path, value).map(Self::Responses),
            ProviderKind::Ollama => Err(Problem::wrong_value(
                path,
                "absent: this wire has no options",
            )),
        }
    }
}

impl ProviderEntry {
    /// Returns a provider with default settings.
    pub(crate) fn without_settings(name: &str, kind: ProviderKind) -> Self {
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

/// Keys of a provider in the configuration file.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields, expecting = "a map of settings")]
struct ProviderFields {
    #[serde(rename = "type", deserialize_with = "deserialize_kind")]
    kind: Option<ProviderKind>,
    #[serde(deserialize_with = "deserialize_http_url")]
    base_url: Option<String>,
    #[serde(deserialize_with = "deserialize_text")]
    api_key_env: Option<String>,
    #[serde(deserialize_with = "deserialize_text")]
    model: Option<String>,
    #[serde(deserialize_with = "deserialize_profile")]
    profile: Option<Profile>,
    options: Option<Value>,
    #[serde(deserialize_with = "deserialize_recovery_forms")]
    text_calls: Option<RecoveryForms>,
    #[serde(deserialize_with = "deserialize_tools_by_prompt")]
    tools_by_prompt: Option<ToolsByPrompt>,
    stream: Option<bool>,
}

pub(super) fn read_providers(value: &Value) -> Result<Vec<ProviderEntry>, Problem> {
    let entries: Map<String, Value> = deserialize_section("providers", value)
        .map_err(|_| Problem::wrong_value("providers", "a map of providers by name"))?;
    let entries = entries.iter().map(|(name, value)| read_entry(name, value));
    entries.collect()
}

fn read_entry(name: &str, value: &Value) -> Result<ProviderEntry, Problem> {
    let path = format!("providers.{name}");
    if name.is_empty() || name.contains('/') || name == OFFLINE {
        return Err(Problem::wrong_value(
            path,
            "under another name: without a slash, and not `offline`",
        ));
    }
    check_map(&path, value)?;
    let fields: ProviderFields = deserialize_section(&path, value)?;
    // A provider that is named like an API format has this format by default.
    let kind = fields.kind.or_else(|| ProviderKind::from_name(name));
    let kind = kind.unwrap_or(ProviderKind::OpenAiCompatible);
    if fields.profile.is_some() && !kind.accepts_profile() {
        return Err(Problem::wrong_value(
            format!("{path}.profile"),
            "given for servers of type openai-compatible or openai-responses only",
        ));
    }
    if fields.base_url.is_none() && kind == ProviderKind::OpenAiCompatible {
        return Err(Problem::wrong_value(
            format!("{path}.base_url"),
            "given: the address of the server, such as http://127.0.0.1:4000/v1",
        ));
    }
    let options = fields.options.as_ref();
    let options =
        options.map(|value| AdapterOptions::read_options(value, kind, &format!("{path}.options")));
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

fn deserialize_kind<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<ProviderKind>, D::Error> {
    let expected = format!("one of {}", KINDS.map(|(name, _)| name).join(", "));
    deserialize_converted(deserializer, &expected, |value| {
        ProviderKind::from_name(value.as_str()?)
    })
}

fn deserialize_profile<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Profile>, D::Error> {
    let expected = format!("one of {}", Profile::NAMES.join(", "));
    deserialize_converted(deserializer, &expected, |value| {
        Profile::named(value.as_str()?)
    })
}

fn deserialize_recovery_forms<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<RecoveryForms>, D::Error> {
    let known = RecoveryForm::ALL.map(RecoveryForm::as_str).join(", ");
    deserialize_converted(deserializer, &format!("a list of {known}"), |value| {
        let names = value.as_array()?.iter();
        names
            .map(|name| RecoveryForm::named(name.as_str()?))
            .collect()
    })
}

fn deserialize_tools_by_prompt<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<ToolsByPrompt>, D::Error> {
    deserialize_converted(deserializer, "true, false or auto", |value| match value {
        Value::Bool(true) => Some(ToolsByPrompt::Always),
        Value::Bool(false) => Some(ToolsByPrompt::Never),
        Value::String(word) if word == "auto" => Some(ToolsByPrompt::Auto),
        _ => None,
    })
}
