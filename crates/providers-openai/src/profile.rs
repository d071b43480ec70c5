//! Where servers that speak Chat Completions or Responses differ, as values.

use std::borrow::Cow;

use switchboard_domain::Delivery;
use switchboard_providers_common::text_tool_calls::{RecoveryForm, RecoveryForms};

/// What differs between servers of this wire. A value, not a type: a server that fits none of the
/// named ones is described by changing a field.
///
/// ```
/// use switchboard_providers_openai::Profile;
///
/// let old_server = Profile { stream_options: false, ..Profile::generic() };
/// assert!(!old_server.stream_options);
/// assert_eq!(Profile::named("mistral"), Some(Profile::mistral()));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Profile {
    /// The name used in messages and configuration.
    pub name: Cow<'static, str>,
    /// How the key is sent.
    pub auth: AuthHeader,
    /// The role under which instructions are sent.
    pub instructions_role: InstructionsRole,
    /// The field that limits the output.
    pub max_tokens_field: MaxTokensField,
    /// The field of [`Sampling::seed`](switchboard_domain::Sampling::seed).
    pub seed_field: SeedField,
    /// `tool_choice: {"type":"function",…}` exists.
    pub named_tool_choice: bool,
    /// `tool_choice: {"type":"allowed_tools",…}` exists.
    pub allowed_tools: bool,
    /// What the server makes of a forced tool choice.
    pub forced_tool_choice: ForcedToolChoice,
    /// `parallel_tool_calls` is accepted.
    pub parallel_tool_calls: bool,
    /// A tool's or an answer's schema may have `oneOf` and the like at its root, and an answer is held to
    /// whatever its schema says.
    pub root_combinators: bool,
    /// Tools whose schema can be said in the subset for it without a loss are declared with `strict`, so
    /// that calls are held to their schema; what `null` stands for then is left out of the input again. Off
    /// for all: the API makes a grammar of each schema that it has not seen, which can take long, and
    /// several calls in one answer may break out of it.
    pub strict_tools: bool,
    /// `stream_options.include_usage` is accepted; without it the usage may stay unknown.
    pub stream_options: bool,
    /// An answer in the form of a schema may be streamed; else it is asked for as a whole.
    pub streams_schemas: bool,
    /// How the amount of reasoning is said.
    pub reasoning_control: ReasoningControl,
    /// What becomes of the reasoning of earlier answers.
    pub reasoning_replay: ReasoningReplay,
    /// What a tool call's id may look like when it is sent back.
    pub tool_ids: ToolIdRule,
    /// On the Responses API, a tool's result may hold images and files. Where it may not, images
    /// follow in a message of their own, as they always do on Chat Completions.
    pub result_media: bool,
    /// On the Responses API, every message of the model has its type and holds `output_text` (llama.cpp: "Cannot
    /// determine type of 'item'"). The API's own types want an id then, so that what another model said
    /// is in the short form elsewhere.
    pub typed_answers: bool,
    /// On the Responses API, `text.format` holds the answer to a schema. Where it is ignored (llama.cpp, tried
    /// in 2026), the schema is sent as `response_format`, its name on Chat Completions.
    pub text_format: bool,
    /// On the Responses API, an answer that reached the output limit is `incomplete`. Where it is said to be
    /// `completed` all the same (llama.cpp, tried in 2026), the count of tokens tells.
    pub tells_incomplete: bool,
    /// The server runs OpenAI's own models under OpenAI's names, so that what is known of these
    /// (see [`capabilities`](crate::capabilities())) applies.
    pub openai_models: bool,
    /// On Chat Completions, the forms in which a model may write a tool call as text, to be turned into
    /// tool uses. A server that reads its models' calls itself needs none, and an answer that only
    /// looks like a call is safe from being taken for one.
    pub recovery: RecoveryForms,
    /// On Chat Completions, tools are described in the instructions and read from the text, whatever
    /// the server could do. A model that is known to have no tools gets them so in any case.
    pub tools_by_prompt: bool,
}

/// What local servers leave as text when a model's format is not the one they expect: all but
/// Pythonic calls, which look like code that the user asked for.
const LOCAL_FORMS: RecoveryForms = RecoveryForms::of(&[
    RecoveryForm::FencedJson,
    RecoveryForm::ToolCallTag,
    RecoveryForm::FunctionTag,
    RecoveryForm::BareJson,
    RecoveryForm::MistralToken,
    RecoveryForm::Granite,
    RecoveryForm::DeepSeek,
]);

impl Profile {
    /// Every name that [`Profile::named`] knows.
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

    /// The profile of that name; `None` for a name that is not in [`Profile::NAMES`].
    pub fn named(name: &str) -> Option<Self> {
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
            // It refuses to stream structured answers (litellm 1.109.1).
            "groq" => Self {
                streams_schemas: false,
                ..Self::generic_as("groq")
            },
            // No forced tool choice: its chat API has none to pass it on to.
            "ollama" => Self {
                forced_tool_choice: ForcedToolChoice::Unenforced,
                recovery: LOCAL_FORMS,
                ..Self::generic_as("ollama")
            },
            _ => return None,
        })
    }

    /// OpenAI itself.
    ///
    /// Read from the types of the official SDK, `openai` 3.52.0. The length of ids is reported by
    /// the API itself: "string too long. Expected a string with maximum length 40".
    pub const fn openai() -> Self {
        Self {
            name: Cow::Borrowed("openai"),
            auth: AuthHeader::Bearer,
            instructions_role: InstructionsRole::Developer,
            max_tokens_field: MaxTokensField::MaxCompletionTokens,
            seed_field: SeedField::Seed,
            named_tool_choice: true,
            allowed_tools: true,
            forced_tool_choice: ForcedToolChoice::Enforced,
            parallel_tool_calls: true,
            root_combinators: false,
            strict_tools: false,
            stream_options: true,
            streams_schemas: true,
            reasoning_control: ReasoningControl::Effort,
            reasoning_replay: ReasoningReplay::Never,
            tool_ids: ToolIdRule::MaxLength(40),
            result_media: true,
            typed_answers: false,
            text_format: true,
            tells_incomplete: true,
            openai_models: true,
            recovery: RecoveryForms::NONE,
            tools_by_prompt: false,
        }
    }

    /// A compatible server of which nothing more is known: what nearly all of them accept.
    pub const fn generic() -> Self {
        Self::generic_as("generic")
    }

    const fn generic_as(name: &'static str) -> Self {
        Self {
            name: Cow::Borrowed(name),
            auth: AuthHeader::Bearer,
            instructions_role: InstructionsRole::System,
            max_tokens_field: MaxTokensField::MaxTokens,
            seed_field: SeedField::Seed,
            named_tool_choice: true,
            allowed_tools: false,
            forced_tool_choice: ForcedToolChoice::Enforced,
            parallel_tool_calls: true,
            root_combinators: false,
            strict_tools: false,
            stream_options: true,
            streams_schemas: true,
            reasoning_control: ReasoningControl::Effort,
            reasoning_replay: ReasoningReplay::Never,
            // A proxy may pass the ids on to OpenAI.
            tool_ids: ToolIdRule::MaxLength(40),
            result_media: false,
            typed_answers: false,
            text_format: true,
            tells_incomplete: true,
            openai_models: false,
            recovery: RecoveryForms::NONE,
            tools_by_prompt: false,
        }
    }

    /// OpenAI's models on Azure. Deployments have names that somebody gave them, which may be those of other
    /// models, so that nothing is concluded from them. Older versions of its API lack what is newer; the
    /// base address may end in `/openai/v1` or in `/openai/deployments/<name>?api-version=<date>`.
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

    /// `DeepSeek` from V4 on, which thinks unless it is told not to.
    ///
    /// Its guide "Thinking Mode" (api-docs.deepseek.com/guides/thinking_mode): reasoning must come
    /// back once tools were called, and is ignored where it need not; `thinking` switches it. That
    /// a forced tool choice is refused meanwhile is reported in public issue threads, as is that
    /// `response_format` of type `json_schema` is refused (litellm#31466, llm-exe#662), which the catalogue
    /// knows of each of its models.
    pub fn deepseek() -> Self {
        Self {
            forced_tool_choice: ForcedToolChoice::RefusedWhileReasoning,
            reasoning_control: ReasoningControl::EffortAndThinking,
            reasoning_replay: ReasoningReplay::Required,
            ..Self::generic_as("deepseek")
        }
    }

    /// A LiteLLM proxy, which passes reasoning on to the models that want it back. It hides Gemini's
    /// thought signatures in the ids of calls (`call_…__thought__…`, litellm 1.109.1), so these go
    /// back at any length.
    pub fn litellm() -> Self {
        Self {
            reasoning_replay: ReasoningReplay::ToMinter,
            tool_ids: ToolIdRule::Any,
            ..Self::generic_as("litellm")
        }
    }

    /// llama.cpp's server: `required` may go unenforced, depending on the model's chat template.
    pub fn llamacpp() -> Self {
        Self {
            forced_tool_choice: ForcedToolChoice::Unenforced,
            typed_answers: true,
            text_format: false,
            tells_incomplete: false,
            root_combinators: true,
            reasoning_replay: ReasoningReplay::ToMinter,
            recovery: LOCAL_FORMS,
            ..Self::generic_as("llamacpp")
        }
    }

    /// Mistral, which refuses every field that it does not know ("Extra inputs are not permitted",
    /// for `stream_options` among others) and wants ids of nine letters and digits. The usage comes
    /// unasked.
    pub fn mistral() -> Self {
        Self {
            seed_field: SeedField::RandomSeed,
            stream_options: false,
            tool_ids: ToolIdRule::Alphanumeric(9),
            ..Self::generic_as("mistral")
        }
    }

    /// OpenRouter, which passes reasoning on to the models that want it back.
    pub fn openrouter() -> Self {
        Self {
            reasoning_replay: ReasoningReplay::ToMinter,
            ..Self::generic_as("openrouter")
        }
    }

    /// vLLM.
    pub fn vllm() -> Self {
        Self {
            root_combinators: true,
            reasoning_replay: ReasoningReplay::ToMinter,
            ..Self::generic_as("vllm")
        }
    }

    /// xAI, whose API reference (docs.x.ai) has `max_tokens` as deprecated. Its reasoning stays with it on
    /// Chat Completions; over Responses it goes back encrypted, as OpenAI's does.
    pub fn xai() -> Self {
        Self {
            max_tokens_field: MaxTokensField::MaxCompletionTokens,
            ..Self::generic_as("xai")
        }
    }
}

impl Profile {
    /// The same with another word on `strict_tools`, if there is one.
    pub(crate) fn with_strict_tools(&self, strict: Option<bool>) -> Cow<'_, Self> {
        match strict {
            Some(strict_tools) if strict_tools != self.strict_tools => Cow::Owned(Self {
                strict_tools,
                ..self.clone()
            }),
            _ => Cow::Borrowed(self),
        }
    }

    /// Whether an answer that is wanted so is asked for as a stream. `to_schema`: it is to be in the form
    /// of a schema.
    pub(crate) fn streams(&self, delivery: Delivery, to_schema: bool) -> bool {
        delivery != Delivery::Whole && (self.streams_schemas || !to_schema)
    }
}

/// How the key is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AuthHeader {
    /// `Authorization: Bearer`.
    Bearer,
    /// `api-key` (Azure).
    ApiKey,
}

/// The role under which instructions are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InstructionsRole {
    /// `system`, which every server knows.
    System,
    /// `developer`, its name since OpenAI's o1.
    Developer,
}

/// The field that limits the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MaxTokensField {
    /// `max_completion_tokens`; OpenAI's reasoning models refuse the older one.
    MaxCompletionTokens,
    /// `max_tokens`, which every other server knows.
    MaxTokens,
}

/// The field of a seed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SeedField {
    /// `seed`.
    Seed,
    /// `random_seed` (Mistral).
    RandomSeed,
}

/// How the amount of reasoning is said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReasoningControl {
    /// Not at all.
    None,
    /// `reasoning_effort`, with `none` for no reasoning.
    Effort,
    /// `reasoning_effort`, and `thinking: {"type": "disabled"}` for no reasoning (`DeepSeek`).
    EffortAndThinking,
}

/// What becomes of the reasoning of earlier answers. What another model wrote never goes back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReasoningReplay {
    /// It is left out with a warning: the server does not want it or may refuse the field.
    Never,
    /// It goes back under the name in which it came.
    ToMinter,
    /// As [`ToMinter`](Self::ToMinter), and an assistant message without reasoning gets a blank
    /// `reasoning_content`, since the server refuses a conversation in which one lacks it.
    Required,
}

/// What a server makes of a forced tool choice (`required` or a name).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ForcedToolChoice {
    /// It is honoured, as far as is known.
    Enforced,
    /// It is accepted, but the model may answer without a tool (llama.cpp). It is sent, and the
    /// outcome is relaxed.
    Unenforced,
    /// It is refused. `auto` is sent instead, and the outcome is relaxed.
    Refused,
    /// It is refused while the model reasons. Reasoning is switched off for it, unless the request
    /// asks for some: then `auto` is sent, and the outcome is relaxed.
    RefusedWhileReasoning,
}

/// What a tool call's id may look like. An id that breaks the rule, because another provider minted
/// it, is replaced on the wire by a short stable hash of it, in the call and in its result alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolIdRule {
    /// Anything.
    Any,
    /// At most so many bytes.
    MaxLength(usize),
    /// Exactly so many ASCII letters and digits (Mistral: 9); at most 13.
    Alphanumeric(usize),
}

impl ToolIdRule {
    /// The id as it may be sent.
    pub(crate) fn apply(self, id: &str) -> Cow<'_, str> {
        match self {
            Self::Any => Cow::Borrowed(id),
            Self::MaxLength(most) if id.len() <= most => Cow::Borrowed(id),
            Self::MaxLength(_) => Cow::Owned(format!("call_{}", digest(id))),
            Self::Alphanumeric(length)
                if id.len() == length && id.bytes().all(|byte| byte.is_ascii_alphanumeric()) =>
            {
                Cow::Borrowed(id)
            }
            Self::Alphanumeric(length) => {
                let digest = digest(id);
                let start = digest.len().saturating_sub(length);
                Cow::Owned(digest[start..].to_owned())
            }
        }
    }
}

/// 64-bit FNV-1a in 13 base-36 digits. It must be the same on every machine and in every release:
/// prompt caches need the same bytes again.
fn digest(text: &str) -> String {
    const DIGITS: &[u8; 36] = b"0123456789abcdefghijklmnopqrstuvwxyz";
    let mut hash = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
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
            assert_eq!(Profile::named(name).unwrap().name, *name);
        }
        assert_eq!(Profile::named("OpenAI"), None);
    }

    #[test]
    fn only_local_servers_leave_calls_as_text() {
        let with_forms: Vec<_> = Profile::NAMES
            .iter()
            .filter(|name| !Profile::named(name).unwrap().recovery.is_empty())
            .collect();
        assert_eq!(with_forms, [&"llamacpp", &"ollama"]);
        assert!(!LOCAL_FORMS.contains(RecoveryForm::Pythonic));
    }

    #[test]
    fn ids_that_fit_are_sent_as_they_are() {
        for (rule, id) in [
            (ToolIdRule::Any, "any thing at all"),
            (ToolIdRule::MaxLength(40), "call_abc"),
            (ToolIdRule::Alphanumeric(9), "a1B2c3D4e"),
        ] {
            assert_eq!(rule.apply(id), id);
        }
    }

    #[test]
    fn foreign_ids_are_replaced_by_the_same_short_one_each_time() {
        let long = "toolu_".repeat(12);
        let short = ToolIdRule::MaxLength(40).apply(&long);
        assert!(short.len() <= 40 && short.starts_with("call_"), "{short}");
        assert_eq!(short, ToolIdRule::MaxLength(40).apply(&long));
        assert_ne!(short, ToolIdRule::MaxLength(40).apply(&"toolv_".repeat(12)));
        let nine = ToolIdRule::Alphanumeric(9).apply("call_1");
        assert_eq!(nine.len(), 9);
        assert!(nine.bytes().all(|byte| byte.is_ascii_alphanumeric()));
        assert_ne!(nine, ToolIdRule::Alphanumeric(9).apply("call_2"));
    }
}
