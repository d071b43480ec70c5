//! What a run may do and how it asks.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use switchboard_domain::{Delivery, ReasoningEffort, Sampling, ToolChoice};

use crate::{
    policy::approval::Approvals, policy::guard::Guard, policy::history::HistoryPolicy,
    policy::limits::Limits, strategy::Strategy, tools::results::ResultLimit,
    tools::search::SearchPolicy,
};

/// Settings of one run. They are part of the run and travel with it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RunOptions {
    /// How the run comes to its answer.
    pub strategy: Strategy,
    /// What ends a run early.
    pub limits: Limits,
    /// Which tool calls need a person's word.
    pub approval: Approvals,
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
    /// Whether answers are wanted as they are written, or once they are complete.
    pub delivery: Delivery,
    /// Tool calls that may be under way at once.
    pub max_concurrent_tools: usize,
    /// How long one tool call may take; `None` leaves it to the tool host.
    pub tool_timeout: Option<Duration>,
    /// After a call that a person or a rule declined, those behind it in the same answer are not
    /// executed.
    pub stop_after_denial: bool,
    /// Results after which those behind are not executed.
    pub guards: Vec<Guard>,
    /// How much of a result the model reads at once.
    pub results: ResultLimit,
    /// How long the conversation may grow.
    pub history: HistoryPolicy,
    /// How tools are offered where they are many.
    pub search: SearchPolicy,
    /// What is done about answers of no use.
    pub recovery: Recovery,
}

impl Default for RunOptions {
    fn default() -> Self {
        Self {
            strategy: Strategy::default(),
            limits: Limits::default(),
            approval: Approvals::default(),
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
            recovery: Recovery::default(),
        }
    }
}

/// What is done about answers of no use: how often a run asks again for which reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Recovery {
    /// After an answer without anything in it.
    pub empty_answer: u32,
    /// After a tool call that the provider itself could not read.
    pub malformed_call: u32,
    /// After an answer that the model's own output limit cut off, which is then continued. A limit
    /// that the options set is kept.
    pub cut_off: u32,
    /// A model that declined before it showed anything is replaced by the next one, if there is one.
    pub switch_after_refusal: bool,
}

impl Default for Recovery {
    fn default() -> Self {
        Self {
            empty_answer: 1,
            malformed_call: 2,
            cut_off: 1,
            switch_after_refusal: true,
        }
    }
}

impl Recovery {
    /// Never asks again.
    pub fn none() -> Self {
        Self {
            empty_answer: 0,
            malformed_call: 0,
            cut_off: 0,
            switch_after_refusal: false,
        }
    }
}
