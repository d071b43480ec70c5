//! `providers:`, the providers that were changed or added.

use serde_json::Value;
use switchboard_providers_openai::Profile;

use super::{
    adapter::{AdapterOptions, TextCalling},
    document::Fields,
    error::Problem,
};

/// One provider, by the name that stands before the slash of a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProviderEntry {
    /// Its name.
    pub name: String,
    /// Which wire it speaks.
    pub kind: ProviderKind,
    /// Its address; `None` takes the vendor's own or its variable.
    pub base_url: Option<String>,
    /// The variable that holds its key; `None` takes the vendor's own.
    pub api_key_env: Option<String>,
    /// The model that is meant where only the provider is given.
    pub model: Option<String>,
    /// How a compatible server differs from others.
    pub profile: Option<Profile>,
    /// What the wire has beyond the others: built-in tools, cache marks, effort.
    pub options: Option<AdapterOptions>,
    /// Tool calls that its models write as text, and tools told to them in words.
    pub text_calling: TextCalling,
    /// Whether its answers can come piece by piece; where they cannot, they are asked for as a whole.
    pub streams: bool,
}

impl ProviderKind {
    /// What `type:` calls it.
    pub fn name(self) -> &'static str {
        let known = KINDS.into_iter().find(|(_, kind)| *kind == self);
        known.map_or("", |(name, _)| name)
    }
}

impl ProviderEntry {
    /// A provider about which nothing is configured.
    pub fn plain(name: &str, kind: ProviderKind) -> Self {
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

/// The wires there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProviderKind {
    /// Anthropic Messages.
    Anthropic,
    /// OpenAI Chat Completions, by OpenAI itself.
    OpenAi,
    /// OpenAI Chat Completions, by any other server.
    OpenAiCompatible,
    /// OpenAI Responses.
    OpenAiResponses,
    /// Google Gemini.
    Gemini,
    /// Ollama's own wire.
    Ollama,
}

/// What `type:` may be.
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

/// The name under which the keyless planner is there always.
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

/// Whether servers of other vendors speak the wire, which differ.
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
        // A name that is a wire's own means that wire.
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
