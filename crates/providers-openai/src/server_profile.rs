//! Profiles of servers: the fields and features of OpenAI's APIs that each server supports.

use std::borrow::Cow;

use switchboard_domain::Delivery;
use switchboard_providers_common::{
    text_tool_calls::TextCallFormats, tool_use_ids::hash_tool_use_id,
};

/// The fields and features of OpenAI's APIs that one server supports, because compatible servers
/// differ. For a server without a profile here, change the fields of a similar profile.
///
/// ```
/// use switchboard_providers_openai::Profile;
///
/// let old_server = Profile { stream_options: false, ..Profile::generic() };
/// assert!(!old_server.stream_options);
/// assert_eq!(Profile::from_name("mistral"), Some(Profile::mistral()));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Profile {
    /// Name of the profile in the configuration and in error messages.
    pub name: Cow<'static, str>,
    /// Header that carries the API key.
    pub auth: AuthHeader,
    /// Role of messages with instructions.
    pub instructions_role: InstructionsRole,
    /// Request field that limits the number of output tokens.
    pub max_tokens_field: MaxTokensField,
    /// Field that carries [`Sampling::seed`](switchboard_domain::Sampling::seed).
    pub seed_field: SeedField,
    /// Whether the server supports `tool_choice: {"type":"allowed_tools",…}`.
    pub allowed_tools: bool,
    /// How the server handles a tool choice that forces a tool call.
    pub forced_tool_choice: ForcedToolChoiceSupport,
    /// Whether the server accepts schemas with combinators such as `oneOf` at the root, and
    /// enforces any JSON Schema of a structured answer. If `true`, answer schemas are sent
    /// unchanged.
    pub root_combinators: bool,
    /// Whether tools are declared with `strict: true` if OpenAI's strict subset of JSON Schema can
    /// express their schemas. `false` in all profiles, for two reasons: the API compiles each new
    /// schema, which can take long, and does not enforce the schemas if an answer has several
    /// calls.
    pub strict_tools: bool,
    /// Whether the server supports the request field `stream_options.include_usage`. If `false`,
    /// the field is omitted, and the token usage of a streamed answer may be unknown.
    pub stream_options: bool,
    /// Whether the server can stream an answer that must match a JSON Schema. If `false`, such an
    /// answer is requested without streaming.
    pub streams_schemas: bool,
    /// Request fields that set the reasoning effort and turn reasoning off.
    pub reasoning_control: ReasoningControl,
    /// Whether the reasoning of earlier answers is sent back to the model.
    pub reasoning_replay: ReasoningReplay,
    /// Rule of the server for the ids of tool calls.
    pub tool_ids: ToolCallIdRule,
    /// Responses API only: whether a tool result may contain images and files. Otherwise images are
    /// sent in the next user message, as always on Chat Completions.
    pub result_media: bool,
    /// Responses API only: whether an assistant message without an id is sent with `type: message`
    /// and content of the type `output_text`. llama.cpp requires the type ("Cannot determine type
    /// of 'item'"). Other servers get the message without a type, because with a type OpenAI's SDK
    /// requires an id, and messages of other models have no id.
    pub typed_answers: bool,
    /// Responses API only: whether `text.format` is supported. Otherwise the schema is sent as
    /// `response_format`, the field of Chat Completions (llama.cpp, tested in 2026).
    pub text_format: bool,
    /// Responses API only: whether an answer that reached the output limit has the status
    /// `incomplete`. If `false`, its status is `completed`, and the answer counts as truncated if
    /// its number of output tokens reaches the limit (llama.cpp, tested in 2026).
    pub reports_incomplete: bool,
    /// Whether the server offers OpenAI's own models under OpenAI's names. If `true`, the rules of
    /// OpenAI's model series apply, for example to [`capabilities`](crate::capabilities()).
    pub openai_models: bool,
    /// Chat Completions only: formats in which a tool call that a model writes as text becomes a
    /// tool use. Empty for servers that parse such text themselves.
    pub recovery: TextCallFormats,
    /// Chat Completions only: whether tools are described in the instructions and tool calls are
    /// parsed from the text of the answer, for all models of the server. If `false`, this is done
    /// only for models without tool use.
    pub tools_by_prompt: bool,
}

impl Profile {
    /// Names of all profiles.
    pub const NAMES: &[&str] = &[
        "openai",
        "generic",
        "azure",
        "deepseek",
        "groq",
        "litellm",
        "llamacpp",
        "mistral",
        "ollama",
        "openrouter",
        "vllm",
        "xai",
    ];

    /// Returns a profile by its name, or `None` for a name that is not in [`Profile::NAMES`].
    pub fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "openai" => Self::openai(),
            "generic" => Self::generic(),
            "azure" => Self::azure(),
            "deepseek" => Self::deepseek(),
            "litellm" => Self::litellm(),
            "llamacpp" => Self::llamacpp(),
            "mistral" => Self::mistral(),
            "openrouter" => Self::openrouter(),
            "vllm" => Self::vllm(),
            "xai" => Self::xai(),
            // Groq refuses to stream structured answers (litellm 1.109.1).
            "groq" => Self {
                streams_schemas: false,
                ..Self::generic_with_name("groq")
            },
            // Ollama ignores a forced tool choice.
            "ollama" => Self {
                forced_tool_choice: ForcedToolChoiceSupport::Unenforced,
                recovery: TextCallFormats::LOCAL_SERVERS,
                ..Self::generic_with_name("ollama")
            },
            _ => return None,
        })
    }

    /// Returns the profile of OpenAI.
    ///
    /// Sources: the types of the official SDK, `openai` 3.52.0, and, for the maximum length of tool
    /// call ids, an error message of the API: "string too long. Expected a string with maximum
    /// length 40".
    pub fn openai() -> Self {
        Self {
            instructions_role: InstructionsRole::Developer,
            max_tokens_field: MaxTokensField::MaxCompletionTokens,
            allowed_tools: true,
            result_media: true,
            openai_models: true,
            ..Self::generic_with_name("openai")
        }
    }

    /// Returns the profile of an unknown compatible server. It uses only features that nearly all
    /// compatible servers have.
    pub fn generic() -> Self {
        Self::generic_with_name("generic")
    }

    fn generic_with_name(name: &'static str) -> Self {
        Self {
            name: Cow::Borrowed(name),
            auth: AuthHeader::Bearer,
            instructions_role: InstructionsRole::System,
            max_tokens_field: MaxTokensField::MaxTokens,
            seed_field: SeedField::Seed,
            allowed_tools: false,
            forced_tool_choice: ForcedToolChoiceSupport::Enforced,
            root_combinators: false,
            strict_tools: false,
            stream_options: true,
            streams_schemas: true,
            reasoning_control: ReasoningControl::Effort,
            reasoning_replay: ReasoningReplay::Never,
            // This is OpenAI's limit. The server may be a proxy that forwards requests to OpenAI.
            tool_ids: ToolCallIdRule::MaxLength(40),
            result_media: false,
            typed_answers: false,
            text_format: true,
            reports_incomplete: true,
            openai_models: false,
            recovery: TextCallFormats::NONE,
            tools_by_prompt: false,
        }
    }

    /// Returns the profile of Azure.
    ///
    /// The name of a model is the name of its deployment, which is arbitrary, so the capabilities
    /// of the model are unknown. The profile does not use the role `developer` and `allowed_tools`,
    /// because older API versions lack newer features. The base address ends with `/openai/v1` or
    /// with `/openai/deployments/<name>?api-version=<date>`.
    pub fn azure() -> Self {
        Self {
            name: Cow::Borrowed("azure"),
            auth: AuthHeader::ApiKey,
            instructions_role: InstructionsRole::System,
            allowed_tools: false,
            openai_models: false,
            ..Self::openai()
        }
    }

    /// Returns the profile of `DeepSeek` V4 and later, which reasons by default.
    ///
    /// Source: the guide "Thinking Mode" (api-docs.deepseek.com/guides/thinking_mode). After tool
    /// calls the server requires the reasoning of earlier answers. The request field `thinking` can
    /// disable reasoning. Public issue threads report that a forced tool choice is refused with
    /// reasoning, and that `response_format` of type `json_schema` is refused (litellm#31466,
    /// llm-exe#662).
    pub fn deepseek() -> Self {
        Self {
            forced_tool_choice: ForcedToolChoiceSupport::RefusedWhileReasoning,
            reasoning_control: ReasoningControl::EffortAndThinking,
            reasoning_replay: ReasoningReplay::Required,
            ..Self::generic_with_name("deepseek")
        }
    }

    /// Returns the profile of a LiteLLM proxy, which forwards reasoning. It stores Gemini's thought
    /// signatures in the ids of calls (`call_…__thought__…`, litellm 1.109.1), so ids may have any
    /// length.
    pub fn litellm() -> Self {
        Self {
            reasoning_replay: ReasoningReplay::ToCreator,
            tool_ids: ToolCallIdRule::Any,
            ..Self::generic_with_name("litellm")
        }
    }

    /// Returns the profile of llama.cpp. With some chat templates, the server does not enforce the
    /// tool choice `required`.
    pub fn llamacpp() -> Self {
        Self {
            forced_tool_choice: ForcedToolChoiceSupport::Unenforced,
            typed_answers: true,
            text_format: false,
            reports_incomplete: false,
            root_combinators: true,
            reasoning_replay: ReasoningReplay::ToCreator,
            recovery: TextCallFormats::LOCAL_SERVERS,
            ..Self::generic_with_name("llamacpp")
        }
    }

    /// Returns the profile of Mistral, which refuses unknown fields such as `stream_options`
    /// ("Extra inputs are not permitted") and requires tool call ids of nine letters and digits.
    /// Its streams contain the token usage by default.
    pub fn mistral() -> Self {
        Self {
            seed_field: SeedField::RandomSeed,
            stream_options: false,
            tool_ids: ToolCallIdRule::Alphanumeric(9),
            ..Self::generic_with_name("mistral")
        }
    }

    /// Returns the profile of OpenRouter, which forwards the reasoning of its models.
    pub fn openrouter() -> Self {
        Self {
            reasoning_replay: ReasoningReplay::ToCreator,
            ..Self::generic_with_name("openrouter")
        }
    }

    /// Returns the profile of vLLM.
    pub fn vllm() -> Self {
        Self {
            root_combinators: true,
            reasoning_replay: ReasoningReplay::ToCreator,
            ..Self::generic_with_name("vllm")
        }
    }

    /// Returns the profile of xAI, whose API reference (docs.x.ai) deprecates `max_tokens`. Its
    /// Chat Completions API does not accept earlier reasoning.
    pub fn xai() -> Self {
        Self {
            max_tokens_field: MaxTokensField::MaxCompletionTokens,
            ..Self::generic_with_name("xai")
        }
    }
}

impl Profile {
    /// Returns the profile with `strict` as `strict_tools`, or unchanged if `strict` is `None`.
    pub(crate) fn with_strict_tools(&self, strict: Option<bool>) -> Cow<'_, Self> {
        match strict {
            Some(strict_tools) if strict_tools != self.strict_tools => Cow::Owned(Self {
                strict_tools,
                ..self.clone()
            }),
            _ => Cow::Borrowed(self),
        }
    }

    /// Returns whether the request asks the server to stream the answer. The request asks for a
    /// whole answer if `delivery` is [`Delivery::Whole`], or if the answer has a schema and the
    /// server cannot stream such answers.
    pub(crate) fn should_stream_answer(&self, delivery: Delivery, has_schema: bool) -> bool {
        delivery != Delivery::Whole && (self.streams_schemas || !has_schema)
    }
}

/// HTTP header that a server uses for the API key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AuthHeader {
    /// The key is sent in the header `Authorization: Bearer`.
    Bearer,
    /// The key is sent in the header `api-key` (Azure).
    ApiKey,
}

/// Role that a server uses for messages with instructions for the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InstructionsRole {
    /// The role `system`, which every server supports.
    System,
    /// The role `developer`, which OpenAI uses since o1.
    Developer,
}

/// Request field that a server uses to limit the number of output tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MaxTokensField {
    /// The field `max_completion_tokens`. OpenAI's reasoning models refuse the older field
    /// `max_tokens`.
    MaxCompletionTokens,
    /// The field `max_tokens`, which all models accept except for OpenAI's reasoning models.
    MaxTokens,
}

/// Request field that a server uses for the sampling seed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SeedField {
    /// The seed is sent in the field `seed`.
    Seed,
    /// The seed is sent in the field `random_seed` (Mistral).
    RandomSeed,
}

/// Request fields that a server uses to control a model's reasoning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReasoningControl {
    /// The field `reasoning_effort`, where `none` turns reasoning off.
    Effort,
    /// The field `reasoning_effort`, and `thinking: {"type": "disabled"}` to turn reasoning off
    /// (`DeepSeek`).
    EffortAndThinking,
}

/// Whether the reasoning of earlier answers is sent back to the model. Reasoning of other models is
/// never sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReasoningReplay {
    /// Reasoning is dropped with a warning, because the server may refuse the message fields that
    /// carry reasoning.
    Never,
    /// Reasoning is sent back to the model that created it, in the field in which it arrived.
    ToCreator,
    /// Reasoning is sent back as with [`ToCreator`](Self::ToCreator). Unless the request turns
    /// reasoning off, an assistant message without `reasoning_content` gets a blank one, because
    /// the server requires the field.
    Required,
}

/// Support of a server for a forced tool choice: `required` or the name of a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ForcedToolChoiceSupport {
    /// The server enforces a forced tool choice, as far as its documentation and reports show.
    Enforced,
    /// The server accepts a forced tool choice without enforcing it (llama.cpp). The choice is
    /// sent, and its outcome is [`Relaxed`](switchboard_domain::ToolChoiceOutcome::Relaxed).
    Unenforced,
    /// The server refuses a forced tool choice while the model reasons. The request then turns
    /// reasoning off, unless the caller asked for reasoning. In that case `auto` is sent instead of
    /// the forced choice, and the outcome of the choice is
    /// [`Relaxed`](switchboard_domain::ToolChoiceOutcome::Relaxed).
    RefusedWhileReasoning,
}

/// Rule for valid ids of tool calls. An id that breaks the rule, for example because another
/// provider created it, is replaced by a hash of the id, both in the call and in its result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolCallIdRule {
    /// Ids of tool calls may be any text.
    Any,
    /// Ids of tool calls have at most this number of bytes. A longer id is replaced by `call_` and
    /// a hash, together 18 bytes.
    MaxLength(usize),
    /// Ids of tool calls have exactly this number of ASCII letters and digits (Mistral: 9). The
    /// number must not exceed 13, the length of the hash that replaces other ids.
    Alphanumeric(usize),
}

impl ToolCallIdRule {
    /// Returns `id` if the rule allows it, otherwise a hash of `id` that the rule allows.
    pub(crate) fn to_valid_call_id(self, id: &str) -> Cow<'_, str> {
        match self {
            Self::Any => Cow::Borrowed(id),
            Self::MaxLength(maximum) if id.len() <= maximum => Cow::Borrowed(id),
            Self::MaxLength(_) => Cow::Owned(format!("call_{}", hash_to_base36(id))),
            Self::Alphanumeric(length)
                if id.len() == length && id.bytes().all(|byte| byte.is_ascii_alphanumeric()) =>
            {
                Cow::Borrowed(id)
            }
            Self::Alphanumeric(length) => {
                let digest = hash_to_base36(id);
                let start = digest.len().saturating_sub(length);
                Cow::Owned(digest[start..].to_owned())
            }
        }
    }
}

/// Returns the hash of a call id in 13 base-36 digits.
fn hash_to_base36(id: &str) -> String {
    const DIGITS: &[u8; 36] = b"0123456789abcdefghijklmnopqrstuvwxyz";
    let mut hash = hash_tool_use_id(id);
    let mut digits = [b'0'; 13];
    for digit in digits.iter_mut().rev() {
        *digit = DIGITS[usize::try_from(hash % 36).unwrap_or(0)];
        hash /= 36;
    }
    digits.iter().copied().map(char::from).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_profile_has_its_name() {
        for name in Profile::NAMES {
            assert_eq!(Profile::from_name(name).unwrap().name, *name);
        }
        assert_eq!(Profile::from_name("OpenAI"), None);
    }

    #[test]
    fn only_local_servers_need_the_recovery_of_calls() {
        let with_forms: Vec<_> = Profile::NAMES
            .iter()
            .filter(|name| !Profile::from_name(name).unwrap().recovery.is_empty())
            .collect();
        assert_eq!(with_forms, [&"llamacpp", &"ollama"]);
    }

    #[test]
    fn valid_ids_are_sent_unchanged() {
        for (rule, id) in [
            (ToolCallIdRule::Any, "any thing at all"),
            (ToolCallIdRule::MaxLength(40), "call_abc"),
            (ToolCallIdRule::Alphanumeric(9), "a1B2c3D4e"),
        ] {
            assert_eq!(rule.to_valid_call_id(id), id);
        }
    }

    #[test]
    fn an_invalid_id_is_always_replaced_by_the_same_valid_one() {
        let long = "toolu_".repeat(12);
        let short = ToolCallIdRule::MaxLength(40).to_valid_call_id(&long);
        assert!(short.len() <= 40 && short.starts_with("call_"), "{short}");
        assert_eq!(short, ToolCallIdRule::MaxLength(40).to_valid_call_id(&long));
        assert_ne!(
            short,
            ToolCallIdRule::MaxLength(40).to_valid_call_id(&"toolv_".repeat(12))
        );
        let nine = ToolCallIdRule::Alphanumeric(9).to_valid_call_id("call_1");
        assert_eq!(nine.len(), 9);
        assert!(nine.bytes().all(|byte| byte.is_ascii_alphanumeric()));
        assert_ne!(
            nine,
            ToolCallIdRule::Alphanumeric(9).to_valid_call_id("call_2")
        );
    }
}
