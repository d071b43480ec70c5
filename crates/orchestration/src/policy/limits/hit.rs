//! Reached limits of a run.

use std::time::Duration;

use switchboard_domain::ModelId;

/// A reached limit. Its error text names the used amount, the limit and the setting.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum LimitHit {
    /// The run reached the maximum number of model calls.
    #[error(
        "the model was asked {} without coming to an answer; raise the limit with --max-steps or \
         `max_steps`",
        format_count(*max, "once", "times")
    )]
    Steps {
        /// Maximum number of model calls.
        max: u32,
    },
    /// The run reached the maximum number of tool calls.
    #[error(
        "the model requested more than the {} that are allowed; raise the limit with \
         `limits.max_tool_calls`",
        format_count(*max, "1 tool call", "tool calls")
    )]
    ToolCalls {
        /// Maximum number of tool calls.
        max: u32,
    },
    /// One model answer requests too many tool calls. The run continues.
    #[error(
        "the model requested more than {} in one answer; raise the limit with \
         `limits.max_calls_per_response`",
        format_count(*max, "1 tool call", "tool calls")
    )]
    CallsPerResponse {
        /// Maximum number of tool calls in one model answer.
        max: u32,
    },
    /// The run reached the maximum number of tool calls within a minute. The run continues.
    #[error(
        "the model requested more than {} in a minute; raise the limit with \
         `limits.max_calls_per_minute`",
        format_count(*max, "1 tool call", "tool calls")
    )]
    CallsPerMinute {
        /// Maximum number of tool calls within a minute.
        max: u32,
        /// Time until the next tool call is allowed, in milliseconds.
        retry_after_ms: u64,
    },
    /// The run reached the maximum number of input tokens.
    #[error(
        "{used} input tokens were used, and {max} are allowed; raise the limit with \
         `limits.max_input_tokens`"
    )]
    InputTokens {
        /// Number of used input tokens.
        used: u64,
        /// Maximum number of input tokens.
        max: u64,
    },
    /// The run reached the maximum number of output tokens.
    #[error(
        "{used} output tokens were used, and {max} are allowed; raise the limit with \
         `limits.max_output_tokens`"
    )]
    OutputTokens {
        /// Number of used output tokens.
        used: u64,
        /// Maximum number of output tokens.
        max: u64,
    },
    /// The run reached the maximum number of input and output tokens together.
    #[error(
        "{used} input and output tokens were used, and {max} are allowed; raise the limit with \
         `limits.max_total_tokens`"
    )]
    TotalTokens {
        /// Number of used input and output tokens.
        used: u64,
        /// Maximum number of input and output tokens.
        max: u64,
    },
    /// One model answer is too long.
    #[error(
        "one answer of the model is longer than {max} bytes; raise the limit with \
         `limits.max_answer_bytes`"
    )]
    AnswerBytes {
        /// Maximum size of one model answer in bytes.
        max: u64,
    },
    /// The run reached the maximum cost of the model calls.
    #[error(
        "{} were spent, and {} are allowed; raise the limit with `limits.max_cost_usd`",
        format_usd(*used_usd), format_usd(*max_usd)
    )]
    Cost {
        /// Cost of the model calls so far, in US dollars.
        used_usd: f64,
        /// Maximum cost of the model calls, in US dollars.
        max_usd: f64,
    },
    /// The cost is limited, and the price of the model is unknown.
    #[error(
        "the cost is limited and the price of {model} is not known, so it was not asked; \
         configure its price, or take away the limit with `limits.max_cost_usd`"
    )]
    PriceUnknown {
        /// Model without a known price.
        model: ModelId,
    },
    /// The run reached its maximum duration.
    #[error(
        "it took {}, and {} are allowed; raise the limit with `limits.max_wall_time`",
        format_seconds(*used_ms), format_seconds(*max_ms)
    )]
    WallTime {
        /// Duration of the run so far, in milliseconds.
        used_ms: u64,
        /// Maximum duration of the run, in milliseconds.
        max_ms: u64,
    },
}

fn format_count(max: u32, one: &str, many: &str) -> String {
    match max {
        1 => one.to_owned(),
        max => format!("{max} {many}"),
    }
}

/// Formats an amount in US dollars. Small amounts get more digits.
fn format_usd(amount: f64) -> String {
    if amount != 0.0 && amount.abs() < 0.1 {
        format!("{amount:.6} USD")
    } else {
        format!("{amount:.2} USD")
    }
}

fn format_seconds(ms: u64) -> String {
    format!("{} s", Duration::from_millis(ms).as_secs_f64())
}
