//! Events that a run emits: one ordered stream that user interfaces, APIs and the audit log read.

use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use switchboard_domain::{
    ApprovalScope, Elicitation, ElicitationAnswer, FinishReason, ModelId, ServerProblem,
    ToolChoice, ToolChoiceOutcome, ToolContent, ToolHostChange, ToolProgress, ToolRetry, Usage,
    Warning, WarningKind,
};

use crate::{RunReport, ToolFailure, strategy::gather_phase::GatheringEnd};

/// An event of an agent run. `--output jsonl` prints each event as one line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunEvent {
    /// Id of the run that emitted the event.
    pub run_id: Arc<str>,
    /// Sequence number of the event within the run: 1, 2, 3, … without gaps. A resumed run
    /// continues the numbers of the earlier process.
    pub seq: u64,
    /// Time at which the event was emitted (RFC 3339, UTC).
    pub time: Timestamp,
    /// Kind of the event, with the data of this kind. In JSON, the kind and its data are fields
    /// beside `run_id` and `seq`.
    #[serde(flatten)]
    pub kind: RunEventKind,
}

/// The kinds of run events, each with its data. The kind is the field `type` in JSON.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum RunEventKind {
    /// The execution of the run started. The run is new, or it was loaded from storage and resumed.
    RunStarted {
        /// Id of the model that the run calls next.
        model: ModelId,
        /// `true` if a stored run is resumed, `false` if the run is new.
        resumed: bool,
    },
    /// A tool server is unavailable, or some of its tools cannot be used. The run continues without
    /// these tools.
    ToolsUnavailable {
        /// Name of the tool server, and a description of the problem.
        #[serde(flatten)]
        problem: ServerProblem,
    },
    /// A tool server started, stopped or failed, or its lists of tools, prompts or resources
    /// changed.
    ServerChanged {
        /// The tool server that changed, and the kind of change.
        change: Box<ToolHostChange>,
    },
    /// The run entered a phase of its strategy: gathering data or formatting the answer.
    PhaseStarted {
        /// The phase that the run entered.
        phase: RunPhase,
        /// Method that makes the model write the requested format, for example `a required tool
        /// call`. `None` in the gathering phase.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mode: Option<String>,
        /// Why the gathering phase ended. `None` unless this event follows that phase.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        gathering_ended: Option<GatheringEnd>,
    },
    /// The conversation is too long for one request, so the request omits older messages or
    /// shortens tool results. The run keeps the complete conversation.
    HistoryTrimmed {
        /// Number of messages that this trim removed from the request. 0 if it only shortened tool
        /// results.
        left_out: usize,
        /// Estimated size of the request before the trim, in tokens.
        tokens_before: u64,
        /// Estimated size of the request after the trim, in tokens.
        tokens_after: u64,
        /// Whether the run requests a summary of the omitted messages from the model. The event
        /// `history_summarised` reports the result of this request.
        summarised: bool,
    },
    /// A model call that summarizes omitted messages ended. The call does not count as a step.
    HistorySummarised {
        /// Number of the model call that follows the summary call.
        step: u32,
        /// Id of the model that was called for the summary.
        model: ModelId,
        /// Model id that the provider's response names. It can differ from the called model.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        answered_by: Option<String>,
        /// Why the model stopped writing the summary; `None` if the call failed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        finish_reason: Option<FinishReason>,
        /// Token usage of the summary call.
        usage: Box<Usage>,
        /// Error of a failed summary call. The run then continues without a summary.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<Box<crate::RunError>>,
    },
    /// The run switched to another model. The previous model failed or refused before it emitted
    /// output, or the process that resumed the run has no such model.
    ModelSwitched {
        /// Id of the model that the run used before the switch.
        from: ModelId,
        /// Id of the model that the run uses after the switch.
        to: ModelId,
        /// Why the run switched models.
        reason: String,
    },
    /// The provider rejected a request with tools, so later requests to this model have no tools.
    ToolsDropped {
        /// The provider's error message that rejects the tools.
        reason: String,
    },
    /// The model's response was unusable, so the run calls the model again.
    AskedAgain {
        /// Number of model calls repeated after unusable responses in the run, including this one.
        attempt: u32,
        /// Why the response was unusable.
        reason: String,
    },
    /// The answer of the formatting phase did not have the requested format, and the run repaired
    /// it without another model call.
    FormatRepaired {
        /// Descriptions of the repairs to the answer, one per repair.
        repairs: Vec<String>,
    },
    /// A model call started.
    ModelCallStarted {
        /// Number of the model call within the run, starting at 1.
        step: u32,
        /// Id of the called model.
        model: ModelId,
        /// Number of tools that the request offers.
        tools: usize,
        /// Tool choice of the request. [`RunEventKind::ModelCallFinished`] reports whether it was
        /// enforced.
        #[serde(default)]
        tool_choice: ToolChoice,
    },
    /// The model wrote more text of its answer.
    TextDelta {
        /// The text to append to the answer text received so far.
        text: String,
    },
    /// The model wrote more reasoning.
    ReasoningDelta {
        /// The text to append to the reasoning text received so far.
        text: String,
    },
    /// The model started to write a tool call.
    ToolInputStarted {
        /// Id of the tool use that the model started to write.
        id: String,
        /// Name of the tool that the model calls.
        name: String,
    },
    /// The model wrote more input of a tool call, as JSON text.
    ToolInputDelta {
        /// Id of the tool use whose input grew.
        id: String,
        /// The JSON text to append to the tool input received so far.
        json: String,
    },
    /// The response contains a block that the provider produced, such as a web search, a code
    /// execution or opaque data. The run does not execute the block. The conversation keeps it for
    /// the provider.
    ProviderBlock {
        /// The provider's name for the block type, such as `web_search_tool_result`.
        kind: String,
        /// Readable text of the block, such as a search query, the found pages or the output of
        /// code. `None` if the block has no readable text.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        text: Option<String>,
    },
    /// A model call ended with a complete response.
    ModelCallFinished {
        /// Number of the model call within the run, starting at 1.
        step: u32,
        /// Model id that the provider's response names. It can differ from the requested model.
        model: Option<String>,
        /// Why the model stopped writing the response.
        finish_reason: FinishReason,
        /// The finish reason in the provider's wording, such as `end_turn`.
        finish_raw: Option<String>,
        /// Token usage of the model call.
        usage: Box<Usage>,
        /// Whether the tool choice of the request was enforced: by the provider's API, by this
        /// program's adapter for the provider, or not at all.
        tool_choice: ToolChoiceOutcome,
    },
    /// An attempt of a model call failed before it emitted output. The call is attempted again
    /// after a pause, and this event precedes the pause. Clients must discard the tool inputs that
    /// the failed attempt started.
    ModelCallRetried {
        /// Number of the model call within the run, starting at 1.
        step: u32,
        /// Number of the next attempt; 2 for the first repetition.
        attempt: u32,
        /// Pause before the next attempt, in milliseconds.
        delay_ms: u64,
        /// Why the previous attempt failed.
        reason: String,
    },
    /// A model call failed or was interrupted. Clients must discard the tool inputs that this call
    /// started.
    ModelCallFailed {
        /// Number of the model call within the run, starting at 1.
        step: u32,
        /// The error that ended the model call.
        error: Box<crate::RunError>,
    },
    /// The run detected a problem that needs attention but does not end the run.
    Warning {
        /// Kind and message of the warning.
        #[serde(flatten)]
        warning: Warning,
    },
    /// The model requested a tool call. This event precedes the approval and the execution.
    ToolPlanned {
        /// Id of the tool use that requests the call.
        id: String,
        /// Name of the server that offers the tool. `None` for a tool without a server, such as a
        /// Rust function, and for a tool that does not exist.
        server: Option<String>,
        /// Name of the tool on its server.
        tool: String,
        /// Input of the call, normally a JSON object. If the model wrote a text that is not a JSON
        /// object, the input is a JSON string with this text.
        input: Arc<Value>,
    },
    /// The run repaired the input of a tool call, or a person edited the input.
    ToolInputRepaired {
        /// Id of the tool use whose input was changed.
        id: String,
        /// Descriptions of the changes to the input, one per change.
        repairs: Vec<String>,
        /// The input after the changes, with which the tool is called.
        input: Arc<Value>,
    },
    /// A tool call waits for the approval of a person.
    ToolAwaitingApproval {
        /// Id of the tool use whose call waits.
        id: String,
    },
    /// A person or an earlier decision approved a tool call.
    ToolApproved {
        /// Id of the approved tool use.
        id: String,
        /// The calls that the approval covers: only this call, or also later calls of the tool.
        scope: ApprovalScope,
        /// Whether the person edited the input of the call.
        edited: bool,
        /// Whether an earlier decision of a person was applied, so that nobody was asked again.
        remembered: bool,
    },
    /// A tool call does not run. A person or a rule denied it, or nobody approved it in time. The
    /// model reads the reason.
    ToolDenied {
        /// Id of the denied tool use.
        id: String,
        /// Why the call was denied.
        reason: String,
        /// Whether the call was denied because a person had denied the tool earlier. The person was
        /// not asked again.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        remembered: bool,
    },
    /// A tool call started.
    ToolStarted {
        /// Id of the tool use whose call started.
        id: String,
    },
    /// A running tool call reported progress.
    ToolProgressed {
        /// Id of the tool use whose call runs.
        id: String,
        /// The progress that the tool reported.
        #[serde(flatten)]
        progress: ToolProgress,
    },
    /// A tool call failed, and the call is attempted again because a repetition is safe.
    ToolRetried {
        /// Id of the tool use whose call is attempted again.
        id: String,
        /// Number of the next attempt, and the reason why the previous attempt failed.
        #[serde(flatten)]
        retry: ToolRetry,
    },
    /// A tool server asks the user a question during a tool call of this run (an MCP elicitation).
    /// Exactly one `question_answered` follows, before the `tool_finished` of the call, unless the
    /// program stops in between.
    QuestionAsked {
        /// Id of the question. The client sends the id back together with the answer.
        id: String,
        /// The question and the tool call that it belongs to.
        question: Box<Elicitation>,
    },
    /// A question of a tool server was answered or withdrawn. The event omits the answer.
    QuestionAnswered {
        /// Id of the question that ended.
        id: String,
        /// How the question ended: accepted, declined or cancelled.
        action: QuestionAction,
    },
    /// A tool use has its result. Every tool use gets exactly one, even if the tool did not run.
    ToolFinished {
        /// Id of the tool use that received the result.
        id: String,
        /// Whether the result is an error, because the tool returned an error or the call has no
        /// output, for example after a denial or a time-out.
        is_error: bool,
        /// Why the tool failed or did not run, such as `denied`, `timeout` or `repeated`. `None` if
        /// the tool succeeded or the result came from the cache.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        failure: Option<ToolFailure>,
        /// Whether the result came from the result cache, so that the tool did not run.
        cached: bool,
        /// Number of attempts to execute the call. 0 if there was none, for example because the
        /// call was denied or its result was cached.
        attempts: u32,
        /// Duration of all attempts of the call, in milliseconds.
        duration_ms: u64,
        /// The texts and media of the result, as the model reads them.
        content: Arc<[ToolContent]>,
        /// The result as structured JSON, if the tool returned structured content.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        structured: Option<Arc<Value>>,
    },
    /// The run waits for approvals that nobody can give now. It was stored, and can be resumed
    /// later. This event is the last one until the run is resumed.
    RunParked {
        /// Ids of the tool uses whose calls wait for approval.
        waiting: Vec<String>,
    },
    /// The run finished. This event is the last one of the run.
    RunFinished {
        /// The report of the run: its answer, outcome and usage.
        report: Box<RunReport>,
    },
}

/// How a question of a tool server ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum QuestionAction {
    /// The user answered the question.
    Accept,
    /// The user declined to answer the question.
    Decline,
    /// The question ended without an answer: the user cancelled it, the tool call ended first, or
    /// the server withdrew the question.
    Cancel,
}

impl From<&ElicitationAnswer> for QuestionAction {
    fn from(answer: &ElicitationAnswer) -> Self {
        match answer {
            ElicitationAnswer::Accept { .. } => Self::Accept,
            ElicitationAnswer::Decline => Self::Decline,
            ElicitationAnswer::Cancel => Self::Cancel,
        }
    }
}

/// A phase of the two-phase strategy: gathering data or formatting the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RunPhase {
    /// The model gathers data with tools and does not write the answer yet.
    Gathering,
    /// The model writes the final answer in the requested format.
    Formatting,
}

impl RunEventKind {
    /// Returns whether a running tool call or its server causes this event. Such an event can occur
    /// between any two other events of the run.
    pub(crate) fn is_from_tool_or_server(&self) -> bool {
        match self {
            Self::ToolProgressed { .. }
            | Self::ToolRetried { .. }
            | Self::QuestionAsked { .. }
            | Self::QuestionAnswered { .. } => true,
            Self::Warning { warning } => warning.kind == WarningKind::QuestionNotAsked,
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_of_tools_and_servers_are_recognized() {
        let warning = |kind| RunEventKind::Warning {
            warning: Warning::new(kind, "why"),
        };
        assert!(warning(WarningKind::QuestionNotAsked).is_from_tool_or_server());
        assert!(!warning(WarningKind::ToolChoiceRelaxed).is_from_tool_or_server());
    }

    /// Events are created for each text delta and moved several times, so large rare data is boxed.
    #[test]
    fn an_event_is_small() {
        assert!(size_of::<RunEvent>() <= 168, "{}", size_of::<RunEvent>());
    }
}
