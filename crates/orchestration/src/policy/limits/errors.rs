//! Errors about reached limits. Each error names the used amount, the limit and the setting.

use std::time::Duration;

use switchboard_domain::ModelId;

use crate::{RunError, RunErrorKind};

pub(super) fn step_limit_error(max: u32) -> RunError {
    let times = if max == 1 {
        "once".to_owned()
    } else {
        format!("{max} times")
    };
    let message = format!(
        "the model was called {times} without a final answer; raise the limit with --max-steps or \
         `max_steps`"
    );
    RunError::new(RunErrorKind::StepLimit, message)
}

/// Returns the error for a reached limit of tool calls. `part` names the part of the run that the
/// limit applies to, such as ` in a minute`; it is empty for the whole run. `setting` is the name
/// of the limit in the configuration.
pub(crate) fn tool_call_limit_error(max: u32, part: &str, setting: &str) -> RunError {
    let calls = if max == 1 { "call" } else { "calls" };
    let reached = format!("the model requested more than {max} tool {calls}{part}");
    limit_error(RunErrorKind::ToolCallLimit, &reached, setting)
}

pub(super) fn token_limit_error(used: u64, max: u64, kind: &str, setting: &str) -> RunError {
    let reached = format!("{used} {kind} tokens were used, and {max} are allowed");
    limit_error(RunErrorKind::TokenLimit, &reached, setting)
}

pub(super) fn cost_limit_error(used_usd: f64, max_usd: f64) -> RunError {
    let (used, max) = (format_usd(used_usd), format_usd(max_usd));
    let reached = format!("{used} were spent, and {max} are allowed");
    limit_error(RunErrorKind::CostLimit, &reached, "max_cost_usd")
}

pub(super) fn unknown_price_error(model: &ModelId) -> RunError {
    let message = format!(
        "the cost is limited, but the price of {model} is unknown, so the model was not called; \
         configure its price, or remove the limit `limits.max_cost_usd`"
    );
    RunError::new(RunErrorKind::CostLimit, message)
}

pub(crate) fn time_limit_error(used_ms: u64, max_ms: u64) -> RunError {
    let seconds = |ms| Duration::from_millis(ms).as_secs_f64();
    let (used, max) = (seconds(used_ms), seconds(max_ms));
    let reached = format!("the run took {used} s, and {max} s are allowed");
    limit_error(RunErrorKind::TimeLimit, &reached, "max_wall_time")
}

pub(crate) fn answer_size_limit_error(max_bytes: u64) -> RunError {
    let reached = format!("one answer of the model is longer than {max_bytes} bytes");
    limit_error(RunErrorKind::OutputLimit, &reached, "max_answer_bytes")
}

fn limit_error(kind: RunErrorKind, reached: &str, setting: &str) -> RunError {
    let message = format!("{reached}; raise the limit with `limits.{setting}`");
    RunError::new(kind, message)
}

/// Formats an amount of US dollars. Amounts below 0.1 have six decimal places, others two.
fn format_usd(amount: f64) -> String {
    if amount != 0.0 && amount.abs() < 0.1 {
        format!("{amount:.6} USD")
    } else {
        format!("{amount:.2} USD")
    }
}
