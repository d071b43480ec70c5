//! Options of a provider's adapter, and tool calls as text.

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

/// Options that only one wire has, such as built-in tools and cache marks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum AdapterOptions {
    Anthropic(MessagesOptions),
    Gemini(GeminiOptions),
    Chat(ChatOptions),
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
                "absent: this wire has no options of its own",
            )),
        }
    }
}

/// Parses the options with the adapter's own types. Their errors contain no value.
fn adapters<T: DeserializeOwned>(value: &Value, place: &str) -> Result<T, Problem> {
    T::deserialize(value).map_err(|error| {
        Problem::wrong(
            format!("{place}.options"),
            format!("as the adapter has them: {error}"),
        )
    })
}

/// How the models of a provider call tools as text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct TextCalling {
    /// The forms of text that are parsed as calls. `None` uses the profile or the adapter.
    pub(crate) forms: Option<RecoveryForms>,
    /// Which models get tools described in the prompt. `None` uses the profile or the adapter.
    pub(crate) prompted_tools: Option<PromptedTools>,
}

/// Which models get tools described in the prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PromptedTools {
    Never,
    /// Models without tool support, according to the catalogue or the server.
    Auto,
    Always,
}

impl PromptedTools {
    /// Returns whether a model with this tool support gets tools in the prompt.
    pub(crate) fn covers(self, tools: Option<bool>) -> bool {
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
        let prompted_tools = fields.read("tools_by_prompt", "true, false or auto", |value| {
            Some(match value {
                Value::Bool(true) => PromptedTools::Always,
                Value::Bool(false) => PromptedTools::Never,
                Value::String(word) if word == "auto" => PromptedTools::Auto,
                _ => return None,
            })
        })?;
        Ok(Self {
            forms: forms.transpose()?,
            prompted_tools,
        })
    }

    pub(crate) fn is_default(self) -> bool {
        self == Self::default()
    }
}

impl ProviderEntry {
    pub(crate) fn anthropic(&self) -> Option<&MessagesOptions> {
        match &self.options {
            Some(AdapterOptions::Anthropic(options)) => Some(options),
            _ => None,
        }
    }

    pub(crate) fn chat(&self) -> Option<&ChatOptions> {
        match &self.options {
            Some(AdapterOptions::Chat(options)) => Some(options),
            _ => None,
        }
    }

    pub(crate) fn responses(&self) -> Option<&ResponsesOptions> {
        match &self.options {
            Some(AdapterOptions::Responses(options)) => Some(options),
            _ => None,
        }
    }

    pub(crate) fn gemini(&self) -> Option<&GeminiOptions> {
        match &self.options {
            Some(AdapterOptions::Gemini(options)) => Some(options),
            _ => None,
        }
    }
}
