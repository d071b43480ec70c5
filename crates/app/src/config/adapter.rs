//! What an entry under `providers:` says of its adapter beyond address, key and model.

use serde::de::DeserializeOwned;
use serde_json::Value;
use switchboard_providers_anthropic::MessagesOptions;
use switchboard_providers_common::text_tool_calls::{RecoveryForm, RecoveryForms};
use switchboard_providers_gemini::GeminiOptions;
use switchboard_providers_openai::{chat::ChatOptions, responses::ResponsesOptions};

use super::{
    document::Fields,
    error::Problem,
    providers::{ProviderEntry, ProviderKind},
};

/// What one wire has beyond the others, as its adapter reads it: built-in tools, cache marks and so
/// on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AdapterOptions {
    /// Anthropic's.
    Anthropic(MessagesOptions),
    /// Gemini's.
    Gemini(GeminiOptions),
    /// Those of Chat Completions.
    Chat(ChatOptions),
    /// Those of Responses.
    Responses(ResponsesOptions),
}

impl AdapterOptions {
    pub(super) fn read(value: &Value, kind: ProviderKind, place: &str) -> Result<Self, Problem> {
        match kind {
            ProviderKind::Anthropic => adapters(value, place).map(Self::Anthropic),
            ProviderKind::Gemini => adapters(value, place).map(Self::Gemini),
            ProviderKind::OpenAi | ProviderKind::OpenAiCompatible => {
                adapters(value, place).map(Self::Chat)
            }
            ProviderKind::OpenAiResponses => adapters(value, place).map(Self::Responses),
            ProviderKind::Ollama => Err(Problem::wrong(
                format!("{place}.options"),
                "left out: this wire has nothing beyond the others",
            )),
        }
    }
}

/// The adapter knows its options; its message names what is wrong, and no value.
fn adapters<T: DeserializeOwned>(value: &Value, place: &str) -> Result<T, Problem> {
    T::deserialize(value).map_err(|error| {
        Problem::wrong(
            format!("{place}.options"),
            format!("as the adapter has them: {error}"),
        )
    })
}

/// Tool calls as text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TextCalling {
    /// The forms in which calls are read from text; `None` leaves it to the profile or adapter.
    pub forms: Option<RecoveryForms>,
    /// Which models are told of tools in words; `None` leaves it to the profile or adapter.
    pub in_words: Option<InWords>,
}

/// Which models are told of tools in words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InWords {
    /// None.
    Never,
    /// Those that are known to have no tools.
    Auto,
    /// All.
    Always,
}

impl InWords {
    /// Whether a model is, of which is known whether it has `tools`.
    pub fn covers(self, tools: Option<bool>) -> bool {
        match self {
            Self::Never => false,
            Self::Auto => tools == Some(false),
            Self::Always => true,
        }
    }
}

impl TextCalling {
    pub(super) fn read(fields: &Fields<'_>, place: &str) -> Result<Self, Problem> {
        let forms = fields.names("text_calls")?.map(|names| {
            let forms: Option<RecoveryForms> =
                names.iter().map(|form| RecoveryForm::named(form)).collect();
            forms.ok_or_else(|| {
                let known = RecoveryForm::ALL.map(RecoveryForm::as_str).join(", ");
                Problem::wrong(format!("{place}.text_calls"), format!("a list of {known}"))
            })
        });
        let in_words = fields.read("tools_by_prompt", "true, false or auto", |value| {
            Some(match value {
                Value::Bool(true) => InWords::Always,
                Value::Bool(false) => InWords::Never,
                Value::String(word) if word == "auto" => InWords::Auto,
                _ => return None,
            })
        })?;
        Ok(Self {
            forms: forms.transpose()?,
            in_words,
        })
    }

    /// Whether nothing is said.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

impl ProviderEntry {
    /// Anthropic's options, if they are given.
    pub fn anthropic(&self) -> Option<&MessagesOptions> {
        match &self.options {
            Some(AdapterOptions::Anthropic(options)) => Some(options),
            _ => None,
        }
    }

    /// The options of Chat Completions, if they are given.
    pub fn chat(&self) -> Option<&ChatOptions> {
        match &self.options {
            Some(AdapterOptions::Chat(options)) => Some(options),
            _ => None,
        }
    }

    /// The options of Responses, if they are given.
    pub fn responses(&self) -> Option<&ResponsesOptions> {
        match &self.options {
            Some(AdapterOptions::Responses(options)) => Some(options),
            _ => None,
        }
    }

    /// Gemini's options, if they are given.
    pub fn gemini(&self) -> Option<&GeminiOptions> {
        match &self.options {
            Some(AdapterOptions::Gemini(options)) => Some(options),
            _ => None,
        }
    }
}
