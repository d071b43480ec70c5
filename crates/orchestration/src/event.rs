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

/// One thing that happened. `--output jsonl` prints each as one line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunEvent {
    /// The run.
    pub run_id: Arc<str>,
    /// Its number within the run: 1, 2, 3, … without gaps, also across a resume.
    pub seq: u64,
    /// When it happened (RFC 3339, UTC).
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
    /// The run began, or goes on in another process.
    RunStarted {
        /// The model that will be asked.
        model: ModelId,
        /// The run was stored and goes on.
        resumed: bool,
    },
    /// A server or tool is missing; the run goes on without.
    ToolsUnavailable {
        /// Which and why.
        #[serde(flatten)]
        problem: ServerProblem,
    },
    /// A server came up, went away, or its tools changed.
    ServerChanged {
        /// What changed.
        change: Box<ToolHostChange>,
    },
    /// The run enters a phase of its strategy. A plain loop has none.
    PhaseStarted {
        /// Which.
        phase: RunPhase,
        /// By which means, where there are several: how the formatter is brought about.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mode: Option<String>,
    },
    /// The conversation grew too long for one request; older groups of it are not sent. They stay
    /// in the history of the run.
    HistoryTrimmed {
        /// How many messages are left out.
        left_out: usize,
        /// Estimated tokens of the whole history.
        tokens_before: u64,
        /// Estimated tokens of what is sent.
        tokens_after: u64,
        /// A summary by the model stands in for what is left out.
        summarised: bool,
    },
    /// The model was asked for a summary of what is left out, and this is how that ended. It is no step.
    HistorySummarised {
        /// The step before which it was asked.
        step: u32,
        /// The model.
        model: ModelId,
        /// The model that answered, in the provider's words.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        answered_by: Option<String>,
        /// Why it stopped.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        finish_reason: Option<FinishReason>,
        /// What it cost.
        usage: Box<Usage>,
        /// Why there is none; the run goes on without.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<Box<crate::RunError>>,
    },
    /// Another model goes on, because the one before failed and had shown nothing yet.
    ModelSwitched {
        /// The one that failed.
        from: ModelId,
        /// The one that goes on.
        to: ModelId,
        /// Why.
        reason: String,
    },
    /// The model is asked without tools from here on.
    ToolsDropped {
        /// Why.
        reason: String,
    },
    /// The answer was of no use and the model is asked again.
    AskedAgain {
        /// How often this was done in the run: 1 for the first time.
        attempt: u32,
        /// What was wrong with the answer.
        reason: String,
    },
    /// The model's formatted answer was mended before it was read.
    FormatRepaired {
        /// What was done, in words.
        repairs: Vec<String>,
    },
    /// A model is asked.
    ModelCallStarted {
        /// 1 for the first call of the run.
        step: u32,
        /// The model.
        model: ModelId,
        /// How many tools it was offered.
        tools: usize,
        /// Which of them it may or must use. What became of that is told when it has answered.
        #[serde(default)]
        tool_choice: ToolChoice,
    },
    /// More of the answer's text.
    TextDelta {
        /// The text to append.
        text: String,
    },
    /// More of the model's thinking.
    ReasoningDelta {
        /// The text to append.
        text: String,
    },
    /// The model begins to write a tool call.
    ToolInputStarted {
        /// The tool use.
        id: String,
        /// The tool's name as declared.
        name: String,
    },
    /// More of a tool call's input, as JSON text.
    ToolInputDelta {
        /// The tool use.
        id: String,
        /// The text to append.
        json: String,
    },
    /// The provider did something on its own side, such as a web search or running code, or said
    /// something that only it understands. Nothing of it runs here; the block itself is kept in the
    /// history for the provider.
    ProviderBlock {
        /// The provider's own word for it, such as `web_search_tool_result`.
        kind: String,
        /// What a person can read of it: what was searched, which pages were found, what code printed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        text: Option<String>,
    },
    /// The model has answered.
    ModelCallFinished {
        /// Which call.
        step: u32,
        /// The model, in the provider's words.
        model: Option<String>,
        /// Why it stopped.
        finish_reason: FinishReason,
        /// The provider's own word for it.
        finish_raw: Option<String>,
        /// What it cost.
        usage: Box<Usage>,
        /// What became of the tool choice.
        tool_choice: ToolChoiceOutcome,
    },
    /// An attempt of a model call failed before it showed anything, and the model is asked again after a
    /// pause. The event comes before the pause. Tool inputs that this call has begun are void.
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
    /// The model could not be asked or broke off. Tool inputs that this call has begun are void.
    ModelCallFailed {
        /// Which call.
        step: u32,
        /// Why.
        error: Box<crate::RunError>,
    },
    /// Something was not done as asked.
    Warning {
        /// What.
        #[serde(flatten)]
        warning: Warning,
    },
    /// The model asked for a tool.
    ToolPlanned {
        /// The tool use.
        id: String,
        /// The server that offers it.
        server: Option<String>,
        /// The tool's own name.
        tool: String,
        /// Its input, or what the model wrote if that was no object.
        input: Arc<Value>,
    },
    /// The model's input did not fit and was mended, or a person changed it. Nothing is mended
    /// silently.
    ToolInputRepaired {
        /// The tool use.
        id: String,
        /// What was done, in words.
        repairs: Vec<String>,
        /// The input as it is now.
        input: Arc<Value>,
    },
    /// A person is asked whether the tool may run.
    ToolAwaitingApproval {
        /// The tool use.
        id: String,
    },
    /// The tool may run.
    ToolApproved {
        /// The tool use.
        id: String,
        /// For how long the answer holds.
        scope: ApprovalScope,
        /// The input was changed by whoever decided.
        edited: bool,
        /// Nobody was asked: an earlier answer holds.
        remembered: bool,
    },
    /// The tool will not run; the model is told why.
    ToolDenied {
        /// The tool use.
        id: String,
        /// Why.
        reason: String,
    },
    /// The tool runs.
    ToolStarted {
        /// The tool use.
        id: String,
    },
    /// The tool says how far it is.
    ToolProgressed {
        /// The tool use.
        id: String,
        /// How far.
        #[serde(flatten)]
        progress: ToolProgress,
    },
    /// The call did not get through and is made again, which does no harm.
    ToolRetried {
        /// The tool use.
        id: String,
        /// Which attempt is coming and why.
        #[serde(flatten)]
        retry: ToolRetry,
    },
    /// A server wants to know something of the person in the middle of a call of this run. Exactly one
    /// `question_answered` follows, before the call's `tool_finished`, unless the program ends in between.
    QuestionAsked {
        /// The question, by which it is answered.
        id: String,
        /// What it wants to know, and within which call.
        question: Box<Elicitation>,
    },
    /// A question is over. What was answered is between the person and the server.
    QuestionAnswered {
        /// The question.
        id: String,
        /// How it was answered, or that it was not.
        action: QuestionAction,
    },
    /// The tool use has its result, whether the tool ran or not.
    ToolFinished {
        /// The tool use.
        id: String,
        /// It did not run or says that it failed.
        is_error: bool,
        /// Why there is no proper result.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        failure: Option<ToolFailure>,
        /// The result came from the cache.
        cached: bool,
        /// How often it was tried; 0 if it did not run.
        attempts: u32,
        /// How long it took, in milliseconds.
        duration_ms: u64,
        /// What the model reads.
        content: Arc<[ToolContent]>,
        /// The same as data.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        structured: Option<Arc<Value>>,
    },
    /// The run waits for approvals that nobody can give now. The last event of a run that is stored
    /// to be continued later.
    RunParked {
        /// The tool uses that wait.
        waiting: Vec<String>,
    },
    /// The run is over. The last event, unless it was parked.
    RunFinished {
        /// How it ended.
        report: Box<RunReport>,
    },
}

/// How a question of a server was answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum QuestionAction {
    /// The person agreed.
    Accept,
    /// They would not say.
    Decline,
    /// Nobody answered in time, or the question was withdrawn.
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
    /// The model puts what was gathered into the form of the answer.
    Formatting,
}

impl RunEventKind {
    /// Whether it may be told at any time between those of the driver: tools and servers say it.
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
    fn what_a_server_makes_happen_may_come_at_any_time() {
        let told = |kind| RunEventKind::Warning {
            warning: Warning::new(kind, "why"),
        };
        assert!(told(WarningKind::QuestionNotAsked).is_from_outside());
        assert!(!told(WarningKind::ToolChoiceRelaxed).is_from_outside());
    }

    /// One is made for every word that a model writes, and handed on several times. What is big and rare is boxed.
    #[test]
    fn an_event_is_small() {
        assert!(size_of::<RunEvent>() <= 168, "{}", size_of::<RunEvent>());
    }
}
