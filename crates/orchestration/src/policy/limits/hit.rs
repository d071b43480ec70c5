//! Which limit is reached.

use std::{fmt, time::Duration};

use serde::{Deserialize, Serialize};
use switchboard_domain::ModelId;

/// A limit is reached. The text says what was used, of how much, and how to allow more.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "limit", rename_all = "snake_case")]
#[non_exhaustive]
pub enum LimitHit {
    /// Calls of the model.
    Steps {
        /// How many may be made.
        max: u32,
    },
    /// Tool calls of the run.
    ToolCalls {
        /// How many may be made.
        max: u32,
    },
    /// Tool calls of one answer. The run goes on.
    CallsPerResponse {
        /// How many may be made.
        max: u32,
    },
    /// Tool calls within a minute. The run goes on.
    CallsPerMinute {
        /// How many may be made.
        max: u32,
        /// When one more is allowed again, in milliseconds from now.
        retry_after_ms: u64,
    },
    /// Tokens of the prompts.
    InputTokens {
        /// What was used.
        used: u64,
        /// What may be used.
        max: u64,
    },
    /// Tokens written.
    OutputTokens {
        /// What was used.
        used: u64,
        /// What may be used.
        max: u64,
    },
    /// Tokens of both.
    TotalTokens {
        /// What was used.
        used: u64,
        /// What may be used.
        max: u64,
    },
    /// Bytes of one answer.
    AnswerBytes {
        /// How many it may have.
        max: u64,
    },
    /// Money.
    Cost {
        /// What was spent, in US dollars.
        used_usd: f64,
        /// What may be spent, in US dollars.
        max_usd: f64,
    },
    /// Money is limited, and nobody knows what the model costs.
    PriceUnknown {
        /// The model.
        model: ModelId,
    },
    /// Time.
    WallTime {
        /// How long it took, in milliseconds.
        used_ms: u64,
        /// How long it may take, in milliseconds.
        max_ms: u64,
    },
}

impl LimitHit {
    /// The limit's name in configurations: the field of [`Limits`](super::Limits).
    pub fn key(&self) -> &'static str {
        match self {
            Self::Steps { .. } => "max_steps",
            Self::ToolCalls { .. } => "max_tool_calls",
            Self::CallsPerResponse { .. } => "max_calls_per_response",
            Self::CallsPerMinute { .. } => "max_calls_per_minute",
            Self::InputTokens { .. } => "max_input_tokens",
            Self::OutputTokens { .. } => "max_output_tokens",
            Self::TotalTokens { .. } => "max_total_tokens",
            Self::AnswerBytes { .. } => "max_answer_bytes",
            Self::Cost { .. } | Self::PriceUnknown { .. } => "max_cost_usd",
            Self::WallTime { .. } => "max_wall_time",
        }
    }

    /// Where it is set: the option of the command line, or the place in the configuration.
    pub fn setting(&self) -> String {
        match self {
            Self::Steps { .. } => "--max-steps or `max_steps`".to_owned(),
            other => format!("`limits.{}`", other.key()),
        }
    }

    /// Whether only the one call is not executed and the run goes on.
    pub fn is_passing(&self) -> bool {
        matches!(
            self,
            Self::CallsPerResponse { .. } | Self::CallsPerMinute { .. }
        )
    }

    /// The clause for the model whose call was not executed, without a full stop. It names no option:
    /// the model cannot set one.
    pub fn for_model(&self) -> String {
        match self {
            Self::CallsPerResponse { max } => format!(
                "only {} may be made in one answer; make the others in the next one if they are \
                 still needed",
                calls(*max)
            ),
            Self::CallsPerMinute {
                max,
                retry_after_ms,
            } => format!(
                "only {} may be made in a minute; the next one in {} s",
                calls(*max),
                retry_after_ms.div_ceil(1000)
            ),
            Self::ToolCalls { max } => format!("only {} may be made in all", calls(*max)),
            other => other.what(),
        }
    }

    fn what(&self) -> String {
        let tokens = |used: &u64, max: &u64, of: &str| {
            format!("{used} {of} tokens were used, and {max} are allowed")
        };
        match self {
            Self::Steps { max } => {
                let times = match max {
                    1 => "once".to_owned(),
                    max => format!("{max} times"),
                };
                format!("the model was asked {times} without coming to an answer")
            }
            Self::ToolCalls { max } => {
                format!(
                    "the model wanted more than the {} that are allowed",
                    calls(*max)
                )
            }
            Self::CallsPerResponse { max } => {
                format!("the model wanted more than {} in one answer", calls(*max))
            }
            Self::CallsPerMinute { max, .. } => {
                format!("the model wanted more than {} in a minute", calls(*max))
            }
            Self::InputTokens { used, max } => tokens(used, max, "input"),
            Self::OutputTokens { used, max } => tokens(used, max, "output"),
            Self::TotalTokens { used, max } => tokens(used, max, "input and output"),
            Self::AnswerBytes { max } => {
                format!("one answer of the model is longer than {max} bytes")
            }
            Self::Cost { used_usd, max_usd } => {
                format!(
                    "{} were spent, and {} are allowed",
                    usd(*used_usd),
                    usd(*max_usd)
                )
            }
            Self::PriceUnknown { model } => format!(
                "the cost is limited and the price of {model} is not known, so it was not asked"
            ),
            Self::WallTime { used_ms, max_ms } => format!(
                "it took {}, and {} are allowed",
                seconds(*used_ms),
                seconds(*max_ms)
            ),
        }
    }
}

impl fmt::Display for LimitHit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let way_out = match self {
            Self::PriceUnknown { .. } => "configure its price, or take away the limit",
            _ => "raise the limit",
        };
        write!(f, "{}; {way_out} with {}", self.what(), self.setting())
    }
}

impl std::error::Error for LimitHit {}

fn calls(max: u32) -> String {
    match max {
        1 => "1 tool call".to_owned(),
        max => format!("{max} tool calls"),
    }
}

/// Cents as far as they go, and more digits where there are none.
fn usd(amount: f64) -> String {
    if amount != 0.0 && amount.abs() < 0.1 {
        format!("{amount:.6} USD")
    } else {
        format!("{amount:.2} USD")
    }
}

fn seconds(ms: u64) -> String {
    format!("{} s", Duration::from_millis(ms).as_secs_f64())
}
