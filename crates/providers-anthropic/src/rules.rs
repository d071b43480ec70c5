//! The features and limits of each Claude model, in one table.
//!
//! Sources: the model catalogue of litellm 1.109.1, the model table and documentation of
//! `@ai-sdk/anthropic` 3.0.138, the types of the official SDK (anthropic 2.11.0), and error messages
//! of the API in public issue threads (oh-my-pi#12939, aiquila#410, opencode-anthropic-auth#159,
//! geode#632). A model that is not in the table has no known limits. The API decides for it.

use serde::{Deserialize, Serialize};

/// The features and limits of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rules {
    /// Maximum number of tokens of prompt and answer together.
    pub context_window: u64,
    /// Maximum number of tokens of the answer, with thinking.
    pub max_output_tokens: u64,
    /// Whether it supports PDF documents.
    pub documents: bool,
    /// The support for `temperature` and `top_p` in an API version that accepts them.
    pub sampling: Sampling,
    /// The thinking mode. `None`: the model does not support thinking.
    pub thinking: Option<Thinking>,
    /// Whether it thinks between calls with the beta `interleaved-thinking-2025-05-14`. With
    /// adaptive thinking no beta is needed.
    pub interleaves_by_beta: bool,
    /// The values of `output_config.effort`, in rising order. Empty: the field is refused.
    pub efforts: &'static [Effort],
    /// Whether `tool_choice` of type `any` or `tool` is accepted. `None`: reports differ.
    pub forced_tool_choice: Option<bool>,
    /// Whether `output_config.format` and `strict` tools are supported.
    pub structured_output: bool,
    /// Whether a conversation may end with an assistant message.
    pub prefill: bool,
    /// Whether instructions within a conversation (`role: system`) are supported.
    pub later_instructions: bool,
    /// The newest known version of the web search that it supports.
    pub web_search: WebSearchVersion,
}

/// The support for `temperature` and `top_p`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sampling {
    /// Both.
    Both,
    /// One at a time.
    One,
    /// Neither.
    Refused,
}

/// The thinking mode of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Thinking {
    /// `enabled` with a budget of tokens.
    Budget,
    /// `adaptive`. `output_config.effort` controls the amount.
    Adaptive {
        /// The smallest amount of thinking that a request can ask for.
        minimum: MinimumThinking,
    },
}

/// The minimum of thinking that can be requested.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MinimumThinking {
    /// `disabled`: no thinking.
    Disabled,
    /// `between_tools`: short notes between calls.
    BetweenTools,
    /// Thinking with a low effort.
    LowEffort,
}

/// The effort of an answer: `output_config.effort`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Effort {
    /// `low`.
    Low,
    /// `medium`.
    Medium,
    /// `high`, the default of the API.
    High,
    /// `xhigh`.
    XHigh,
    /// `max`.
    Max,
}

impl Effort {
    /// All levels, in rising order.
    pub const ALL: [Self; 5] = [Self::Low, Self::Medium, Self::High, Self::XHigh, Self::Max];

    /// Returns the API's name of the level.
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

/// The version of the built-in web search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WebSearchVersion {
    /// The date in the tool's type, such as `20260318`.
    pub version: &'static str,
    /// The request must contain `allowed_callers: ["direct"]`: the model cannot call the tool from
    /// its own code, which the newer versions are made for.
    pub direct_only: bool,
}

/// A model family.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    /// `claude-opus-…`
    Opus,
    /// `claude-sonnet-…`
    Sonnet,
    /// `claude-haiku-…`
    Haiku,
    /// `claude-fable-…`
    Fable,
    /// `claude-mythos-…`
    Mythos,
}

/// A row of the table.
#[derive(Debug, Clone, Copy)]
pub struct Row {
    /// The family. `None`: all families.
    pub family: Option<Family>,
    /// The first version (major, minor) of the row.
    pub since: (u32, u32),
    /// The features and limits.
    pub rules: Rules,
}

/// The first version of the web search, which compatible servers support.
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

// Each generation lists its differences from an earlier one.
const GENERATION_3: Rules = Rules {
    context_window: 200_000,
    max_output_tokens: 4_096,
    documents: false,
    sampling: Sampling::Both,
    thinking: None,
    interleaves_by_beta: false,
    efforts: &[],
    forced_tool_choice: Some(true),
    structured_output: false,
    prefill: true,
    later_instructions: false,
    web_search: DEFAULT_WEB_SEARCH,
};
const GENERATION_3_5: Rules = Rules {
    max_output_tokens: 8_192,
    documents: true,
    ..GENERATION_3
};
const GENERATION_3_7: Rules = Rules {
    max_output_tokens: 64_000,
    thinking: Some(Thinking::Budget),
    ..GENERATION_3_5
};
const GENERATION_4: Rules = Rules {
    interleaves_by_beta: true,
    ..GENERATION_3_7
};
const OPUS_4: Rules = Rules {
    max_output_tokens: 32_000,
    ..GENERATION_4
};
const OPUS_4_1: Rules = Rules {
    sampling: Sampling::One,
    structured_output: true,
    ..OPUS_4
};
const HAIKU_4_5: Rules = Rules {
    sampling: Sampling::One,
    structured_output: true,
    ..GENERATION_4
};
const GENERATION_4_5: Rules = HAIKU_4_5;
const OPUS_4_5: Rules = Rules {
    efforts: UP_TO_HIGH_EFFORT,
    ..GENERATION_4_5
};
const GENERATION_4_6: Rules = Rules {
    context_window: 1_000_000,
    max_output_tokens: 128_000,
    thinking: ADAPTIVE_THINKING,
    interleaves_by_beta: false,
    efforts: ALL_EFFORTS_BUT_XHIGH,
    prefill: false,
    web_search: NEWEST_WEB_SEARCH,
    ..GENERATION_4_5
};
const OPUS_4_7: Rules = Rules {
    sampling: Sampling::Refused,
    efforts: ALL_EFFORTS,
    ..GENERATION_4_6
};
const OPUS_4_8: Rules = Rules {
    later_instructions: true,
    ..OPUS_4_7
};
/// `claude-mythos-preview`, which is older than generation 5.
const MYTHOS_PREVIEW: Rules = Rules {
    thinking: PERMANENT_THINKING,
    forced_tool_choice: None,
    ..OPUS_4_7
};
const GENERATION_5: Rules = OPUS_4_8;
/// Reports about the first Fable and Mythos models differ.
const FABLE_5: Rules = Rules {
    thinking: PERMANENT_THINKING,
    forced_tool_choice: None,
    ..GENERATION_5
};
const FABLE_5_1: Rules = Rules {
    forced_tool_choice: Some(false),
    ..FABLE_5
};
const HAIKU_5: Rules = Rules {
    web_search: WebSearchVersion {
        direct_only: true,
        ..NEWEST_WEB_SEARCH
    },
    ..GENERATION_5
};
const OPUS_5_5: Rules = Rules {
    thinking: PERMANENT_THINKING,
    forced_tool_choice: Some(false),
    ..GENERATION_5
};
const SONNET_5_5: Rules = Rules {
    thinking: THINKING_BETWEEN_TOOLS,
    ..OPUS_5_5
};

/// The table. The first row applies whose family matches and whose version is not newer.
pub const TABLE: &[Row] = &[
    row(Some(Family::Opus), (5, 5), OPUS_5_5),
    row(Some(Family::Sonnet), (5, 5), SONNET_5_5),
    row(Some(Family::Haiku), (5, 0), HAIKU_5),
    row(Some(Family::Fable), (5, 1), FABLE_5_1),
    row(Some(Family::Fable), (0, 0), FABLE_5),
    row(Some(Family::Mythos), (5, 1), FABLE_5_1),
    row(Some(Family::Mythos), (5, 0), FABLE_5),
    row(Some(Family::Mythos), (0, 0), MYTHOS_PREVIEW),
    row(None, (5, 0), GENERATION_5),
    row(Some(Family::Opus), (4, 8), OPUS_4_8),
    row(Some(Family::Opus), (4, 7), OPUS_4_7),
    row(None, (4, 6), GENERATION_4_6),
    row(Some(Family::Opus), (4, 5), OPUS_4_5),
    row(Some(Family::Haiku), (4, 5), HAIKU_4_5),
    row(None, (4, 5), GENERATION_4_5),
    row(Some(Family::Opus), (4, 1), OPUS_4_1),
    row(Some(Family::Opus), (4, 0), OPUS_4),
    row(None, (4, 0), GENERATION_4),
    row(None, (3, 7), GENERATION_3_7),
    row(None, (3, 5), GENERATION_3_5),
    row(None, (0, 0), GENERATION_3),
];

const fn row(family: Option<Family>, since: (u32, u32), rules: Rules) -> Row {
    Row {
        family,
        since,
        rules,
    }
}

/// Returns the row of a model. Names of other vendors are accepted, such as
/// `us.anthropic.claude-opus-4-1-20250805-v1:0` and `anthropic/claude-sonnet-5.5`. Returns `None`
/// for unknown names.
pub fn rules(model: &str) -> Option<&'static Rules> {
    let (family, version) = family_and_version(model)?;
    let applies = |row: &&Row| row.family.is_none_or(|it| it == family) && version >= row.since;
    TABLE.iter().find(applies).map(|row| &row.rules)
}

/// Reads the family and the version from a model name.
fn family_and_version(model: &str) -> Option<(Family, (u32, u32))> {
    let (_, name) = model.split_once("claude-")?;
    let mut family = None;
    let mut numbers = Vec::new();
    for word in name.split(['-', '.', '@', ':']) {
        match word {
            "opus" => family = Some(Family::Opus),
            "sonnet" => family = Some(Family::Sonnet),
            "haiku" => family = Some(Family::Haiku),
            "fable" => family = Some(Family::Fable),
            "mythos" => family = Some(Family::Mythos),
            // Longer numbers are dates.
            number if number.len() <= 2 => numbers.extend(number.parse::<u32>().ok()),
            _ => {}
        }
    }
    let family = family?;
    match numbers.as_slice() {
        [major, minor, ..] => Some((family, (*major, *minor))),
        [major] => Some((family, (*major, 0))),
        // `claude-mythos-preview`.
        [] if family == Family::Mythos => Some((family, (4, 9))),
        [] => None,
    }
}

#[cfg(test)]
#[path = "rules_tests.rs"]
mod tests;
