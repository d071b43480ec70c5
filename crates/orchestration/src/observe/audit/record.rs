//! One line of the audit.

use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use switchboard_domain::{
    ApprovalScope, FinishReason, ModelId, Principal, ToolChoice, ToolChoiceOutcome, Usage,
};

use crate::{CallPurpose, Outcome, QuestionAction, ToolFailure};

/// One thing that a model, a tool or a person did, as one line of JSON.
///
/// `kind` says what: `run`, `model_call`, `tool_call`, `approval` or `question`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AuditRecord {
    /// When (RFC 3339, UTC).
    pub time: Timestamp,
    /// The run.
    pub run_id: String,
    /// The number of the run's event that told it. Several records may come of one event.
    pub seq: u64,
    /// The session, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// On whose behalf, if that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub principal: Option<Principal>,
    /// What.
    #[serde(flatten)]
    pub kind: AuditKind,
}

/// What a record is about.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum AuditKind {
    /// A run began or ended.
    Run(RunEntry),
    /// A model was asked, and how that ended.
    ModelCall(ModelCall),
    /// A tool is about to run, or has its result.
    ToolCall(ToolCallEntry),
    /// Whether a tool may run.
    Approval(Approval),
    /// A server asked the person something in the middle of a call, or was answered.
    Question(QuestionEntry),
}

/// A run began or ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunEntry {
    /// Which of these.
    pub moment: RunMoment,
    /// The model.
    pub model: ModelId,
    /// How it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,
    /// Calls of the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steps: Option<u32>,
    /// Tokens of all steps together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// What the model calls of this run that were seen here cost in US dollars; `None` if the price
    /// of one of them is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// What sort of error it ended with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// A moment of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunMoment {
    /// It began.
    Started,
    /// It was stored and goes on.
    Resumed,
    /// It waits for approvals and is stored.
    Parked,
    /// It is over.
    Finished,
}

/// A model was asked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ModelCall {
    /// How it ended.
    pub end: ModelCallEnd,
    /// What it was asked for.
    #[serde(default, skip_serializing_if = "CallPurpose::is_answer")]
    pub purpose: CallPurpose,
    /// Which call of the run, from 1 on. A summary is none, and is told with the one that comes after it.
    pub step: u32,
    /// The provider's name in the configuration.
    pub provider: Arc<str>,
    /// The model that was asked for.
    pub model: Arc<str>,
    /// The model that answered, in the provider's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answered_by: Option<String>,
    /// How many tools it was offered.
    pub tools: usize,
    /// Why it stopped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finish: Option<FinishReason>,
    /// The provider's own word for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finish_raw: Option<String>,
    /// What it cost in tokens, as far as the provider said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// What it cost in US dollars, if the price is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// Which tools it might or had to use.
    #[serde(default)]
    pub tool_choice_asked: ToolChoice,
    /// What became of the tool choice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_choice: Option<ToolChoiceOutcome>,
    /// From the request to the end of the answer, in milliseconds.
    pub duration_ms: u64,
    /// What sort of error it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The HTTP status of a failed call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// The provider's id of a failed request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
}

/// How a call of a model ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ModelCallEnd {
    /// With an answer.
    Answered,
    /// With an error.
    Failed,
    /// The run ended before it.
    Cancelled,
}

/// A tool is about to run, or has its result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolCallEntry {
    /// Which of these. A `started` without its `finished` was interrupted, and what the tool did is not
    /// known.
    pub moment: ToolCallMoment,
    /// The tool use, unique within the run.
    pub id: String,
    /// The server; `None` for a tool of the program itself, and for one that does not exist.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// The tool's own name.
    pub tool: String,
    /// The input as it ran, or would have, without secrets and cut to size.
    pub input: Value,
    /// It did not run or says that it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_error: Option<bool>,
    /// Why there is no proper result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<ToolFailure>,
    /// How often it was tried; 0 if it did not run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempts: Option<u32>,
    /// The result came from the cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached: Option<bool>,
    /// How long it took, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    /// How much the model was given to read, in bytes of JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result_bytes: Option<u64>,
    /// The result, without secrets and cut to size; only where that is wanted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Value>,
}

/// A moment of a tool call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolCallMoment {
    /// The call is about to leave.
    Started,
    /// It has its result, whether it ran or not.
    Finished,
}

/// Whether a tool may run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Approval {
    /// The tool use.
    pub id: String,
    /// The server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// The tool's own name.
    pub tool: String,
    /// What was decided.
    pub decision: Decision,
    /// By whom.
    pub by: Decider,
    /// Why it may not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// For how long a yes holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<ApprovalScope>,
    /// The input was changed by whoever decided.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub edited: bool,
}

/// What was decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    /// It is being asked for.
    Asked,
    /// It may run.
    Allowed,
    /// It may not.
    Denied,
}

/// Who decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Decider {
    /// The rules of the run, which ask, or refuse without asking.
    Policy,
    /// An earlier answer that still holds.
    Remembered,
    /// Whoever was asked. Also a time that ran out, or nobody being there.
    Approver,
}

/// A server's question to the person, on whose behalf the run is. What is asked and what is answered is between them:
/// neither is kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuestionEntry {
    /// Which of these.
    pub moment: QuestionMoment,
    /// The question, unique within the run.
    pub id: String,
    /// The server; `None` for a question that was asked where nobody of us saw it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// How it was answered. `cancel` also where nobody answered in time, or the call ended before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action: Option<QuestionAction>,
}

/// A moment of a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum QuestionMoment {
    /// The person is asked.
    Asked,
    /// It is over.
    Answered,
}
