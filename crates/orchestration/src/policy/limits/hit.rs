//! Reached limits.

use std::{fmt, time::Duration};

use switchboard_domain::ModelId;

/// A reached limit. Its text names the used amount, the limit and the setting.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum LimitHit {
    /// Model calls of the run.
    Steps {
        /// Maximum number.
        max: u32,
    },
    /// Tool calls of the run.
    ToolCalls {
        /// Maximum number.
        max: u32,
    },
    /// Tool calls of one model answer. The run continues.
    CallsPerResponse {
        /// Maximum number.
        max: u32,
    },
    /// Tool calls within a minute. The run continues.
    CallsPerMinute {
        /// Maximum number.
        max: u32,
        /// Time until the next call is allowed, in milliseconds.
        retry_after_ms: u64,
    },
    /// Input tokens.
    InputTokens {
        /// Used tokens.
        used: u64,
        /// Maximum number.
        max: u64,
    },
    /// Output tokens.
    OutputTokens {
        /// Used tokens.
        used: u64,
        /// Maximum number.
        max: u64,
    },
    /// Input and output tokens together.
    TotalTokens {
        /// Used tokens.
        used: u64,
        /// Maximum number.
        max: u64,
    },
    /// Size of one model answer.
    AnswerBytes {
        /// Maximum size in bytes.
        max: u64,
    },
    /// Cost of the model calls.
    Cost {
        /// Cost so far, in US dollars.
        used_usd: f64,
        /// Maximum cost, in US dollars.
        max_usd: f64,
    },
    /// The cost is limited and the price of the model is unknown.
    PriceUnknown {
        /// The model.
        model: ModelId,
    },
    /// Duration of the run.
    WallTime {
        /// Duration so far, in milliseconds.
        used_ms: u64,
        /// Maximum duration, in milliseconds.
        max_ms: u64,
    },
}

impl LimitHit {
    /// Returns where the limit is set: the command-line option or the configuration key.
    pub fn setting(&self) -> &'static str {
        match self {
            Self::Steps { .. } => "--max-steps or `max_steps`",
            Self::ToolCalls { .. } => "`limits.max_tool_calls`",
            Self::CallsPerResponse { .. } => "`limits.max_calls_per_response`",
            Self::CallsPerMinute { .. } => "`limits.max_calls_per_minute`",
            Self::InputTokens { .. } => "`limits.max_input_tokens`",
            Self::OutputTokens { .. } => "`limits.max_output_tokens`",
            Self::TotalTokens { .. } => "`limits.max_total_tokens`",
            Self::AnswerBytes { .. } => "`limits.max_answer_bytes`",
            Self::Cost { .. } | Self::PriceUnknown { .. } => "`limits.max_cost_usd`",
            Self::WallTime { .. } => "`limits.max_wall_time`",
        }
    }

    /// Returns the clause for the model whose call was not executed, without a full stop. It names
    /// no setting, because the model cannot change one.
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
            other => other.describe(),
        }
    }

    fn describe(&self) -> String {
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
                    "the model requested more than the {} that are allowed",
                    calls(*max)
                )
            }
            Self::CallsPerResponse { max } => {
                format!(
                    "the model requested more than {} in one answer",
                    calls(*max)
                )
            }
            Self::CallsPerMinute { max, .. } => {
                format!("the model requested more than {} in a minute", calls(*max))
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
        let remedy = match self {
            Self::PriceUnknown { .. } => "configure its price, or take away the limit",
            _ => "raise the limit",
        };
        write!(f, "{}; {remedy} with {}", self.describe(), self.setting())
    }
}

impl std::error::Error for LimitHit {}

fn calls(max: u32) -> String {
    match max {
        1 => "1 tool call".to_owned(),
        max => format!("{max} tool calls"),
    }
}

/// Formats small amounts with more digits.
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
