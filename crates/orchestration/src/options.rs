//! What a run may do and how it asks.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use switchboard_domain::{ReasoningEffort, Sampling, ToolChoice};

use crate::ApprovalPolicy;

/// Settings of one run. They are part of the run and travel with it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RunOptions {
    /// What ends a run early.
    pub limits: Limits,
    /// Which tool calls need a person's word.
    pub approval: ApprovalPolicy,
    /// Which tools the model must use in its *first* step; later steps are
    /// [`ToolChoice::Auto`], else a forced tool would be called for ever.
    pub tool_choice: ToolChoice,
    /// Whether several tool uses in one answer are welcome; `None` leaves it to the provider.
    pub parallel_tool_use: Option<bool>,
    /// How tokens are drawn.
    pub sampling: Sampling,
    /// Tokens of one answer at most.
    pub max_output_tokens: Option<u32>,
    /// How much thinking is wanted.
    pub reasoning: Option<ReasoningEffort>,
    /// Tool calls that may be under way at once.
    pub max_concurrent_tools: usize,
    /// How long one tool call may take; `None` leaves it to the tool host.
    pub tool_timeout: Option<Duration>,
}

impl Default for RunOptions {
    fn default() -> Self {
        Self {
            limits: Limits::default(),
            approval: ApprovalPolicy::default(),
            tool_choice: ToolChoice::Auto,
            parallel_tool_use: None,
            sampling: Sampling::default(),
            max_output_tokens: None,
            reasoning: None,
            max_concurrent_tools: 8,
            tool_timeout: None,
        }
    }
}

/// What ends a run early, keeping what there is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Limits {
    /// Calls of the model, checked before each.
    pub max_steps: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self { max_steps: 16 }
    }
}

impl Limits {
    /// At most this many calls of the model.
    pub fn steps(max_steps: u32) -> Self {
        Self { max_steps }
    }
}
