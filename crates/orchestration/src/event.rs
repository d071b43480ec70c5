//! What happens in a run, as one ordered stream.

use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use switchboard_domain::{
    ApprovalScope, Elicitation, ElicitationAnswer, FinishReason, ModelId, ServerProblem,
    ToolChoice, ToolChoiceOutcome, ToolContent, ToolHostChange, ToolProgress, ToolRetry, Usage,
    Warning, WarningKind,
};

use crate::{RunReport, ToolFailure};

/// An event of an agent run. `--output jsonl` prints each event as one line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunEvent {
    /// Id of the run that emitted the event.
    pub run_id: Arc<str>,
    /// Sequence number of the event within the run: 1, 2, 3, … without gaps, also if the run is
    /// resumed.
    pub seq: u64,
    /// Time of the event (RFC 3339, UTC).
    pub time: Timestamp,
    /// What happened in the run, with the data of this event kind.
    #[serde(flatten)]
    pub kind: RunEventKind,
}

/// The kinds of events that a run emits, with their data.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum RunEventKind {
    /// The run started, or was resumed in another process.
    RunStarted {
        /// The model of the next call.
        model: ModelId,
        /// Whether the run was resumed from storage.
        resumed: bool,
    },
    /// A server or tool is unavailable. The run continues without it.
    ToolsUnavailable {
        /// The unavailable server or tool, and the reason.
        #[serde(flatten)]
        problem: ServerProblem,
    },
    /// A tool server started, stopped, or changed its tools.
    ServerChanged {
        /// The server and the kind of change.
        change: Box<ToolHostChange>,
    },
    /// A phase of the strategy started. The plain tool loop has no phases.
    PhaseStarted {
        /// The phase that started.
        phase: RunPhase,
        /// The formatting mode, if the run can use several modes.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mode: Option<String>,
    },
    /// The conversation is too long for one request, so older messages are not sent to the model.
    /// They remain in the run's conversation.
    HistoryTrimmed {
        /// Number of omitted messages.
        left_out: usize,
        /// Estimated tokens of the whole history.
        tokens_before: u64,
        /// Estimated tokens of the trimmed request.
        tokens_after: u64,
        /// Whether a summary by the model replaces the omitted messages.
        summarised: bool,
    },
    /// A model call that summarizes omitted messages ended. It does not count as a step.
    HistorySummarised {
        /// Number of the step that follows the summary.
        step: u32,
        /// Id of the model that was called for the summary.
        model: ModelId,
        /// The model id in the provider's response.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        answered_by: Option<String>,
        /// Why the model stopped writing the summary.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        finish_reason: Option<FinishReason>,
        /// Token usage of the summary call.
        usage: Box<Usage>,
        /// The error of the summary call. The run continues without a summary.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<Box<crate::RunError>>,
    },
    /// The run switched to another model, because the previous model failed before it emitted
    /// output.
    ModelSwitched {
        /// Id of the previous model.
        from: ModelId,
        /// Id of the new model.
        to: ModelId,
        /// Why the run switched models.
        reason: String,
    },
    /// From now on, the run sends no tools to the model.
    ToolsDropped {
        /// Why the model gets no tools.
        reason: String,
    },
    /// The response was unusable, and the model is called again.
    AskedAgain {
        /// Number of such repeated calls in the run, starting at 1.
        attempt: u32,
        /// Why the response was unusable.
        reason: String,
    },
    /// The formatted answer was repaired.
    FormatRepaired {
        /// Descriptions of the repairs.
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
        /// The requested tool choice. [`RunEventKind::ModelCallFinished`] reports its effect.
        #[serde(default)]
        tool_choice: ToolChoice,
    },
    /// The model wrote more text of its answer.
    TextDelta {
        /// The text to append to the answer.
        text: String,
    },
    /// The model wrote more reasoning.
    ReasoningDelta {
        /// The text to append to the reasoning.
        text: String,
    },
    /// The model started to write a tool call.
    ToolInputStarted {
        /// Id of the tool use.
        id: String,
        /// Name of the tool that the model calls.
        name: String,
    },
    /// The model wrote more input of a tool call, as JSON text.
    ToolInputDelta {
        /// Id of the tool use.
        id: String,
        /// The JSON text to append to the input.
        json: String,
    },
    /// The response contains a block that the provider produced, such as a web search, a code
    /// execution or opaque data. The run does not execute the block. The conversation keeps it for
    /// the provider.
    ProviderBlock {
        /// The provider's name for the block type, such as `web_search_tool_result`.
        kind: String,
        /// The readable content of the block: the query, the pages, or the output of code.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        text: Option<String>,
    },
    /// A model call ended with a response.
    ModelCallFinished {
        /// Number of the model call within the run.
        step: u32,
        /// The model id in the provider's response.
        model: Option<String>,
        /// Why the model stopped.
        finish_reason: FinishReason,
        /// The finish reason in the provider's wording.
        finish_raw: Option<String>,
        /// Token usage of the model call.
        usage: Box<Usage>,
        /// Whether the model followed the requested tool choice.
        tool_choice: ToolChoiceOutcome,
    },
    /// An attempt of a model call failed before it emitted output. The attempt is repeated after a
    /// pause, and this event precedes the pause. Tool inputs that the failed attempt started are
    /// void.
    ModelCallRetried {
        /// Number of the model call within the run.
        step: u32,
        /// Number of the next attempt; 2 for the first repetition.
        attempt: u32,
        /// Pause before the next attempt, in milliseconds.
        delay_ms: u64,
        /// Why the previous attempt failed.
        reason: String,
    },
    /// A model call failed or was interrupted. Tool inputs that the call started are void.
    ModelCallFailed {
        /// Number of the model call within the run.
        step: u32,
        /// The error of the model call.
        error: Box<crate::RunError>,
    },
    /// The run continues, but something needs attention.
    Warning {
        /// The kind and the message of the warning.
        #[serde(flatten)]
        warning: Warning,
    },
    /// The model requested a tool call.
    ToolPlanned {
        /// Id of the tool use.
        id: String,
        /// Name of the server that offers the tool.
        server: Option<String>,
        /// Name of the tool on its server.
        tool: String,
        /// The input of the tool call, or the model's text if it is not a JSON object.
        input: Arc<Value>,
    },
    /// The input of a tool call was repaired, or a person edited it. Every repair is reported.
    ToolInputRepaired {
        /// Id of the tool use.
        id: String,
        /// Descriptions of the repairs.
        repairs: Vec<String>,
        /// The input after the repairs.
        input: Arc<Value>,
    },
    /// A tool call waits for the approval of a person.
    ToolAwaitingApproval {
        /// Id of the tool use.
        id: String,
    },
    /// A person or an earlier decision approved a tool call.
    ToolApproved {
        /// Id of the tool use.
        id: String,
        /// The calls that the approval covers, such as this call only.
        scope: ApprovalScope,
        /// Whether the person edited the input of the call.
        edited: bool,
        /// Whether an earlier decision applied, so that no person was asked again.
        remembered: bool,
    },
    /// A tool call was denied. The model reads the reason.
    ToolDenied {
        /// Id of the tool use.
        id: String,
        /// Why the call was denied.
        reason: String,
    },
    /// A tool call started.
    ToolStarted {
        /// Id of the tool use.
        id: String,
    },
    /// A running tool call reported progress.
    ToolProgressed {
        /// Id of the tool use.
        id: String,
        /// The progress that the tool reported.
        #[serde(flatten)]
        progress: ToolProgress,
    },
    /// A tool call failed in a way that is safe to repeat, and is attempted again.
    ToolRetried {
        /// Id of the tool use.
        id: String,
        /// Number of the next attempt, and the reason for it.
        #[serde(flatten)]
        retry: ToolRetry,
    },
    /// A tool server requests input from the person during a tool call of this run. Exactly one
    /// `question_answered` follows, before the `tool_finished` of the call, unless the program
    /// stops in between.
    QuestionAsked {
        /// Id of the question, which the answer must name.
        id: String,
        /// The question and the tool call that it belongs to.
        question: Box<Elicitation>,
    },
    /// A question of a tool server was answered or withdrawn. Events do not contain the answer.
    QuestionAnswered {
        /// Id of the question.
        id: String,
        /// Whether the question was answered, declined or cancelled.
        action: QuestionAction,
    },
    /// A tool use received its result, whether or not the tool ran.
    ToolFinished {
        /// Id of the tool use.
        id: String,
        /// Whether the call did not run or returned an error.
        is_error: bool,
        /// Why the tool use has no proper result.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        failure: Option<ToolFailure>,
        /// Whether the result came from the cache.
        cached: bool,
        /// Number of attempts to execute the call; 0 if the tool did not run.
        attempts: u32,
        /// Duration of the call in milliseconds.
        duration_ms: u64,
        /// The result content that the model reads.
        content: Arc<[ToolContent]>,
        /// The result as structured JSON, if the tool returned any.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        structured: Option<Arc<Value>>,
    },
    /// The run waits for approvals that nobody can give now. It is the last event of a run that is
    /// stored for a later resumption.
    RunParked {
        /// Ids of the tool uses that wait for approval.
        waiting: Vec<String>,
    },
    /// The run finished. It is the last event of a run that is not parked.
    RunFinished {
        /// The result of the run: its answer, outcome and usage.
        report: Box<RunReport>,
    },
}

/// What the person did with the question of a tool server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum QuestionAction {
    /// The person answered the question.
    Accept,
    /// The person declined to answer the question.
    Decline,
    /// The answer came too late, or the question was withdrawn.
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

/// A phase of the strategy that a run uses.
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
    /// Returns whether a tool or a server emits this event. Such events occur at any position
    /// between events of the driver.
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
