//! How the types of the domain and the core look in JSON, for the OpenAPI document.
//!
//! They stand here because the crates that have these types know no OpenAPI. A test holds real answers against the
//! document. Whatever is open to additions upstream is open here.
#![allow(
    dead_code,
    reason = "only what is derived of them is used: their schemas"
)]

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

/// A conversation that is kept.
#[derive(Serialize, ToSchema)]
pub(crate) struct Session {
    /// Its id.
    id: String,
    /// What it is about.
    title: String,
    /// When it began, RFC 3339 in UTC.
    #[schema(format = DateTime)]
    created_at: String,
    /// How many messages it holds.
    messages: u64,
}

/// How a run stands.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RunState {
    /// A process is at work on it.
    Running,
    /// It waits for somebody's word and is stored; the next word goes on with it.
    Waiting,
    /// Its process ended before it did; `POST /runs/{id}/continue` goes on with it.
    Interrupted,
    /// It is over.
    Finished,
}

/// A run.
#[derive(Serialize, ToSchema)]
pub(crate) struct RunRecord {
    /// Its id. Ids sort by time.
    id: String,
    /// The session it belongs to; empty for a run that is not kept.
    session: String,
    /// How it stands.
    state: RunState,
    /// The model it began with, as `PROVIDER/MODEL`.
    model: String,
    /// When it began, RFC 3339 in UTC.
    #[schema(format = DateTime)]
    created_at: String,
    /// When the store last heard of it, RFC 3339 in UTC.
    #[schema(format = DateTime)]
    updated_at: String,
    /// How many events the earlier runs of its session have: the event `seq` of the run has the number
    /// `events_before + seq` in the session.
    events_before: u64,
    /// The number of its last event; 0 before the first.
    last_event: u64,
    /// How it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    outcome: Option<Outcome>,
}

/// How a run ended: with an answer, at a limit, with an error, or because somebody stopped it.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Outcome {
    Completed,
    Limited,
    Failed,
    Cancelled,
}

/// What was said by one side.
#[derive(Serialize, ToSchema)]
pub(crate) struct Message {
    /// Who speaks.
    role: Role,
    /// What was said, in order.
    parts: Vec<Part>,
}

/// Who speaks.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Role {
    System,
    User,
    Assistant,
    Tool,
}

/// A piece of a message: `text`, `image`, `document`, `audio`, `reasoning`, `tool_use` or `tool_result`. `opaque` is for its
/// provider only.
#[derive(Serialize, ToSchema)]
pub(crate) struct Part {
    /// What it is.
    #[serde(rename = "type")]
    kind: String,
    /// Its fields.
    #[serde(flatten)]
    #[schema(value_type = BTreeMap<String, Value>)]
    fields: BTreeMap<String, Value>,
}

/// How a run ended and what it did.
#[derive(Serialize, ToSchema)]
pub(crate) struct RunReport {
    /// The run.
    run_id: String,
    /// The session it belongs to.
    session_id: Option<String>,
    /// The model that was asked, as `PROVIDER/MODEL`.
    model: String,
    /// The answer as text; what there is of it if the run ended early.
    answer: String,
    /// The answer in its items.
    content: Vec<AnswerItem>,
    /// How it ended.
    outcome: Outcome,
    /// Why the model stopped last: `stop`, `tool_use`, `length`…; an object for a provider's own word.
    #[schema(value_type = Option<Value>)]
    finish_reason: Option<Value>,
    /// Calls of the model.
    steps: u32,
    /// Tokens of all steps together.
    usage: Usage,
    /// The tool calls, in the order in which the model asked.
    tool_calls: Vec<ToolCallRecord>,
    /// What was not done as asked.
    warnings: Vec<Warning>,
    /// Why it failed or which limit it met.
    error: Option<RunError>,
}

/// An item of an answer: `text` with `text`, or an `artifact` with `artifactType`, `title`, `content` and `language`.
#[derive(Serialize, ToSchema)]
pub(crate) struct AnswerItem {
    /// What it is.
    #[serde(rename = "type")]
    kind: String,
    /// Its fields.
    #[serde(flatten)]
    #[schema(value_type = BTreeMap<String, Value>)]
    fields: BTreeMap<String, Value>,
}

/// Tokens. What a provider did not say is `null`.
#[derive(Serialize, ToSchema)]
#[expect(clippy::struct_field_names, reason = "their names in JSON")]
pub(crate) struct Usage {
    /// Of the whole prompt.
    input_tokens: Option<u64>,
    /// Written, reasoning included.
    output_tokens: Option<u64>,
    /// Of the input, read from a prompt cache.
    cache_read_tokens: Option<u64>,
    /// Of the input, written to a prompt cache.
    cache_write_tokens: Option<u64>,
    /// Of the output, reasoning.
    reasoning_tokens: Option<u64>,
}

/// One tool call of a run.
#[derive(Serialize, ToSchema)]
pub(crate) struct ToolCallRecord {
    /// The tool use it belongs to.
    id: String,
    /// The server that offers the tool.
    server: Option<String>,
    /// The tool's own name.
    tool: String,
    /// The input with which it ran, or what the model wrote if that was no object.
    input: Value,
    /// The tool did not run or says that it failed.
    is_error: bool,
    /// Why there is no proper result.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    failure: Option<String>,
    /// The result came from the cache.
    cached: bool,
    /// How often it was tried; 0 if it did not run.
    attempts: u32,
    /// How long it took, in milliseconds.
    duration_ms: u64,
    /// What it gave.
    result: RecordedResult,
}

/// What a tool gave.
#[derive(Serialize, ToSchema)]
pub(crate) struct RecordedResult {
    /// What the model read.
    content: Vec<Part>,
    /// The same as data.
    #[serde(skip_serializing_if = "Option::is_none")]
    structured: Option<Value>,
}

/// Something that was not done as asked.
#[derive(Serialize, ToSchema)]
pub(crate) struct Warning {
    /// What sort of thing.
    kind: String,
    /// What happened.
    message: String,
}

/// Why a run has no proper answer.
#[derive(Serialize, ToSchema)]
pub(crate) struct RunError {
    /// What sort of thing.
    kind: String,
    /// What happened and what to do.
    message: String,
    /// The provider that said so.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    provider: Option<String>,
    /// The HTTP status.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    status: Option<u16>,
    /// The provider's id of the request.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    request_id: Option<String>,
}

/// One thing that happened in a run: the data of a server-sent event. docs/http.md lists the types with their fields.
#[derive(Serialize, ToSchema)]
pub(crate) struct RunEvent {
    /// The run.
    run_id: String,
    /// Its number within the run: 1, 2, 3, … without gaps.
    #[schema(minimum = 1)]
    seq: u64,
    /// When it happened, RFC 3339 in UTC.
    #[schema(format = DateTime)]
    time: String,
    /// What happened.
    #[serde(rename = "type")]
    kind: String,
    /// The fields of that type.
    #[serde(flatten)]
    #[schema(value_type = BTreeMap<String, Value>)]
    fields: BTreeMap<String, Value>,
}

/// A call that waits for a person's word.
#[derive(Serialize, ToSchema)]
pub(crate) struct ApprovalRequest {
    /// The run that waits.
    run_id: String,
    /// The call with its input.
    tool_use: ToolUse,
    /// Where the tool lives.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    origin: Option<ToolOrigin>,
    /// What the tool says about itself; untrusted.
    annotations: ToolAnnotations,
    /// What the tool says it does; untrusted.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    description: Option<String>,
    /// The input that will run, where the model's was repaired.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    input: Option<BTreeMap<String, Value>>,
    /// A fingerprint of the tool's definition, to be compared only.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    fingerprint: Option<String>,
    /// The definition is not what it was when the tool was last seen or approved.
    #[serde(default)]
    redefined: bool,
    /// Until when an answer counts, RFC 3339 in UTC.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    expires_at: Option<String>,
}

/// The model asks for a tool.
#[derive(Serialize, ToSchema)]
pub(crate) struct ToolUse {
    /// The call's id.
    id: String,
    /// The tool's name as declared to the model.
    name: String,
    /// `{"object": {…}}`, or `{"malformed": {"raw", "reason"}}`.
    input: BTreeMap<String, Value>,
}

/// Where a tool lives.
#[derive(Serialize, ToSchema)]
pub(crate) struct ToolOrigin {
    /// The server.
    server: String,
    /// The tool's own name.
    tool: String,
}

/// A tool's word about its effects. What is missing was not said, which is not "no".
#[derive(Serialize, ToSchema)]
pub(crate) struct ToolAnnotations {
    /// It changes nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    read_only: Option<bool>,
    /// What it changes may be lost.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    destructive: Option<bool>,
    /// Calling it again changes nothing more.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    idempotent: Option<bool>,
    /// It reaches beyond a closed world of data.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    open_world: Option<bool>,
}

/// What a server wants to know of the person.
#[derive(Serialize, ToSchema)]
pub(crate) struct Elicitation {
    /// The server that asks.
    server: String,
    /// What it says; untrusted.
    message: String,
    /// `fields`, with `schema`; or `url`, with `url` and `id`.
    form: String,
    /// Its fields.
    #[serde(flatten)]
    #[schema(value_type = BTreeMap<String, Value>)]
    fields: BTreeMap<String, Value>,
}

/// A server that cannot say which tools it has.
#[derive(Serialize, ToSchema)]
pub(crate) struct ServerProblem {
    /// The server.
    server: String,
    /// What is wrong and what to do about it.
    message: String,
}

/// An MCP server and how it stands: the object of `switchboard servers --output json`.
#[derive(Serialize, ToSchema)]
pub(crate) struct ServerStatus {
    /// Its name in the configuration.
    name: String,
    /// Its state in one word, such as `ready` or `failed`.
    state: String,
    /// Whether it is required.
    required: bool,
    /// How many tools it offers to models.
    tools: u64,
    /// Why it is in this state.
    reason: Option<String>,
    /// How it is reached, without secrets.
    transport: String,
    /// The last lines that it wrote to its standard error.
    stderr_tail: Vec<String>,
    /// Further fields.
    #[serde(flatten)]
    #[schema(value_type = BTreeMap<String, Value>)]
    fields: BTreeMap<String, Value>,
}
