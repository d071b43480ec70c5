//! Reached limits.

use std::time::Duration;

use switchboard_domain::ModelId;

/// A reached limit. Its text names the used amount, the limit and the setting.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum LimitHit {
    /// Model calls of the run.
    #[error(
        "the model was asked {} without coming to an answer; raise the limit with --max-steps or \
         `max_steps`",
        count(*max, "once", "times")
    )]
    Steps {
        /// Maximum number.
        max: u32,
    },
    /// Tool calls of the run.
    #[error(
        "the model requested more than the {} that are allowed; raise the limit with \
         `limits.max_tool_calls`",
        count(*max, "1 tool call", "tool calls")
    )]
    ToolCalls {
        /// Maximum number.
        max: u32,
    },
    /// Tool calls of one model answer. The run continues.
    #[error(
        "the model requested more than {} in one answer; raise the limit with \
         `limits.max_calls_per_response`",
        count(*max, "1 tool call", "tool calls")
    )]
    CallsPerResponse {
        /// Maximum number.
        max: u32,
    },
    /// Tool calls within a minute. The run continues.
    #[error(
        "the model requested more than {} in a minute; raise the limit with \
         `limits.max_calls_per_minute`",
        count(*max, "1 tool call", "tool calls")
    )]
    CallsPerMinute {
        /// Maximum number.
        max: u32,
        /// Time until the next call is allowed, in milliseconds.
        retry_after_ms: u64,
    },
    /// Input tokens.
    #[error(
        "{used} input tokens were used, and {max} are allowed; raise the limit with \
         `limits.max_input_tokens`"
    )]
    InputTokens {
        /// Used tokens.
        used: u64,
        /// Maximum number.
        max: u64,
    },
    /// Output tokens.
    #[error(
        "{used} output tokens were used, and {max} are allowed; raise the limit with \
         `limits.max_output_tokens`"
    )]
    OutputTokens {
        /// Used tokens.
        used: u64,
        /// Maximum number.
        max: u64,
    },
    /// Input and output tokens together.
    #[error(
        "{used} input and output tokens were used, and {max} are allowed; raise the limit with \
         `limits.max_total_tokens`"
    )]
    TotalTokens {
        /// Used tokens.
        used: u64,
        /// Maximum number.
        max: u64,
    },
    /// Size of one model answer.
    #[error(
        "one answer of the model is longer than {max} bytes; raise the limit with \
         `limits.max_answer_bytes`"
    )]
    AnswerBytes {
        /// Maximum size in bytes.
        max: u64,
    },
    /// Cost of the model calls.
    #[error(
        "{} were spent, and {} are allowed; raise the limit with `limits.max_cost_usd`",
        usd(*used_usd), usd(*max_usd)
    )]
    Cost {
        /// Cost so far, in US dollars.
        used_usd: f64,
        /// Maximum cost, in US dollars.
        max_usd: f64,
    },
    /// The cost is limited and the price of the model is unknown.
    #[error(
        "the cost is limited and the price of {model} is not known, so it was not asked; \
         configure its price, or take away the limit with `limits.max_cost_usd`"
    )]
    PriceUnknown {
        /// The model.
        model: ModelId,
    },
    /// Duration of the run.
    #[error(
        "it took {}, and {} are allowed; raise the limit with `limits.max_wall_time`",
        seconds(*used_ms), seconds(*max_ms)
    )]
    WallTime {
        /// Duration so far, in milliseconds.
        used_ms: u64,
        /// Maximum duration, in milliseconds.
        max_ms: u64,
    },
}

fn count(max: u32, one: &str, many: &str) -> String {
    match max {
        1 => one.to_owned(),
        max => format!("{max} {many}"),
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
