//! Schemas of domain and core types for the OpenAPI document.
//!
//! They are defined here because the crates of these types do not depend on OpenAPI. A test
//! validates real responses with the document. A type that may get more values upstream accepts
//! them here too.
#![allow(dead_code, reason = "only the derived schemas are used")]

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

/// The tool choice of the first step.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ToolChoice {
    /// The model decides.
    Auto,
    /// No tool. The tools stay declared.
    None,
    /// At least one tool of any name.
    Required,
    /// At least one tool of these names.
    Only(Vec<String>),
}

/// The amount of reasoning before the answer.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ReasoningEffort {
    /// No reasoning, where the model can switch it off.
    None,
    /// Little reasoning.
    Low,
    /// A medium amount.
    Medium,
    /// Much reasoning.
    High,
}

/// A stored conversation.
#[derive(Serialize, ToSchema)]
pub(crate) struct Session {
    /// The id.
    id: String,
    /// The title.
    title: String,
    /// The time of creation, RFC 3339 in UTC.
    #[schema(format = DateTime)]
    created_at: String,
    /// The number of messages.
    messages: u64,
}

/// The state of a run.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RunState {
    /// A process executes it.
    Running,
    /// It is stored and waits for a decision, which resumes it.
    Waiting,
    /// Its process ended early. `POST /runs/{id}/continue` resumes it.
    Interrupted,
    /// It is finished.
    Finished,
}

/// A run.
#[derive(Serialize, ToSchema)]
pub(crate) struct RunRecord {
    /// The id. Ids sort by time.
    id: String,
    /// The session. Empty for an ephemeral run.
    session: String,
    /// The state.
    state: RunState,
    /// The model at the start, as `PROVIDER/MODEL`.
    model: String,
    /// The time of creation, RFC 3339 in UTC.
    #[schema(format = DateTime)]
    created_at: String,
    /// The time of the last stored change, RFC 3339 in UTC.
    #[schema(format = DateTime)]
    updated_at: String,
    /// The number of events of earlier runs of the session. The event `seq` of the run has the
    /// number `events_before + seq` in the session.
    events_before: u64,
    /// The number of the last event. 0 before the first.
    last_event: u64,
    /// The outcome.
    #[schema(nullable = false)]
    outcome: Option<Outcome>,
}

/// The outcome of a run: an answer, a limit, an error, or a cancellation.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Outcome {
    Completed,
    Limited,
    Failed,
    Cancelled,
}

/// A message.
#[derive(Serialize, ToSchema)]
pub(crate) struct Message {
    /// The author.
    role: Role,
    /// The parts, in order.
    parts: Vec<Part>,
}

/// The author of a message.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Role {
    System,
    User,
    Assistant,
    Tool,
}

/// A value with a type. A part of a message is `text`, `image`, `document`, `audio`, `reasoning`,
/// `tool_use` or `tool_result`; `opaque` parts are only for their provider. An item of an answer is
/// `text` with `text`, or an `artifact` with `artifactType`, `title`, `content` and `language`.
#[derive(Serialize, ToSchema)]
pub(crate) struct Part {
    /// The type.
    #[serde(rename = "type")]
    kind: String,
    /// The fields of the type.
    #[serde(flatten)]
    #[schema(value_type = BTreeMap<String, Value>)]
    fields: BTreeMap<String, Value>,
}

/// The report of a finished run.
#[derive(Serialize, ToSchema)]
pub(crate) struct RunReport {
    /// The run.
    run_id: String,
    /// The session.
    session_id: Option<String>,
    /// The model, as `PROVIDER/MODEL`.
    model: String,
    /// The answer as text, incomplete if the run ended early.
    answer: String,
    /// The items of the answer.
    content: Vec<Part>,
    /// The outcome.
    outcome: Outcome,
    /// The last finish reason: `stop`, `tool_use`, `length`…, or an object with a provider-specific
    /// reason.
    #[schema(value_type = Option<Value>)]
    finish_reason: Option<Value>,
    /// The number of model calls.
    steps: u32,
    /// The token counts of all steps.
    usage: Usage,
    /// The tool calls, in the order of the model.
    tool_calls: Vec<ToolCallRecord>,
    /// The warnings.
    warnings: Vec<Warning>,
    /// The error or the reached limit.
    error: Option<RunError>,
}

/// Token counts. A count that the provider did not report is `null`.
#[derive(Serialize, ToSchema)]
#[expect(clippy::struct_field_names, reason = "the names in JSON")]
pub(crate) struct Usage {
    /// Tokens of the whole prompt.
    input_tokens: Option<u64>,
    /// Output tokens, including reasoning.
    output_tokens: Option<u64>,
    /// Input tokens read from a prompt cache.
    cache_read_tokens: Option<u64>,
    /// Input tokens written to a prompt cache.
    cache_write_tokens: Option<u64>,
    /// Output tokens for reasoning.
    reasoning_tokens: Option<u64>,
}

/// A tool call of a run.
#[derive(Serialize, ToSchema)]
pub(crate) struct ToolCallRecord {
    /// The id of the tool use.
    id: String,
    /// The server of the tool.
    server: Option<String>,
    /// The original name of the tool.
    tool: String,
    /// The executed input, or the malformed text of the model.
    input: Value,
    /// Whether the tool failed or was not executed.
    is_error: bool,
    /// The kind of failure.
    #[schema(nullable = false)]
    failure: Option<String>,
    /// Whether the result is from the cache.
    cached: bool,
    /// The number of attempts. 0 if the tool was not executed.
    attempts: u32,
    /// The duration in milliseconds.
    duration_ms: u64,
    /// The result.
    result: RecordedResult,
}

/// The result of a tool.
#[derive(Serialize, ToSchema)]
pub(crate) struct RecordedResult {
    /// The content for the model.
    content: Vec<Part>,
    /// The structured result.
    structured: Option<Value>,
}

/// A deviation from the request.
#[derive(Serialize, ToSchema)]
pub(crate) struct Warning {
    /// The kind.
    kind: String,
    /// The description.
    message: String,
}

/// The reason why a run has no complete answer.
#[derive(Serialize, ToSchema)]
pub(crate) struct RunError {
    /// The kind.
    kind: String,
    /// The description and a remedy.
    message: String,
    /// The provider that reported the error.
    #[schema(nullable = false)]
    provider: Option<String>,
    /// The HTTP status.
    #[schema(nullable = false)]
    status: Option<u16>,
    /// The provider's request id.
    #[schema(nullable = false)]
    request_id: Option<String>,
}

/// An event of a run: the data of a server-sent event. docs/http.md lists the types with their
/// fields.
#[derive(Serialize, ToSchema)]
pub(crate) struct RunEvent {
    /// The run.
    run_id: String,
    /// The number within the run: 1, 2, 3, … without gaps.
    #[schema(minimum = 1)]
    seq: u64,
    /// The time, RFC 3339 in UTC.
    #[schema(format = DateTime)]
    time: String,
    /// The type.
    #[serde(rename = "type")]
    kind: String,
    /// The fields of the type.
    #[serde(flatten)]
    #[schema(value_type = BTreeMap<String, Value>)]
    fields: BTreeMap<String, Value>,
}

/// A call that waits for an approval decision.
#[derive(Serialize, ToSchema)]
pub(crate) struct ApprovalRequest {
    /// The run that waits.
    run_id: String,
    /// The call with its input.
    tool_use: ToolUse,
    /// The origin of the tool.
    #[schema(nullable = false)]
    origin: Option<ToolOrigin>,
    /// The annotations of the tool. Untrusted.
    annotations: ToolAnnotations,
    /// The description of the tool. Untrusted.
    #[schema(nullable = false)]
    description: Option<String>,
    /// The repaired input that will be executed, if it differs from the model's.
    #[schema(nullable = false)]
    input: Option<BTreeMap<String, Value>>,
    /// A fingerprint of the tool's definition, for comparison.
    #[schema(nullable = false)]
    fingerprint: Option<String>,
    /// Whether the definition changed since the tool was last seen or approved.
    #[serde(default)]
    redefined: bool,
    /// The end of the request, RFC 3339 in UTC.
    #[schema(nullable = false)]
    expires_at: Option<String>,
}

/// The validity of a decision: this call, the tool in this session, or the tool from now on.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ApprovalScope {
    Once,
    Session,
    Always,
}

/// A tool use.
#[derive(Serialize, ToSchema)]
pub(crate) struct ToolUse {
    /// The id of the call.
    id: String,
    /// The tool's name as declared to the model.
    name: String,
    /// `{"object": {…}}`, or `{"malformed": {"raw", "reason"}}`.
    input: BTreeMap<String, Value>,
}

/// The origin of a tool.
#[derive(Serialize, ToSchema)]
pub(crate) struct ToolOrigin {
    /// The server.
    server: String,
    /// The original name of the tool.
    tool: String,
}

/// A tool's statements about its effects. A missing value means unknown.
#[derive(Serialize, ToSchema)]
pub(crate) struct ToolAnnotations {
    /// The tool changes nothing.
    #[schema(nullable = false)]
    read_only: Option<bool>,
    /// The tool may delete or overwrite data.
    #[schema(nullable = false)]
    destructive: Option<bool>,
    /// A second call with the same input has no additional effect.
    #[schema(nullable = false)]
    idempotent: Option<bool>,
    /// The tool accesses external systems.
    #[schema(nullable = false)]
    open_world: Option<bool>,
}

/// An elicitation request of a server.
#[derive(Serialize, ToSchema)]
pub(crate) struct Elicitation {
    /// The server.
    server: String,
    /// The message. Untrusted.
    message: String,
    /// `fields` with `schema`, or `url` with `url` and `id`.
    form: String,
    /// The fields of the form.
    #[serde(flatten)]
    #[schema(value_type = BTreeMap<String, Value>)]
    fields: BTreeMap<String, Value>,
}

/// A server with missing tools.
#[derive(Serialize, ToSchema)]
pub(crate) struct ServerProblem {
    /// The server.
    server: String,
    /// The problem and its remedy.
    message: String,
}

/// The state of an MCP server: the object of `switchboard servers --output json`.
#[derive(Serialize, ToSchema)]
pub(crate) struct ServerStatus {
    /// The name in the configuration.
    name: String,
    /// The state, such as `ready` or `failed`.
    state: String,
    /// Whether it is required.
    required: bool,
    /// The number of tools for models.
    tools: u64,
    /// The reason for the state.
    reason: Option<String>,
    /// The transport without secrets.
    transport: String,
    /// The last lines of standard error.
    stderr_tail: Vec<String>,
    /// Further fields.
    #[serde(flatten)]
    #[schema(value_type = BTreeMap<String, Value>)]
    fields: BTreeMap<String, Value>,
}
