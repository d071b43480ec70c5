//! The record format of the audit.

use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use switchboard_domain::{
    ApprovalScope, FinishReason, ModelId, Principal, ToolChoice, ToolChoiceOutcome, Usage,
};

use crate::{CallPurpose, Outcome, QuestionAction, ToolFailure};

/// One action of a model, a tool or a person. One line of JSON in an audit file.
///
/// The field `kind` is `run`, `model_call`, `tool_call`, `approval` or `question`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AuditRecord {
    /// Time of the action (RFC 3339, UTC).
    pub time: Timestamp,
    /// Id of the run.
    pub run_id: String,
    /// Sequence number of the run event. One event can produce several records.
    pub seq: u64,
    /// Session of the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// Principal of the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub principal: Option<Principal>,
    /// The action.
    #[serde(flatten)]
    pub kind: AuditKind,
}

/// The action of an audit record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum AuditKind {
    /// A run started, was parked or finished.
    Run(RunEntry),
    /// A model call ended.
    ModelCall(ModelCall),
    /// A tool call started or finished.
    ToolCall(ToolCallEntry),
    /// An approval decision was requested or made.
    Approval(Approval),
    /// A server asked the person a question during a call, or got the answer.
    Question(QuestionEntry),
}

/// A change of a run's state.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunEntry {
    /// The change.
    pub moment: RunMoment,
    /// Model of the run.
    pub model: ModelId,
    /// Outcome of a finished run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,
    /// Number of model calls of a finished run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steps: Option<u32>,
    /// Tokens of all model calls together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// Cost of the observed model calls in US dollars. `None` if a price is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// Kind of the error that ended the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

impl RunEntry {
    pub(crate) fn new(moment: RunMoment, model: ModelId) -> Self {
        Self {
            moment,
            model,
            outcome: None,
            steps: None,
            usage: None,
            cost_usd: None,
            error: None,
        }
    }
}

/// The state that a run reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunMoment {
    /// The run started.
    Started,
    /// The run was loaded from a store and continues.
    Resumed,
    /// The run is stored and waits for approval decisions.
    Parked,
    /// The run ended.
    Finished,
}

/// A model call that ended.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ModelCall {
    /// How the call ended.
    pub end: ModelCallEnd,
    /// Purpose of the call.
    #[serde(default, skip_serializing_if = "CallPurpose::is_answer")]
    pub purpose: CallPurpose,
    /// Number of the call within the run, starting at 1. A summary has the number of the next call.
    pub step: u32,
    /// Configured name of the provider.
    pub provider: Arc<str>,
    /// Requested model.
    pub model: Arc<str>,
    /// Model that answered, as the provider names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answered_by: Option<String>,
    /// Number of offered tools.
    pub tools: usize,
    /// Finish reason of the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finish: Option<FinishReason>,
    /// Finish reason as the provider wrote it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finish_raw: Option<String>,
    /// Token usage that the provider reported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// Cost in US dollars, if the price is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// Requested tool choice.
    #[serde(default)]
    pub tool_choice_asked: ToolChoice,
    /// Effective tool choice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_choice: Option<ToolChoiceOutcome>,
    /// Time from the request to the end of the answer, in milliseconds.
    pub duration_ms: u64,
    /// Kind of the error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// HTTP status of a failed call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// The provider's id of a failed request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
}

/// The end of a model call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ModelCallEnd {
    /// The model answered.
    Answered,
    /// The call returned an error.
    Failed,
    /// The run ended first.
    #[default]
    Cancelled,
}

/// A tool call that started or finished.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ToolCallEntry {
    /// The state. A call with `started` and without `finished` was interrupted; its effect is
    /// unknown.
    pub moment: ToolCallMoment,
    /// Id of the tool use, unique within the run.
    pub id: String,
    /// Server of the tool. `None` for a built-in tool and for a tool that does not exist.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// Name of the tool on its server.
    pub tool: String,
    /// Effective input, redacted and limited in size.
    pub input: Arc<Value>,
    /// Whether the result is an error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_error: Option<bool>,
    /// Reason for a missing result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<ToolFailure>,
    /// Number of attempts. 0 if the tool did not run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempts: Option<u32>,
    /// Whether the result came from the cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached: Option<bool>,
    /// Duration in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    /// Length of the result as JSON, in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result_bytes: Option<u64>,
    /// The result, redacted and limited in size. Only with [`AuditOptions::results`].
    ///
    /// [`AuditOptions::results`]: super::AuditOptions::results
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Value>,
}

/// The state of a tool call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolCallMoment {
    /// The call is about to be sent.
    #[default]
    Started,
    /// The call has a result, also if it did not run.
    Finished,
}

/// An approval request or its decision.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Approval {
    /// Id of the tool use.
    pub id: String,
    /// Server of the tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// Name of the tool on its server.
    pub tool: String,
    /// The decision.
    pub decision: Decision,
    /// Origin of the decision.
    pub by: Decider,
    /// Reason of a denial.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Scope of an approval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<ApprovalScope>,
    /// Whether the approver changed the input.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub edited: bool,
}

/// A decision about a tool call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    /// Approval was requested.
    Asked,
    /// The call is allowed.
    Allowed,
    /// The call is denied.
    Denied,
}

/// The origin of an approval decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Decider {
    /// The rules of the run.
    Policy,
    /// An earlier decision that still applies.
    Remembered,
    /// The approver, or its time-out or absence.
    Approver,
}

/// A question from a server to the person, without its text and without the answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuestionEntry {
    /// The state of the question.
    pub moment: QuestionMoment,
    /// Id of the question, unique within the run.
    pub id: String,
    /// Server that asked. `None` if another process observed the question.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// The answer. `cancel` includes time-outs and calls that ended first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action: Option<QuestionAction>,
}

/// The state of a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum QuestionMoment {
    /// The person was asked.
    Asked,
    /// The question was answered.
    Answered,
}
