//! The features and limits of each Claude model, in one table.
//!
//! Sources: the model catalogue of litellm 1.109.1, the model table and documentation of
//! `@ai-sdk/anthropic` 3.0.138, the types of the official SDK (anthropic 2.11.0), and error
//! messages of the API in public issue threads (oh-my-pi#12939, aiquila#410,
//! opencode-anthropic-auth#159, geode#632). A model that is not in the table has no known limits.
//! The API decides for it.

use serde::{Deserialize, Serialize};

/// The features and limits of a Claude model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ModelRules {
    /// Maximum number of tokens in the prompt and the answer together.
    pub context_window: u64,
    /// Maximum number of tokens in the answer, including thinking.
    pub max_output_tokens: u64,
    /// Whether the model accepts PDF documents as input.
    pub documents: bool,
    /// The model's support for `temperature` and `top_p` in API versions that accept them.
    pub sampling: SamplingSupport,
    /// The thinking mode of the model. `None` for a model without thinking.
    pub thinking: Option<Thinking>,
    /// Whether the model needs the beta `interleaved-thinking-2025-05-14` to think between tool
    /// calls. Models with adaptive thinking do not need it.
    pub interleaves_by_beta: bool,
    /// The values of `output_config.effort` that the model accepts, from low to high. Empty if the
    /// model refuses the field.
    pub efforts: &'static [Effort],
    /// Whether the model accepts a `tool_choice` of type `any` or `tool`. `None` (unknown) if
    /// reports about the model contradict each other.
    pub forced_tool_choice: Option<bool>,
    /// Whether the model supports `output_config.format` and `strict` tools.
    pub structured_output: bool,
    /// Whether the conversation may end with an assistant message, which the model then continues.
    pub prefill: bool,
    /// Whether the model supports system messages (`role: system`) within a conversation.
    pub later_instructions: bool,
    /// The newest known web search version that the model supports.
    pub web_search: WebSearchVersion,
}

/// The support of a model for `temperature` and `top_p`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SamplingSupport {
    /// The model accepts `temperature` and `top_p` together.
    Both,
    /// The model accepts `temperature` or `top_p`, but not both in one request.
    One,
    /// The model refuses `temperature` and `top_p`.
    Refused,
}

/// The thinking mode of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Thinking {
    /// Thinking is requested with the type `enabled` and a budget in tokens.
    Budget,
    /// Thinking is requested with the type `adaptive`. The model decides how much it thinks, and
    /// `output_config.effort` guides it.
    Adaptive {
        /// The smallest amount of thinking that a request can select.
        minimum: MinimumThinking,
    },
}

/// The smallest amount of thinking that a request can select.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MinimumThinking {
    /// A request can turn thinking off, with the thinking type `disabled`.
    Disabled,
    /// A request can reduce thinking to short notes between tool calls, with the thinking type
    /// `between_tools`.
    BetweenTools,
    /// A request cannot turn thinking off, and can reduce it only with the effort `low`.
    LowEffort,
}

/// The value of `output_config.effort`, which controls how thoroughly the model works on an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Effort {
    /// The lowest effort, `low` in the API.
    Low,
    /// A medium effort, `medium` in the API.
    Medium,
    /// A high effort, `high` in the API, which is the API's default.
    High,
    /// An effort above `high`, `xhigh` in the API.
    XHigh,
    /// The highest effort, `max` in the API.
    Max,
}

impl Effort {
    /// All effort levels, from the lowest to the highest.
    pub const ALL: [Self; 5] = [Self::Low, Self::Medium, Self::High, Self::XHigh, Self::Max];

    /// Returns the name of the effort level in the API.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
            Self::XHigh => "xhigh",
            Self::Max => "max",
        }
    }
}

/// A version of the web search tool that the API runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WebSearchVersion {
    /// The date in the type of the tool, such as `20260318`.
    pub version: &'static str,
    /// Whether the tool must be declared with `allowed_callers: ["direct"]`, because the model does
    /// not support calls of the tool from code that the model runs.
    pub direct_only: bool,
}

/// A family of Claude models.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ModelFamily {
    /// Models named `claude-opus-…`.
    Opus,
    /// Models named `claude-sonnet-…`.
    Sonnet,
    /// Models named `claude-haiku-…`.
    Haiku,
    /// Models named `claude-fable-…`.
    Fable,
    /// Models named `claude-mythos-…`.
    Mythos,
}

/// A row of the model table [`TABLE`].
#[derive(Debug, Clone, Copy)]
pub struct ModelRow {
    /// The model family of the row. `None` for all families.
    pub family: Option<ModelFamily>,
    /// The first model version (major, minor) to which the row applies.
    pub since: (u32, u32),
    /// The features and limits of the models in this row.
    pub rules: ModelRules,
}

/// The oldest version of the web search tool. It is also used for models that are not in [`TABLE`].
pub(crate) const DEFAULT_WEB_SEARCH: WebSearchVersion = WebSearchVersion {
    version: "20250305",
    direct_only: false,
};
const NEWEST_WEB_SEARCH: WebSearchVersion = WebSearchVersion {
    version: "20260318",
    direct_only: false,
};

const UP_TO_HIGH_EFFORT: &[Effort] = &[Effort::Low, Effort::Medium, Effort::High];
const ALL_EFFORTS_BUT_XHIGH: &[Effort] = &[Effort::Low, Effort::Medium, Effort::High, Effort::Max];
const ALL_EFFORTS: &[Effort] = &Effort::ALL;

const ADAPTIVE_THINKING: Option<Thinking> = Some(Thinking::Adaptive {
    minimum: MinimumThinking::Disabled,
});
const PERMANENT_THINKING: Option<Thinking> = Some(Thinking::Adaptive {
    minimum: MinimumThinking::LowEffort,
});
const THINKING_BETWEEN_TOOLS: Option<Thinking> = Some(Thinking::Adaptive {
    minimum: MinimumThinking::BetweenTools,
});

// The rules of Claude 3. The constants of later models list only the differences from an earlier
// model.
const GENERATION_3: ModelRules = ModelRules {
    context_window: 200_000,
    max_output_tokens: 4_096,
    documents: false,
    sampling: SamplingSupport::Both,
    thinking: None,
    interleaves_by_beta: false,
    efforts: &[],
    forced_tool_choice: Some(true),
    structured_output: false,
    prefill: true,
    later_instructions: false,
    web_search: DEFAULT_WEB_SEARCH,
};
const GENERATION_3_5: ModelRules = ModelRules {
    max_output_tokens: 8_192,
    documents: true,
    ..GENERATION_3
};
const GENERATION_3_7: ModelRules = ModelRules {
    max_output_tokens: 64_000,
    thinking: Some(Thinking::Budget),
    ..GENERATION_3_5
};
const GENERATION_4: ModelRules = ModelRules {
    interleaves_by_beta: true,
    ..GENERATION_3_7
};
const OPUS_4: ModelRules = ModelRules {
    max_output_tokens: 32_000,
    ..GENERATION_4
};
const OPUS_4_1: ModelRules = ModelRules {
    sampling: SamplingSupport::One,
    structured_output: true,
    ..OPUS_4
};
const GENERATION_4_5: ModelRules = ModelRules {
    sampling: SamplingSupport::One,
    structured_output: true,
    ..GENERATION_4
};
const OPUS_4_5: ModelRules = ModelRules {
    efforts: UP_TO_HIGH_EFFORT,
    ..GENERATION_4_5
};
const GENERATION_4_6: ModelRules = ModelRules {
    context_window: 1_000_000,
    max_output_tokens: 128_000,
    thinking: ADAPTIVE_THINKING,
    interleaves_by_beta: false,
    efforts: ALL_EFFORTS_BUT_XHIGH,
    prefill: false,
    web_search: NEWEST_WEB_SEARCH,
    ..GENERATION_4_5
};
const OPUS_4_7: ModelRules = ModelRules {
    sampling: SamplingSupport::Refused,
    efforts: ALL_EFFORTS,
    ..GENERATION_4_6
};
const OPUS_4_8: ModelRules = ModelRules {
    later_instructions: true,
    ..OPUS_4_7
};
/// Rules of `claude-mythos-preview`, which is older than generation 5.
const MYTHOS_PREVIEW: ModelRules = ModelRules {
    thinking: PERMANENT_THINKING,
    forced_tool_choice: None,
    ..OPUS_4_7
};
const GENERATION_5: ModelRules = OPUS_4_8;
/// Rules of the first Fable and Mythos models. Reports about their support for a forced tool choice
/// contradict each other, so `forced_tool_choice` is `None`.
const FABLE_5: ModelRules = ModelRules {
    thinking: PERMANENT_THINKING,
    forced_tool_choice: None,
    ..GENERATION_5
};
const FABLE_5_1: ModelRules = ModelRules {
    forced_tool_choice: Some(false),
    ..FABLE_5
};
const HAIKU_5: ModelRules = ModelRules {
    web_search: WebSearchVersion {
        direct_only: true,
        ..NEWEST_WEB_SEARCH
    },
    ..GENERATION_5
};
const OPUS_5_5: ModelRules = ModelRules {
    thinking: PERMANENT_THINKING,
    forced_tool_choice: Some(false),
    ..GENERATION_5
};
const SONNET_5_5: ModelRules = ModelRules {
    thinking: THINKING_BETWEEN_TOOLS,
    ..OPUS_5_5
};

/// The table of known models. The first matching row contains the rules of a model. A row matches
/// if its family is `None` or the model's family, and if its version `since` is not newer than the
/// model's version.
pub const TABLE: &[ModelRow] = &[
    table_row(Some(ModelFamily::Opus), (5, 5), OPUS_5_5),
    table_row(Some(ModelFamily::Sonnet), (5, 5), SONNET_5_5),
    table_row(Some(ModelFamily::Haiku), (5, 0), HAIKU_5),
    table_row(Some(ModelFamily::Fable), (5, 1), FABLE_5_1),
    table_row(Some(ModelFamily::Fable), (0, 0), FABLE_5),
    table_row(Some(ModelFamily::Mythos), (5, 1), FABLE_5_1),
    table_row(Some(ModelFamily::Mythos), (5, 0), FABLE_5),
    table_row(Some(ModelFamily::Mythos), (0, 0), MYTHOS_PREVIEW),
    table_row(None, (5, 0), GENERATION_5),
    table_row(Some(ModelFamily::Opus), (4, 8), OPUS_4_8),
    table_row(Some(ModelFamily::Opus), (4, 7), OPUS_4_7),
    table_row(None, (4, 6), GENERATION_4_6),
    table_row(Some(ModelFamily::Opus), (4, 5), OPUS_4_5),
    table_row(None, (4, 5), GENERATION_4_5),
    table_row(Some(ModelFamily::Opus), (4, 1), OPUS_4_1),
    table_row(Some(ModelFamily::Opus), (4, 0), OPUS_4),
    table_row(None, (4, 0), GENERATION_4),
    table_row(None, (3, 7), GENERATION_3_7),
    table_row(None, (3, 5), GENERATION_3_5),
    table_row(None, (0, 0), GENERATION_3),
];

const fn table_row(family: Option<ModelFamily>, since: (u32, u32), rules: ModelRules) -> ModelRow {
    ModelRow {
        family,
        since,
        rules,
    }
}

/// Returns the features and limits of a model. Also accepts the names that other vendors give to
/// Claude models, such as `us.anthropic.claude-opus-4-1-20250805-v1:0` and
/// `anthropic/claude-sonnet-5.5`. Returns `None` for unknown names.
pub fn find_rules(model: &str) -> Option<&'static ModelRules> {
    let (family, version) = parse_family_and_version(model)?;
    let applies =
        |row: &&ModelRow| row.family.is_none_or(|it| it == family) && version >= row.since;
    TABLE.iter().find(applies).map(|row| &row.rules)
}

/// Parses the family and the (major, minor) version from a model name. Returns `None` if the name
/// has no known family or no version.
fn parse_family_and_version(model: &str) -> Option<(ModelFamily, (u32, u32))> {
    let (_, name) = model.split_once("claude-")?;
    let mut family = None;
    let mut numbers = Vec::new();
    for word in name.split(['-', '.', '@', ':']) {
        match word {
            "opus" => family = Some(ModelFamily::Opus),
            "sonnet" => family = Some(ModelFamily::Sonnet),
            "haiku" => family = Some(ModelFamily::Haiku),
            "fable" => family = Some(ModelFamily::Fable),
            "mythos" => family = Some(ModelFamily::Mythos),
            // Numbers with more than two digits are dates, not versions.
            number if number.len() <= 2 => numbers.extend(number.parse::<u32>().ok()),
            _ => {}
        }
    }
    let family = family?;
    match numbers.as_slice() {
        [major, minor, ..] => Some((family, (*major, *minor))),
        [major] => Some((family, (*major, 0))),
        // The name `claude-mythos-preview` contains no version. The version (4, 9) selects the
        // rules for models before version 5.0.
        [] if family == ModelFamily::Mythos => Some((family, (4, 9))),
        [] => None,
    }
}

#[cfg(test)]
#[path = "model_rules_tests.rs"]
mod tests;
