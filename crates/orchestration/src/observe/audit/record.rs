//! Types of the audit records, which are serialized as JSON Lines.

use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use switchboard_domain::{
    ApprovalScope, FinishReason, ModelId, Principal, ToolChoice, ToolChoiceOutcome, Usage,
};

use crate::{ModelCallPurpose, Outcome, QuestionAction, ToolFailure};

/// One action of a model, a tool or a person. An audit file has one line of JSON per action.
///
/// The field `kind` is `run`, `model_call`, `tool_call`, `approval` or `question`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AuditRecord {
    /// Time of the action (RFC 3339, UTC).
    pub time: Timestamp,
    /// Id of the run in which the action happened.
    pub run_id: String,
    /// Sequence number of the run event that reports the action. One event can produce several
    /// records.
    pub seq: u64,
    /// Session id of the run, if the run belongs to a session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// Principal (user and tenant) on whose behalf the run executes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub principal: Option<Principal>,
    /// The recorded action. Its fields are part of the JSON object of the record.
    #[serde(flatten)]
    pub kind: AuditKind,
}

/// The action that an audit record describes, by its kind.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum AuditKind {
    /// A run started, was resumed, was parked (stored until approval decisions arrive) or finished.
    Run(AuditedRun),
    /// A model call ended.
    ModelCall(AuditedModelCall),
    /// A tool call started or finished.
    ToolCall(AuditedToolCall),
    /// An approval decision was requested or made.
    Approval(AuditedApproval),
    /// A tool server asked the user a question during a tool call, or such a question ended.
    Question(AuditedQuestion),
}

/// Audit data about a run that started, was resumed, was parked (stored until approval decisions
/// arrive) or finished.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AuditedRun {
    /// Stage that the run reached: started, resumed, parked or finished.
    pub moment: RunStage,
    /// Id of the model that the run used at the time of the record.
    pub model: ModelId,
    /// Outcome of the run, recorded only at its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,
    /// Number of model calls in the run. Calls that summarize older messages are not counted.
    /// Recorded only at the end of the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steps: Option<u32>,
    /// Token usage of all model calls of the run, recorded only at its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// Cost in US dollars of the model calls that this process observed. Recorded only at the end
    /// of the run. `None` if no model call was observed or a price is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// Kind of the error that ended the run, if an error did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

impl AuditedRun {
    pub(crate) fn new(moment: RunStage, model: ModelId) -> Self {
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

/// Stage of a run that an audit record reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunStage {
    /// The run started in this process.
    Started,
    /// The run was loaded from a store and continues in this process.
    Resumed,
    /// The run is stored and waits for approval decisions.
    Parked,
    /// The run ended with an answer, a limit, an error or a cancellation.
    Finished,
}

/// Audit data about a model call that ended.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct AuditedModelCall {
    /// How the model call ended: with an answer, an error or a cancellation.
    pub end: ModelCallResult,
    /// Purpose of the model call, such as a summary of older messages.
    #[serde(default, skip_serializing_if = "ModelCallPurpose::is_answer_call")]
    pub purpose: ModelCallPurpose,
    /// Number of the model call within the run, starting at 1. A summary call has the number of the
    /// call that follows it.
    pub step: u32,
    /// Name of the model's provider in the configuration.
    pub provider: Arc<str>,
    /// Name of the model that the request asked for.
    pub model: Arc<str>,
    /// Name of the model in the provider's response. It can differ from the requested model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answered_by: Option<String>,
    /// Number of tools that the request offered to the model.
    pub tools: usize,
    /// Provider-independent reason why the model stopped writing. `None` if the model call has no
    /// complete answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finish: Option<FinishReason>,
    /// Finish reason in the provider's wording, such as `end_turn`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finish_raw: Option<String>,
    /// Token usage that the provider reported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// Cost of the model call in US dollars, if the price of the model is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// Tool choice that the request asked for.
    #[serde(default)]
    pub tool_choice_asked: ToolChoice,
    /// Whether the tool choice of the request was enforced: by the provider's API, by this
    /// program's adapter for the provider, or not at all. `None` if the call has no complete
    /// answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_choice: Option<ToolChoiceOutcome>,
    /// Time from the model request to the end of the answer, in milliseconds.
    pub duration_ms: u64,
    /// Kind of the error of a failed model call, such as `rate_limited`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// HTTP status of the provider's error response. `None` if the model call did not fail or no
    /// response arrived.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// Id that the provider assigned to the failed request, for questions to the provider's
    /// support.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
}

/// How a model call ended: with an answer, an error or a cancellation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ModelCallResult {
    /// The model call ended with an answer.
    Answered,
    /// The model call returned an error.
    Failed,
    /// The run ended, or started another model call, before the model answered.
    #[default]
    Cancelled,
}

/// Audit data about the start or the end of a tool call.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct AuditedToolCall {
    /// Whether the tool call started or finished. A call without a `finished` record was
    /// interrupted, and its effect is unknown.
    pub moment: ToolCallStage,
    /// Id of the tool use, unique within the run.
    pub id: String,
    /// Server of the tool. `None` for a tool without a server, such as a Rust function, and for a
    /// tool that does not exist.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// Name of the tool on its server.
    pub tool: String,
    /// Input of the call after repairs, without values that are hidden from the model. Audit
    /// records contain the input redacted and limited in size.
    pub input: Arc<Value>,
    /// Whether the result of the tool is an error. `None` in the record of the start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_error: Option<bool>,
    /// Why the tool failed or did not run, such as `denied`, `timeout` or `repeated`. `None` if the
    /// tool succeeded, the result came from the cache, or the call has not ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<ToolFailure>,
    /// Number of attempts to execute the call. 0 if there was none, for example because the call
    /// was denied or its result was cached. `None` in the record of the start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempts: Option<u32>,
    /// Whether the result came from the result cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached: Option<bool>,
    /// Duration of the tool call in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    /// Size of the content of the tool result as JSON, in bytes. Structured content is not
    /// included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result_bytes: Option<u64>,
    /// Result of the tool, redacted and limited in size. Recorded only with
    /// [`AuditOptions::results`].
    ///
    /// [`AuditOptions::results`]: super::AuditOptions::results
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Value>,
}

/// Stage of a tool call that an audit record reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolCallStage {
    /// The run is about to send the tool call to its server.
    #[default]
    Started,
    /// The tool call has a result, even if the tool did not run.
    Finished,
}

/// Audit data about an approval request or its decision.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AuditedApproval {
    /// Id of the tool use that requires approval.
    pub id: String,
    /// Server of the tool. `None` for a tool without a server, such as a Rust function.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// Name of the tool on its server.
    pub tool: String,
    /// Whether approval was requested, given or denied.
    pub decision: ApprovalStage,
    /// Source of the approval decision: the rules, a remembered decision or the approver. `policy`
    /// if the record is about a request for approval.
    pub by: DecisionSource,
    /// Reason of a denial, redacted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Scope of an approval: one call, the session or all sessions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<ApprovalScope>,
    /// Whether the approver edited the input of the tool call.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub edited: bool,
}

/// Stage of an approval: requested, given or denied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalStage {
    /// A person was asked for approval.
    Asked,
    /// The tool call is allowed to run.
    Allowed,
    /// The tool call is denied and does not run.
    Denied,
}

/// The source of an approval decision: the rules, a remembered decision or the approver.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DecisionSource {
    /// The approval rules of the run decided, without asking a person.
    Policy,
    /// An earlier decision of a person, which was remembered, applied.
    Remembered,
    /// The approver decided, did not answer in time, or was absent.
    Approver,
}

/// Audit data about a question from a tool server to the user. It contains neither the question nor
/// the answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditedQuestion {
    /// Whether the question was asked or answered.
    pub moment: QuestionStage,
    /// Id of the question, unique within the run.
    pub id: String,
    /// Server that asked the question. `None` if the question ended in this process, but was asked
    /// in another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// How the question ended. `None` in a record about a question that was asked. `cancel` also
    /// means that the answer did not arrive in time or that the tool call ended first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action: Option<QuestionAction>,
}

/// Stage of a question from a tool server to the user.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum QuestionStage {
    /// A tool server asked the user a question.
    Asked,
    /// The question ended: the user answered, declined, or did not answer in time.
    Answered,
}
