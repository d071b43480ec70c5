//! Configuration section `providers`: additional providers, and changes to built-in ones.

use std::{
    num::{NonZero, NonZeroU32},
    time::Duration,
};

use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};
use switchboard_providers_anthropic::MessagesOptions;
use switchboard_providers_common::{
    RetryPolicy,
    text_tool_calls::{TextCallFormat, TextCallFormats},
};
use switchboard_providers_gemini::GeminiOptions;
use switchboard_providers_ollama::ToolsByPrompt;
use switchboard_providers_openai::{Profile, chat::ChatOptions, responses::ResponsesOptions};

use super::{
    error::Problem,
    field_parsing::{
        check_is_map, deserialize_converted, deserialize_http_url, deserialize_or_default,
        deserialize_seconds, deserialize_section, deserialize_text,
    },
};

/// A model provider in the configuration: its API format, address, key and options.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(default, deny_unknown_fields, expecting = "a map of settings")]
pub(crate) struct ProviderEntry {
    #[serde(skip)]
    pub(crate) name: String,
    /// API format of the provider, such as Chat Completions.
    #[serde(rename = "type", deserialize_with = "deserialize_kind")]
    pub(crate) kind: ProviderKind,
    /// Base URL of the API. `None` uses the vendor's environment variable or default address.
    #[serde(deserialize_with = "deserialize_http_url")]
    pub(crate) base_url: Option<String>,
    /// Environment variable with the API key. `None` uses the variable of the vendor's SDK.
    #[serde(deserialize_with = "deserialize_text")]
    pub(crate) api_key_env: Option<String>,
    /// Default model of the provider, for a `--model` that names only the provider.
    #[serde(deserialize_with = "deserialize_text")]
    pub(crate) model: Option<String>,
    /// Profile that describes how an OpenAI-compatible server differs from OpenAI.
    #[serde(deserialize_with = "deserialize_profile")]
    pub(crate) profile: Option<Profile>,
    /// JSON value of the key `options`, before it is parsed as `adapter_options`.
    pub(crate) options: Option<Value>,
    /// Parsed options of the provider's API format, such as built-in tools and prompt caching.
    #[serde(skip)]
    pub(crate) adapter_options: Option<AdapterOptions>,
    /// Formats that are recognized as tool calls in the answer text. `None` uses the default of the
    /// profile or of the API format.
    #[serde(deserialize_with = "deserialize_text_call_formats")]
    pub(crate) text_calls: Option<TextCallFormats>,
    /// Whether tools are described in the prompt instead of in the tool list of the request:
    /// always, never, or only for models without tool support. `None` uses the default of the
    /// profile or of the API format.
    #[serde(deserialize_with = "deserialize_tools_by_prompt")]
    pub(crate) tools_by_prompt: Option<ToolsByPrompt>,
    /// Whether the provider's server can stream answers. `None` means that it can.
    pub(crate) stream: Option<bool>,
    /// Settings for retries of failed requests.
    #[serde(deserialize_with = "deserialize_or_default")]
    pub(crate) retry: RetryConfig,
}

/// Settings for retries of failed requests to a provider. A setting is `None` if it is not
/// configured.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(default, deny_unknown_fields, expecting = "a map of settings")]
pub(crate) struct RetryConfig {
    max_attempts: Option<NonZeroU32>,
    #[serde(deserialize_with = "deserialize_seconds")]
    min_delay: Option<Duration>,
    #[serde(deserialize_with = "deserialize_seconds")]
    max_delay: Option<Duration>,
    #[serde(deserialize_with = "deserialize_seconds")]
    max_retry_after: Option<Duration>,
}

/// API format that a model provider uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum ProviderKind {
    Anthropic,
    /// Chat Completions as the vendor OpenAI provides it.
    OpenAi,
    /// Chat Completions as servers of other vendors provide it. This is the default.
    #[default]
    OpenAiCompatible,
    OpenAiResponses,
    Gemini,
    Ollama,
}

/// Values of the key `type`. Their order is also the order of the built-in providers: if the user
/// names no model, the first provider with an API key and a default model is used.
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

    /// Returns whether the key `profile` is allowed for this API format. A profile describes how a
    /// server differs from OpenAI, so only formats that several vendors use allow this key.
    fn accepts_profile_setting(self) -> bool {
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
    fn parse_options(value: &Value, kind: ProviderKind, path: &str) -> Result<Self, Problem> {
        let parsed = match kind {
            ProviderKind::Anthropic => deserialize_section(path, value).map(Self::Anthropic),
            ProviderKind::Gemini => deserialize_section(path, value).map(Self::Gemini),
            ProviderKind::OpenAi | ProviderKind::OpenAiCompatible => {
                deserialize_section(path, value).map(Self::Chat)
            }
            ProviderKind::OpenAiResponses => deserialize_section(path, value).map(Self::Responses),
            ProviderKind::Ollama => Err(Problem::wrong_value(
                path,
                "removed: this provider type has no options",
            )),
        };
        parsed.map_err(|problem| match problem {
            Problem::UnknownKey { path, .. } if path.ends_with(".server_tools") => {
                let remedy = "removed: only the types anthropic, gemini and openai-responses have \
                              built-in tools such as web_search";
                Problem::wrong_value(path, remedy)
            }
            Problem::WrongValue { path, expected } if path.ends_with("].type") => {
                let other = "any other built-in tool is {type: raw, declaration: {…}}";
                Problem::wrong_value(path, format!("{expected}; {other}"))
            }
            problem => problem,
        })
    }
}

impl ProviderEntry {
    /// Returns a provider of this API format with default settings.
    pub(crate) fn with_default_settings(name: &str, kind: ProviderKind) -> Self {
        Self {
            name: name.to_owned(),
            kind,
            ..Self::default()
        }
    }

    /// Returns the configured retry policy. Settings that are not configured have their defaults.
    pub(crate) fn retry_policy(&self) -> RetryPolicy {
        let (retry, default) = (&self.retry, RetryPolicy::default());
        let max_attempts = retry.max_attempts.map(NonZero::get);
        RetryPolicy {
            max_attempts: max_attempts.unwrap_or(default.max_attempts),
            min_delay: retry.min_delay.unwrap_or(default.min_delay),
            max_delay: retry.max_delay.unwrap_or(default.max_delay),
            max_retry_after: retry.max_retry_after.unwrap_or(default.max_retry_after),
        }
    }
}

/// Name of the built-in provider whose only model is the demo model.
pub(crate) const OFFLINE: &str = "offline";

pub(super) fn read_providers(value: &Value) -> Result<Vec<ProviderEntry>, Problem> {
    let entries: Map<String, Value> = deserialize_section("providers", value)
        .map_err(|_| Problem::wrong_value("providers", "a map of providers by name"))?;
    let entries = entries
        .iter()
        .map(|(name, value)| parse_provider_entry(name, value));
    entries.collect()
}

fn parse_provider_entry(name: &str, value: &Value) -> Result<ProviderEntry, Problem> {
    let path = format!("providers.{name}");
    if name.is_empty() || name.contains('/') || name == OFFLINE {
        return Err(Problem::wrong_value(
            path,
            "renamed: a provider name has no slash and is not `offline`",
        ));
    }
    check_is_map(&path, value)?;
    let mut fields = value.clone();
    if fields["type"].is_null() {
        // Without the key `type`, a provider whose name is an API format, such as `gemini`, uses
        // this format.
        let kind = ProviderKind::from_name(name).unwrap_or_default();
        fields["type"] = kind.name().into();
    }
    let mut entry: ProviderEntry = deserialize_section(&path, &fields)?;
    name.clone_into(&mut entry.name);
    if entry.profile.is_some() && !entry.kind.accepts_profile_setting() {
        return Err(Problem::wrong_value(
            format!("{path}.profile"),
            "set only for the types openai-compatible and openai-responses",
        ));
    }
    if entry.base_url.is_none() && entry.kind == ProviderKind::OpenAiCompatible {
        return Err(Problem::wrong_value(
            format!("{path}.base_url"),
            "set to the address of the server, such as http://127.0.0.1:4000/v1",
        ));
    }
    if let Some(options) = entry.options.take() {
        let path = format!("{path}.options");
        entry.adapter_options = Some(AdapterOptions::parse_options(&options, entry.kind, &path)?);
    }
    Ok(entry)
}

fn deserialize_kind<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ProviderKind, D::Error> {
    let expected = format!("one of {}", KINDS.map(|(name, _)| name).join(", "));
    let kind = deserialize_converted(deserializer, &expected, |value| {
        ProviderKind::from_name(value.as_str()?)
    });
    Ok(kind?.unwrap_or_default())
}

fn deserialize_profile<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Profile>, D::Error> {
    let expected = format!("one of {}", Profile::NAMES.join(", "));
    deserialize_converted(deserializer, &expected, |value| {
        Profile::from_name(value.as_str()?)
    })
}

fn deserialize_text_call_formats<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<TextCallFormats>, D::Error> {
    let known = TextCallFormat::ALL.map(TextCallFormat::as_str).join(", ");
    deserialize_converted(deserializer, &format!("a list of {known}"), |value| {
        let names = value.as_array()?.iter();
        names
            .map(|name| TextCallFormat::from_name(name.as_str()?))
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
