//! Settings of a run that its caller chooses, such as strategy, limits and sampling.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use switchboard_domain::{Delivery, ReasoningEffort, Sampling, ToolChoice};

use crate::{
    policy::approval::ApprovalSettings, policy::history::HistoryPolicy, policy::limits::Limits,
    policy::tool_guard::ToolGuard, strategy::Strategy, tools::results::ResultLimit,
    tools::search::SearchPolicy,
};

/// Settings of one run, which are stored with the run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RunOptions {
    /// How the run reaches an answer: the plain tool loop, or separate phases for gathering data
    /// and formatting the answer.
    pub strategy: Strategy,
    /// Limits of steps, calls, tokens, cost and time.
    pub limits: Limits,
    /// Approval rules for tool calls.
    pub approval: ApprovalSettings,
    /// Tool choice of the *first* model call. Later calls use [`ToolChoice::Auto`], so that the
    /// model does not call a forced tool in every step.
    pub tool_choice: ToolChoice,
    /// Whether one response may contain several tool uses; `None` uses the provider's default.
    pub parallel_tool_use: Option<bool>,
    /// Sampling parameters of the model, such as the temperature.
    pub sampling: Sampling,
    /// Maximum number of output tokens in one model response.
    pub max_output_tokens: Option<u32>,
    /// How much the model reasons before it answers.
    pub reasoning: Option<ReasoningEffort>,
    /// Whether model responses arrive as a stream or as one complete document.
    pub delivery: Delivery,
    /// Maximum number of tool calls of this run that are executed at the same time.
    pub max_concurrent_tools: usize,
    /// Time limit of one tool call; `None` uses the limit of the tool host.
    pub tool_timeout: Option<Duration>,
    /// Whether the denial of a tool call skips the later tool calls of the same model response.
    pub stop_after_denial: bool,
    /// Rules that skip the later tool calls of a model response if the result of an earlier call
    /// meets a condition.
    pub guards: Vec<ToolGuard>,
    /// Size limit of tool results that the model reads.
    pub results: ResultLimit,
    /// Size limit of the conversation that is sent to the model.
    pub history: HistoryPolicy,
    /// Settings that decide when the model gets a tool for searching tools instead of the
    /// definitions of all tools.
    pub search: SearchPolicy,
    /// Maximum numbers of repeated model calls after unusable responses.
    pub recovery: ResponseRetries,
}

impl Default for RunOptions {
    fn default() -> Self {
        Self {
            strategy: Strategy::default(),
            limits: Limits::default(),
            approval: ApprovalSettings::default(),
            tool_choice: ToolChoice::Auto,
            parallel_tool_use: None,
            sampling: Sampling::default(),
            max_output_tokens: None,
            reasoning: None,
            delivery: Delivery::default(),
            max_concurrent_tools: 8,
            tool_timeout: None,
            stop_after_denial: true,
            guards: Vec::new(),
            results: ResultLimit::default(),
            history: HistoryPolicy::default(),
            search: SearchPolicy::default(),
            recovery: ResponseRetries::default(),
        }
    }
}

/// Maximum numbers of model calls that a run repeats because the response was unusable. Each kind
/// of fault has its own maximum.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct ResponseRetries {
    /// Maximum number of repeated model calls after empty responses.
    pub empty_answer: u32,
    /// Maximum number of repeated model calls after tool calls that the provider could not parse.
    pub malformed_call: u32,
    /// Maximum number of model calls that continue a cut-off response. A response is continued if
    /// it reached the model's own output limit, but not if it reached
    /// [`RunOptions::max_output_tokens`].
    pub cut_off: u32,
    /// Whether the run calls the next fallback model if the model refuses or a content filter
    /// withholds the answer. The run does not switch if the response already has content.
    pub switch_after_refusal: bool,
}

impl Default for ResponseRetries {
    fn default() -> Self {
        Self {
            empty_answer: 1,
            malformed_call: 2,
            cut_off: 1,
            switch_after_refusal: true,
        }
    }
}
