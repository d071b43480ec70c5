//! Schemas of domain and core types for the OpenAPI document.
//!
//! They are defined here because the crates of these types do not depend on OpenAPI. A test
//! validates real responses with the document. Where a type may get more values, its schema accepts
//! any value.
#![allow(dead_code, reason = "only the derived schemas are used")]

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

/// The tool choice of the first model call: which tools the model may or must call.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ToolChoice {
    /// The model decides whether to call a tool.
    Auto,
    /// The model may not call a tool. The tools remain declared.
    None,
    /// The model must call at least one tool.
    Required,
    /// The model must call at least one tool of these names.
    Only(Vec<String>),
}

/// The strategy of a run: a name, or `gather-format` with settings.
#[derive(Serialize, ToSchema)]
#[serde(untagged)]
pub(crate) enum Strategy {
    /// The name of the strategy.
    Name(StrategyName),
    /// The strategy `gather-format` with settings.
    GatherFormat {
        /// The settings, such as `max_thinking_steps`, `formatter_mode` and `schema`.
        #[serde(rename = "gather-format")]
        #[schema(value_type = Object)]
        gather_format: Value,
    },
}

/// The name of a strategy.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum StrategyName {
    /// The model calls tools until it answers.
    Loop,
    /// The model gathers data with tools and then writes the answer as texts and artifacts.
    GatherFormat,
}

/// The reasoning effort: how much the model reasons before it answers.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ReasoningEffort {
    /// No reasoning, if the model supports disabling it.
    None,
    /// A small amount of reasoning.
    Low,
    /// A medium amount of reasoning.
    Medium,
    /// A large amount of reasoning.
    High,
}

/// A stored conversation.
#[derive(Serialize, ToSchema)]
pub(crate) struct Session {
    /// The id of the session.
    id: String,
    /// The title of the session.
    title: String,
    /// The time when the session was created, RFC 3339 in UTC.
    #[schema(format = DateTime)]
    created_at: String,
    /// The number of stored messages of the session.
    messages: u64,
}

/// The stored state of a run.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RunState {
    /// A process executes the run.
    Running,
    /// The run is stored and waits for an approval decision, which resumes the run.
    Waiting,
    /// The process that executed the run ended early. `POST /runs/{id}/continue` resumes the run.
    Interrupted,
    /// The run is finished.
    Finished,
}

/// The record of a run: its ids, state, model, times and outcome.
#[derive(Serialize, ToSchema)]
pub(crate) struct RunRecord {
    /// The id of the run. Ids sort by creation time.
    id: String,
    /// The id of the session. Empty for an ephemeral run.
    session: String,
    /// The state of the run.
    state: RunState,
    /// The model at the start of the run, as `PROVIDER/MODEL`.
    model: String,
    /// The time when the run was created, RFC 3339 in UTC.
    #[schema(format = DateTime)]
    created_at: String,
    /// The time of the last stored change of the run, RFC 3339 in UTC.
    #[schema(format = DateTime)]
    updated_at: String,
    /// The number of events in earlier runs of the session. The event `seq` of this run has the
    /// number `events_before + seq` in the session.
    events_before: u64,
    /// The number of the last event of the run. 0 before the first event.
    last_event: u64,
    /// The outcome of the run. Absent until the run is finished.
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

/// A message of a conversation.
#[derive(Serialize, ToSchema)]
pub(crate) struct Message {
    /// The author of the message.
    role: Role,
    /// The parts of the message in order.
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

/// A part of a message or an item of an answer. Types of parts are `text`, `image`, `document`,
/// `audio`, `reasoning`, `tool_use`, `tool_result` and `opaque` (data for its provider only). Items
/// are `text` with `content`, or `artifact` with `artifactType`, `title`, `content` and `language`.
#[derive(Serialize, ToSchema)]
pub(crate) struct Part {
    /// The type of the message part or answer item, such as `text`.
    #[serde(rename = "type")]
    kind: String,
    /// All other fields of the part or item, such as `text` for the type `text`.
    #[serde(flatten)]
    #[schema(value_type = BTreeMap<String, Value>)]
    fields: BTreeMap<String, Value>,
}

/// The report of a finished run.
#[derive(Serialize, ToSchema)]
pub(crate) struct RunReport {
    /// The id of the run.
    run_id: String,
    /// The id of the session, or `null` for an ephemeral run.
    session_id: Option<String>,
    /// The model that wrote the answer, as `PROVIDER/MODEL`.
    model: String,
    /// The answer as text. It may be incomplete if the run ended early.
    answer: String,
    /// The items of the answer: texts and artifacts.
    content: Vec<Part>,
    /// Notes of the model on how it reached a formatted answer.
    #[schema(nullable = false)]
    thinking: Option<String>,
    /// The outcome of the run.
    outcome: Outcome,
    /// The finish reason of the last model call: `stop`, `tool_use`, `length` and others, or an
    /// object with a provider-specific reason.
    #[schema(value_type = Option<Value>)]
    finish_reason: Option<Value>,
    /// The number of model calls in the run.
    steps: u32,
    /// The token counts of all model calls.
    usage: Usage,
    /// The tool calls in the order in which the model requested them.
    tool_calls: Vec<ToolCallRecord>,
    /// Deviations of the run from the request, such as an ignored option.
    warnings: Vec<Warning>,
    /// The error or the reached limit. `null` if the run completed.
    error: Option<RunError>,
}

/// Token counts. A count that the provider did not report is `null`.
#[derive(Serialize, ToSchema)]
#[expect(clippy::struct_field_names, reason = "the names in JSON")]
pub(crate) struct Usage {
    /// The number of tokens in the prompt, including cached tokens.
    input_tokens: Option<u64>,
    /// The number of output tokens, including reasoning.
    output_tokens: Option<u64>,
    /// The number of input tokens read from a prompt cache.
    cache_read_tokens: Option<u64>,
    /// The number of input tokens written to a prompt cache.
    cache_write_tokens: Option<u64>,
    /// The number of output tokens for reasoning.
    reasoning_tokens: Option<u64>,
}

/// A tool call of a run, with the result of the call.
#[derive(Serialize, ToSchema)]
pub(crate) struct ToolCallRecord {
    /// The id of the tool call.
    id: String,
    /// The MCP server of the tool, or `null`.
    server: Option<String>,
    /// The tool's name at its MCP server.
    tool: String,
    /// The executed input of the tool call. Malformed input is the text that the model wrote.
    input: Value,
    /// Whether the tool reported an error or was not executed.
    is_error: bool,
    /// The kind of failure, if the tool call failed.
    #[schema(nullable = false)]
    failure: Option<String>,
    /// Whether the result comes from the tool result cache.
    cached: bool,
    /// The number of times that the tool was called. 0 if the tool was not executed.
    attempts: u32,
    /// The duration of the tool call in milliseconds.
    duration_ms: u64,
    /// The result of the tool call.
    result: RecordedResult,
}

/// The result of a tool call.
#[derive(Serialize, ToSchema)]
pub(crate) struct RecordedResult {
    /// The content of the tool result, as the model receives it.
    content: Vec<Part>,
    /// The structured result of the tool, or `null`.
    structured: Option<Value>,
}

/// A warning that a run deviated from the request.
#[derive(Serialize, ToSchema)]
pub(crate) struct Warning {
    /// The kind of the warning, for programs.
    kind: String,
    /// The description of how the run deviated from the request.
    message: String,
}

/// The reason why a run has no complete answer.
#[derive(Serialize, ToSchema)]
pub(crate) struct RunError {
    /// The kind of the error, for programs.
    kind: String,
    /// The description of the error and a remedy.
    message: String,
    /// The provider that reported the error.
    #[schema(nullable = false)]
    provider: Option<String>,
    /// The HTTP status of the provider's response.
    #[schema(nullable = false)]
    status: Option<u16>,
    /// The provider's id of the failed request, for its support.
    #[schema(nullable = false)]
    request_id: Option<String>,
}

/// An event of a run: the data of a server-sent event. docs/http.md lists the types with their
/// fields.
#[derive(Serialize, ToSchema)]
pub(crate) struct RunEvent {
    /// The id of the run.
    run_id: String,
    /// The number of the event within the run, starting at 1 without gaps.
    #[schema(minimum = 1)]
    seq: u64,
    /// The time of the event, RFC 3339 in UTC.
    #[schema(format = DateTime)]
    time: String,
    /// The type of the event.
    #[serde(rename = "type")]
    kind: String,
    /// All other fields of the event. docs/http.md lists them for each type.
    #[serde(flatten)]
    #[schema(value_type = BTreeMap<String, Value>)]
    fields: BTreeMap<String, Value>,
}

/// An audit record: one action of a model, a tool or a person. docs/observability.md lists the
/// kinds with their fields.
#[derive(Serialize, ToSchema)]
pub(crate) struct AuditRecord {
    /// The time of the action, RFC 3339 in UTC.
    #[schema(format = DateTime)]
    time: String,
    /// The id of the run.
    run_id: String,
    /// The number of the event within the run that reports the action.
    #[schema(minimum = 1)]
    seq: u64,
    /// The kind of the action, such as `tool_call`.
    kind: String,
    /// All other fields of the record.
    #[serde(flatten)]
    #[schema(value_type = BTreeMap<String, Value>)]
    fields: BTreeMap<String, Value>,
}

/// A tool call that waits for an approval decision.
#[derive(Serialize, ToSchema)]
pub(crate) struct ApprovalRequest {
    /// The id of the run that waits.
    run_id: String,
    /// The tool call that waits, with its input.
    tool_use: ToolUse,
    /// The MCP server of the tool, and the tool's name at this server.
    #[schema(nullable = false)]
    origin: Option<ToolOrigin>,
    /// The MCP server's statements about the effects of the tool. They are untrusted.
    annotations: ToolAnnotations,
    /// The description of the tool by its MCP server. It is untrusted.
    #[schema(nullable = false)]
    description: Option<String>,
    /// The repaired input of the tool call, if it differs from the model's input.
    #[schema(nullable = false)]
    input: Option<BTreeMap<String, Value>>,
    /// A fingerprint of the tool's definition, which changes when the definition changes.
    #[schema(nullable = false)]
    fingerprint: Option<String>,
    /// Whether the tool's definition changed since the tool was last seen or approved.
    #[serde(default)]
    redefined: bool,
    /// The time at which the approval request expires, RFC 3339 in UTC.
    #[schema(nullable = false)]
    expires_at: Option<String>,
}

/// The scope of an approval decision: this call, the tool in this session, or the tool from now on.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ApprovalScope {
    Once,
    Session,
    Always,
}

/// A tool call as the model wrote it.
#[derive(Serialize, ToSchema)]
pub(crate) struct ToolUse {
    /// The id of the tool call.
    id: String,
    /// The name under which the tool was declared to the model.
    name: String,
    /// The input of the tool call: `{"object": {…}}`, or `{"malformed": {"raw", "reason"}}`.
    input: BTreeMap<String, Value>,
}

/// The origin of a tool: its MCP server and its name at this server.
#[derive(Serialize, ToSchema)]
pub(crate) struct ToolOrigin {
    /// The MCP server of the tool.
    server: String,
    /// The tool's name at its MCP server.
    tool: String,
}

/// The MCP server's statements about the effects of a tool. A missing value means unknown.
#[derive(Serialize, ToSchema)]
pub(crate) struct ToolAnnotations {
    /// Whether the tool only reads data and changes nothing.
    #[schema(nullable = false)]
    read_only: Option<bool>,
    /// Whether the tool may delete or overwrite data.
    #[schema(nullable = false)]
    destructive: Option<bool>,
    /// Whether a second call with the same input has no additional effect (idempotent).
    #[schema(nullable = false)]
    idempotent: Option<bool>,
    /// Whether the tool accesses systems outside its MCP server.
    #[schema(nullable = false)]
    open_world: Option<bool>,
}

/// An elicitation request: a question of an MCP server to the user.
#[derive(Serialize, ToSchema)]
pub(crate) struct Elicitation {
    /// The MCP server that asks the question.
    server: String,
    /// The text of the question for the user. It is untrusted.
    message: String,
    /// The kind of the request: `fields` (a form with a JSON Schema) or `url` (a web page).
    form: String,
    /// The content of the request: `schema` for the form `fields`, or `url` and `id` for `url`.
    #[serde(flatten)]
    #[schema(value_type = BTreeMap<String, Value>)]
    fields: BTreeMap<String, Value>,
}

/// An MCP server whose tools are missing from the list, because the server is not ready.
#[derive(Serialize, ToSchema)]
pub(crate) struct ServerProblem {
    /// The name of the MCP server.
    server: String,
    /// The reason why the tools are missing, and a remedy.
    message: String,
}

/// The state of an MCP server, as printed by `switchboard servers --output json`.
#[derive(Serialize, ToSchema)]
pub(crate) struct ServerStatus {
    /// The name of the MCP server in the configuration.
    name: String,
    /// The state of the MCP server, such as `ready` or `failed`.
    state: String,
    /// Whether runs require the MCP server.
    required: bool,
    /// The number of tools of the MCP server that models can call.
    tools: u64,
    /// The reason for the state, such as the error of a failed server.
    reason: Option<String>,
    /// The transport and address of the MCP server, without secrets.
    transport: String,
    /// The last lines that the MCP server wrote to standard error.
    stderr_tail: Vec<String>,
    /// All other properties of the MCP server, such as `server_info`, `warnings` and `pid`.
    #[serde(flatten)]
    #[schema(value_type = BTreeMap<String, Value>)]
    fields: BTreeMap<String, Value>,
}
