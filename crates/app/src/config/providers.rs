//! `providers:`, the providers that were changed or added.

use serde_json::Value;
use switchboard_providers_openai::Profile;

use super::{document::Fields, error::Problem};

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
}

/// What `type:` may be.
const KINDS: [(&str, ProviderKind); 3] = [
    ("anthropic", ProviderKind::Anthropic),
    ("openai", ProviderKind::OpenAi),
    ("openai-compatible", ProviderKind::OpenAiCompatible),
];

const KEYS: [&str; 5] = ["type", "base_url", "api_key_env", "model", "profile"];

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
        (None, "anthropic") => ProviderKind::Anthropic,
        (None, "openai") => ProviderKind::OpenAi,
        (None, _) => ProviderKind::OpenAiCompatible,
    };
    let base_url = fields.text("base_url")?;
    let profile = match fields.text("profile")? {
        None => None,
        Some(_) if kind != ProviderKind::OpenAiCompatible => {
            return Err(Problem::wrong(
                format!("{place}.profile"),
                "given for servers of type openai-compatible only",
            ));
        }
        Some(name) => Some(Profile::named(&name).ok_or_else(|| {
            Problem::wrong(
                format!("{place}.profile"),
                format!("one of {}", Profile::NAMES.join(", ")),
            )
        })?),
    };
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
    })
}
