//! What each Claude model takes and refuses: one table, which the mapping, the capabilities and the
//! documentation read.
//!
//! Facts are those of the model catalogue of litellm 1.109.1, the model table and documentation of
//! `@ai-sdk/anthropic` 3.0.138, the types of the official SDK (anthropic 2.11.0) and the API's error
//! messages as reported in public issue threads (oh-my-pi#12939, aiquila#410,
//! opencode-anthropic-auth#159, geode#632). A model that is not in the table has no known limits, and
//! the API's own answer decides.

use serde::{Deserialize, Serialize};

/// What a model takes and refuses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rules {
    /// Tokens of prompt and answer together.
    pub context_window: u64,
    /// Tokens of the answer at most, thinking included.
    pub max_output_tokens: u64,
    /// It reads PDF.
    pub documents: bool,
    /// Which of `temperature` and `top_p` it takes under an API version that takes any.
    pub sampling: Sampling,
    /// How it takes `thinking`; `None` for models that do not think.
    pub thinking: Option<Thinking>,
    /// It thinks between calls when the beta `interleaved-thinking-2025-05-14` is asked for. With
    /// adaptive thinking it does so anyway.
    pub interleaves_by_beta: bool,
    /// What `output_config.effort` may be, rising; none where the field is refused.
    pub efforts: &'static [Effort],
    /// Whether `tool_choice` of type `any` or `tool` is taken; `None` where reports differ.
    pub forced_tool_choice: Option<bool>,
    /// It is held to a schema: `output_config.format`, and `strict` tools.
    pub structured_output: bool,
    /// A conversation may end with the beginning of the model's own answer.
    pub prefill: bool,
    /// It takes instructions in the middle of a conversation (`role: system`).
    pub later_instructions: bool,
    /// The newest known versions of the built-in tools that it takes.
    pub server_tools: ServerToolVersions,
}

/// Which of `temperature` and `top_p` are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sampling {
    /// Both.
    Both,
    /// One of them.
    One,
    /// Neither.
    Refused,
}

/// How a model takes `thinking`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Thinking {
    /// `enabled` with a budget of tokens.
    Budget,
    /// `adaptive`, how much is said by `output_config.effort`.
    Adaptive {
        /// What comes nearest to none.
        least: LeastThinking,
    },
}

/// The least that a model can be told to think.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeastThinking {
    /// `disabled`: none.
    Disabled,
    /// `between_tools`: short notes between calls.
    BetweenTools,
    /// It always thinks; a low effort is all that can be asked for.
    LowEffort,
}

/// How much work goes into an answer: `output_config.effort`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Effort {
    /// `low`.
    Low,
    /// `medium`.
    Medium,
    /// `high`, what the API takes where nothing is said.
    High,
    /// `xhigh`.
    XHigh,
    /// `max`.
    Max,
}

impl Effort {
    /// Every level, rising.
    pub const ALL: [Self; 5] = [Self::Low, Self::Medium, Self::High, Self::XHigh, Self::Max];

    /// The API's word.
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

/// The dates at the end of the built-in tools' types, such as `20260318`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServerToolVersions {
    /// `web_search_…`.
    pub web_search: &'static str,
    /// `web_fetch_…`.
    pub web_fetch: &'static str,
    /// `code_execution_…`.
    pub code_execution: &'static str,
    /// The web tools must say `allowed_callers: ["direct"]`: the model does not call them out of its
    /// own code, which the newer versions are for.
    pub direct_only: bool,
}

/// A line of models.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Line {
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
    /// The line of models; `None` for every one that no row above names.
    pub line: Option<Line>,
    /// The first version (major, minor) that it holds for.
    pub from: (u32, u32),
    /// What holds.
    pub rules: Rules,
}

/// The versions of the built-in tools that came first; servers that took over the wire know them best.
pub(crate) const FIRST_SERVER_TOOLS: ServerToolVersions = ServerToolVersions {
    web_search: "20250305",
    web_fetch: "20250910",
    code_execution: "20250825",
    direct_only: false,
};
/// Code execution that keeps its state, without code that calls the web tools.
const STATEFUL_CODE: ServerToolVersions = ServerToolVersions {
    code_execution: "20260120",
    ..FIRST_SERVER_TOOLS
};
const SERVER_TOOLS_4_6: ServerToolVersions = ServerToolVersions {
    web_search: "20260318",
    web_fetch: "20260318",
    code_execution: "20260120",
    direct_only: false,
};
const NEWEST_SERVER_TOOLS: ServerToolVersions = ServerToolVersions {
    code_execution: "20260521",
    ..SERVER_TOOLS_4_6
};

const UP_TO_HIGH: &[Effort] = &[Effort::Low, Effort::Medium, Effort::High];
const ALL_BUT_XHIGH: &[Effort] = &[Effort::Low, Effort::Medium, Effort::High, Effort::Max];
const EVERY: &[Effort] = &Effort::ALL;

const ADAPTIVE: Option<Thinking> = Some(Thinking::Adaptive {
    least: LeastThinking::Disabled,
});
const ALWAYS: Option<Thinking> = Some(Thinking::Adaptive {
    least: LeastThinking::LowEffort,
});
const BETWEEN_TOOLS: Option<Thinking> = Some(Thinking::Adaptive {
    least: LeastThinking::BetweenTools,
});

// A generation is the one before it with what changed.
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
    server_tools: FIRST_SERVER_TOOLS,
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
const GENERATION_4_5: Rules = Rules {
    server_tools: STATEFUL_CODE,
    ..HAIKU_4_5
};
const OPUS_4_5: Rules = Rules {
    efforts: UP_TO_HIGH,
    ..GENERATION_4_5
};
const GENERATION_4_6: Rules = Rules {
    context_window: 1_000_000,
    max_output_tokens: 128_000,
    thinking: ADAPTIVE,
    interleaves_by_beta: false,
    efforts: ALL_BUT_XHIGH,
    prefill: false,
    server_tools: SERVER_TOOLS_4_6,
    ..GENERATION_4_5
};
const OPUS_4_7: Rules = Rules {
    sampling: Sampling::Refused,
    efforts: EVERY,
    ..GENERATION_4_6
};
const OPUS_4_8: Rules = Rules {
    later_instructions: true,
    server_tools: NEWEST_SERVER_TOOLS,
    ..OPUS_4_7
};
/// `claude-mythos-preview`, which came before all of 5.
const MYTHOS_PREVIEW: Rules = Rules {
    thinking: ALWAYS,
    forced_tool_choice: None,
    ..OPUS_4_7
};
const GENERATION_5: Rules = OPUS_4_8;
/// Reports about the first Fable and Mythos differ.
const FABLE_5: Rules = Rules {
    thinking: ALWAYS,
    forced_tool_choice: None,
    ..GENERATION_5
};
const FABLE_5_1: Rules = Rules {
    forced_tool_choice: Some(false),
    ..FABLE_5
};
const HAIKU_5: Rules = Rules {
    server_tools: ServerToolVersions {
        direct_only: true,
        ..NEWEST_SERVER_TOOLS
    },
    ..GENERATION_5
};
const OPUS_5_5: Rules = Rules {
    thinking: ALWAYS,
    forced_tool_choice: Some(false),
    ..GENERATION_5
};
const SONNET_5_5: Rules = Rules {
    thinking: BETWEEN_TOOLS,
    ..OPUS_5_5
};

/// The table: the first row of a model's line, or of none, whose version it has reached holds.
pub const TABLE: &[Row] = &[
    row(Some(Line::Opus), (5, 5), OPUS_5_5),
    row(Some(Line::Sonnet), (5, 5), SONNET_5_5),
    row(Some(Line::Haiku), (5, 0), HAIKU_5),
    row(Some(Line::Fable), (5, 1), FABLE_5_1),
    row(Some(Line::Fable), (0, 0), FABLE_5),
    row(Some(Line::Mythos), (5, 1), FABLE_5_1),
    row(Some(Line::Mythos), (5, 0), FABLE_5),
    row(Some(Line::Mythos), (0, 0), MYTHOS_PREVIEW),
    row(None, (5, 0), GENERATION_5),
    row(Some(Line::Opus), (4, 8), OPUS_4_8),
    row(Some(Line::Opus), (4, 7), OPUS_4_7),
    row(None, (4, 6), GENERATION_4_6),
    row(Some(Line::Opus), (4, 5), OPUS_4_5),
    row(Some(Line::Haiku), (4, 5), HAIKU_4_5),
    row(None, (4, 5), GENERATION_4_5),
    row(Some(Line::Opus), (4, 1), OPUS_4_1),
    row(Some(Line::Opus), (4, 0), OPUS_4),
    row(None, (4, 0), GENERATION_4),
    row(None, (3, 7), GENERATION_3_7),
    row(None, (3, 5), GENERATION_3_5),
    row(None, (0, 0), GENERATION_3),
];

const fn row(line: Option<Line>, from: (u32, u32), rules: Rules) -> Row {
    Row { line, from, rules }
}

/// What is known of a model under any vendor's name for it (`claude-opus-4-8`,
/// `us.anthropic.claude-opus-4-1-20250805-v1:0`, `anthropic/claude-sonnet-5.5`); `None` for names that
/// say nothing.
pub fn rules(model: &str) -> Option<&'static Rules> {
    let (line, version) = series(model)?;
    let holds = |row: &&Row| row.line.is_none_or(|it| it == line) && version >= row.from;
    TABLE.iter().find(holds).map(|row| &row.rules)
}

/// The line and the version that a name tells.
fn series(model: &str) -> Option<(Line, (u32, u32))> {
    let (_, name) = model.split_once("claude-")?;
    let mut line = None;
    let mut numbers = Vec::new();
    for word in name.split(['-', '.', '@', ':']) {
        match word {
            "opus" => line = Some(Line::Opus),
            "sonnet" => line = Some(Line::Sonnet),
            "haiku" => line = Some(Line::Haiku),
            "fable" => line = Some(Line::Fable),
            "mythos" => line = Some(Line::Mythos),
            // Longer numbers are dates.
            number if number.len() <= 2 => numbers.extend(number.parse::<u32>().ok()),
            _ => {}
        }
    }
    let line = line?;
    match numbers.as_slice() {
        [major, minor, ..] => Some((line, (*major, *minor))),
        [major] => Some((line, (*major, 0))),
        // `claude-mythos-preview`.
        [] if line == Line::Mythos => Some((line, (4, 9))),
        [] => None,
    }
}

#[cfg(test)]
#[path = "rules_tests.rs"]
mod tests;
