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

/// An event of a run. `--output jsonl` prints each event as one line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunEvent {
    /// The run.
    pub run_id: Arc<str>,
    /// Number within the run: 1, 2, 3, … without gaps, also across a resumption.
    pub seq: u64,
    /// Time of the event (RFC 3339, UTC).
    pub time: Timestamp,
    /// What happened.
    #[serde(flatten)]
    pub kind: RunEventKind,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum RunEventKind {
    /// The run started, or was resumed in another process.
    RunStarted {
        /// The model of the next call.
        model: ModelId,
        /// Whether the run was resumed.
        resumed: bool,
    },
    /// A server or tool is unavailable. The run continues without it.
    ToolsUnavailable {
        /// The server and the reason.
        #[serde(flatten)]
        problem: ServerProblem,
    },
    /// A server started, stopped, or changed its tools.
    ServerChanged {
        /// The change.
        change: Box<ToolHostChange>,
    },
    /// A phase of the strategy started. The plain loop has no phases.
    PhaseStarted {
        /// Which.
        phase: RunPhase,
        /// The formatting mode, if there are several.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mode: Option<String>,
    },
    /// The conversation is too long for one request, so that older messages are not sent. They stay
    /// in the conversation of the run.
    HistoryTrimmed {
        /// Number of omitted messages.
        left_out: usize,
        /// Estimated tokens of the whole history.
        tokens_before: u64,
        /// Estimated tokens of the request.
        tokens_after: u64,
        /// Whether a summary by the model replaces the omitted messages.
        summarised: bool,
    },
    /// A model call for a summary of omitted messages ended. It does not count as a step.
    HistorySummarised {
        /// The step that follows the summary.
        step: u32,
        /// The model.
        model: ModelId,
        /// The model as named by the provider.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        answered_by: Option<String>,
        /// Why it stopped.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        finish_reason: Option<FinishReason>,
        /// Tokens of the call.
        usage: Box<Usage>,
        /// The error of the call. The run continues without a summary.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<Box<crate::RunError>>,
    },
    /// Another model continues, because the previous one failed before it showed output.
    ModelSwitched {
        /// The previous model.
        from: ModelId,
        /// The new model.
        to: ModelId,
        /// Why.
        reason: String,
    },
    /// From now on the model gets no tools.
    ToolsDropped {
        /// Why.
        reason: String,
    },
    /// The response was unusable, and the model is called again.
    AskedAgain {
        /// Number of such calls in the run, starting at 1.
        attempt: u32,
        /// The fault of the response.
        reason: String,
    },
    /// The formatted answer was repaired.
    FormatRepaired {
        /// Descriptions of the repairs.
        repairs: Vec<String>,
    },
    /// A model call started.
    ModelCallStarted {
        /// Number of the call, starting at 1.
        step: u32,
        /// The model.
        model: ModelId,
        /// Number of offered tools.
        tools: usize,
        /// The requested tool choice. The end of the call reports its effect.
        #[serde(default)]
        tool_choice: ToolChoice,
    },
    /// More text of the answer.
    TextDelta {
        /// The text to append.
        text: String,
    },
    /// More reasoning of the model.
    ReasoningDelta {
        /// The text to append.
        text: String,
    },
    /// The model started to write a tool call.
    ToolInputStarted {
        /// The tool use.
        id: String,
        /// The tool's name as declared.
        name: String,
    },
    /// More input of a tool call, as JSON text.
    ToolInputDelta {
        /// The tool use.
        id: String,
        /// The text to append.
        json: String,
    },
    /// A block of the provider, such as a web search, a code execution or opaque data. Nothing of
    /// it runs here. The conversation keeps the block for the provider.
    ProviderBlock {
        /// The type of the block at the provider, such as `web_search_tool_result`.
        kind: String,
        /// The readable content: the query, the pages, the output of code.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        text: Option<String>,
    },
    /// A model call ended with a response.
    ModelCallFinished {
        /// Which call.
        step: u32,
        /// The model as named by the provider.
        model: Option<String>,
        /// Why it stopped.
        finish_reason: FinishReason,
        /// The finish reason as written by the provider.
        finish_raw: Option<String>,
        /// Tokens of the call.
        usage: Box<Usage>,
        /// The effect of the tool choice.
        tool_choice: ToolChoiceOutcome,
    },
    /// An attempt of a model call failed before it showed output, and is repeated after a pause.
    /// The event precedes the pause. Tool inputs that the attempt started are void.
    ModelCallRetried {
        /// Which call.
        step: u32,
        /// Number of the attempt that follows. 2 for the first repetition.
        attempt: u32,
        /// Pause before that attempt, in milliseconds.
        delay_ms: u64,
        /// Why the attempt before it failed.
        reason: String,
    },
    /// A model call failed or was interrupted. Tool inputs that it started are void.
    ModelCallFailed {
        /// Which call.
        step: u32,
        /// Why.
        error: Box<crate::RunError>,
    },
    /// A warning.
    Warning {
        /// What.
        #[serde(flatten)]
        warning: Warning,
    },
    /// The model requested a tool call.
    ToolPlanned {
        /// The tool use.
        id: String,
        /// The server that offers it.
        server: Option<String>,
        /// The tool's own name.
        tool: String,
        /// The input, or the text of the model if it is not an object.
        input: Arc<Value>,
    },
    /// The input of the model was repaired, or a person edited it. Every repair is reported.
    ToolInputRepaired {
        /// The tool use.
        id: String,
        /// Descriptions of the repairs.
        repairs: Vec<String>,
        /// The changed input.
        input: Arc<Value>,
    },
    /// The call waits for the approval of a person.
    ToolAwaitingApproval {
        /// The tool use.
        id: String,
    },
    /// The call was approved.
    ToolApproved {
        /// The tool use.
        id: String,
        /// The scope of the decision.
        scope: ApprovalScope,
        /// Whether the person edited the input.
        edited: bool,
        /// Whether an earlier decision applied, without a new request.
        remembered: bool,
    },
    /// The call was denied. The model reads the reason.
    ToolDenied {
        /// The tool use.
        id: String,
        /// Why.
        reason: String,
    },
    /// The call started.
    ToolStarted {
        /// The tool use.
        id: String,
    },
    /// Progress of the call.
    ToolProgressed {
        /// The tool use.
        id: String,
        /// The progress.
        #[serde(flatten)]
        progress: ToolProgress,
    },
    /// The call failed in a way that is safe to repeat, and is repeated.
    ToolRetried {
        /// The tool use.
        id: String,
        /// The next attempt and the reason.
        #[serde(flatten)]
        retry: ToolRetry,
    },
    /// A server requests input from the person during a call of this run. Exactly one
    /// `question_answered` follows, before the `tool_finished` of the call, unless the program ends
    /// in between.
    QuestionAsked {
        /// Id of the question, for its answer.
        id: String,
        /// The question and its call.
        question: Box<Elicitation>,
    },
    /// A question ended. The events do not contain the answer.
    QuestionAnswered {
        /// The question.
        id: String,
        /// The kind of the answer.
        action: QuestionAction,
    },
    /// The tool use received its result, whether or not the tool ran.
    ToolFinished {
        /// The tool use.
        id: String,
        /// Whether the call did not run or returned an error.
        is_error: bool,
        /// The reason for a missing result.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        failure: Option<ToolFailure>,
        /// Whether the result came from the cache.
        cached: bool,
        /// Number of attempts; 0 if the tool did not run.
        attempts: u32,
        /// Duration in milliseconds.
        duration_ms: u64,
        /// The content that the model reads.
        content: Arc<[ToolContent]>,
        /// The result as structured content.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        structured: Option<Arc<Value>>,
    },
    /// The run waits for approvals that are not available now. It is the last event of a run that is
    /// stored for a later resumption.
    RunParked {
        /// Ids of the waiting tool uses.
        waiting: Vec<String>,
    },
    /// The run finished. It is the last event of a run that is not parked.
    RunFinished {
        /// How it ended.
        report: Box<RunReport>,
    },
}

/// The kind of an answer to the question of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum QuestionAction {
    /// The person answered.
    Accept,
    /// The person declined.
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

/// A phase of a strategy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RunPhase {
    /// The model gathers data with tools and does not answer yet.
    Gathering,
    /// The model formats the answer.
    Formatting,
}

impl RunEventKind {
    /// Returns whether tools or servers emit the event, at any position between events of the
    /// driver.
    pub(crate) fn is_from_outside(&self) -> bool {
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
        assert!(warning(WarningKind::QuestionNotAsked).is_from_outside());
        assert!(!warning(WarningKind::ToolChoiceRelaxed).is_from_outside());
    }

    /// Events are created for each text delta and moved several times, so large rare data is boxed.
    #[test]
    fn an_event_is_small() {
        assert!(size_of::<RunEvent>() <= 168, "{}", size_of::<RunEvent>());
    }
}
