//! Tool calls that become tasks (extension `io.modelcontextprotocol/tasks`, SEP-2663): the server
//! answers `tools/call` with a task, and the client polls the task until it ends.
//!
//! The client also subscribes to the task (`subscriptions/listen` with `taskIds`) to receive its
//! end immediately. It polls nevertheless, because a server need not support subscriptions.

use std::{collections::HashSet, future::pending, pin::pin, time::Duration};

use rmcp::{
    model::{
        ClientRequest, CreateTaskResult, CustomRequest, ErrorCode, ErrorData, GetTaskParams,
        GetTaskRequest, JsonObject, UpdateTaskParams, UpdateTaskRequest,
    },
    service::ServiceError,
};
use serde_json::{Value, json};
use switchboard_domain::ToolProgress;
use tokio::{
    sync::broadcast::{self, error::RecvError},
    time::sleep,
};

use crate::{
    calls::{failure::RequestFailure, request_retries::CallRequest},
    server::{
        connection::{CancelTarget, Connection},
        state::Server,
    },
    transport::{
        call_context::RequestContext, failure::TransportFailure,
        invalid_message::invalid_answer_reason,
    },
};

/// Polling interval of a task if the server does not send `pollIntervalMs`.
const DEFAULT_INTERVAL: Duration = Duration::from_secs(1);
/// Minimum polling interval of a task, even if the server requests a shorter one.
const MIN_INTERVAL: Duration = Duration::from_millis(20);
/// Maximum polling interval of a task, even if the server requests a longer one. Every answer to a
/// poll restarts the idle limit of the call, so a longer interval could exceed that limit.
const MAX_INTERVAL: Duration = Duration::from_secs(20);
/// Number of consecutive unanswered polls of a task after which the tool call fails.
const MAX_LOST_POLLS: u32 = 5;

/// Polls the task that a server created for a tool call until the task ends, and returns its
/// result. Dropping the future cancels the task. Every answer restarts the idle limit, and status
/// messages are reported as progress.
pub(crate) async fn wait_for_task(
    server: &Server,
    connection: &Connection,
    call: &CallRequest,
    created: CreateTaskResult,
) -> Result<Value, RequestFailure> {
    let id = created.task.task_id.clone();
    let mut cancel_guard = connection.cancel_on_drop(CancelTarget::Task(id.clone()));
    let mut updates = server.task_updates.subscribe();
    let mut subscription = pin!(subscribe_to_task(connection, &id));
    let mut reporter = StatusReporter::default();
    let mut answered = HashSet::new();
    let mut state = serde_json::to_value(created).unwrap_or_default();
    reporter.report_status(call, &state);
    loop {
        state = tokio::select! {
            biased;
            state = next_task_update(&mut updates, &id) => state,
            state = &mut subscription => state,
            state = async {
                sleep(parse_poll_interval(&state)).await;
                poll_task(connection, &id).await
            } => state?,
        };
        call.deadline.record_activity();
        reporter.report_status(call, &state);
        let status = state.get("status").and_then(Value::as_str);
        if let Some("completed" | "failed" | "cancelled") = status {
            cancel_guard.disarm();
        }
        match status {
            Some("completed") => {
                return match state.get_mut("result").map(Value::take) {
                    Some(result @ Value::Object(_)) => Ok(result),
                    _ => Err(protocol_error("the task completed without a result")),
                };
            }
            Some("failed") => return Err(task_error(&state)),
            Some("cancelled") => return Err(protocol_error("the server cancelled the task")),
            Some("input_required") => {
                send_task_input(server, connection, call, &id, &state, &mut answered).await?;
            }
            Some("working") => {}
            // Unknown statuses are ignored, because a later protocol version may add task statuses.
            Some(other) => tracing::debug!(task = id, other, "unknown task status"),
            None => return Err(protocol_error("the server reported no status for the task")),
        }
    }
}

/// Subscribes to the status updates of a task. Never returns, because the updates arrive in
/// `Server::task_updates`.
async fn subscribe_to_task(connection: &Connection, id: &str) -> Value {
    let params = json!({"notifications": {"taskIds": [id]}});
    let request = CustomRequest::new("subscriptions/listen", Some(params));
    let request = ClientRequest::CustomRequest(request);
    match connection.send_request(request, None).await {
        Ok(_) => tracing::debug!(task = id, "the server ended a task subscription"),
        Err(error) => tracing::debug!(task = id, %error, "failed to subscribe to a task"),
    }
    pending().await
}

async fn next_task_update(updates: &mut broadcast::Receiver<Value>, id: &str) -> Value {
    loop {
        match updates.recv().await {
            Ok(task) if task.get("taskId").and_then(Value::as_str) == Some(id) => return task,
            Ok(_) | Err(RecvError::Lagged(_)) => {}
            Err(RecvError::Closed) => return pending().await,
        }
    }
}

/// Requests the state of a task with `tasks/get`. Repeats a request without an answer, and returns
/// an error after [`MAX_LOST_POLLS`] such requests or when the connection has ended.
async fn poll_task(connection: &Connection, id: &str) -> Result<Value, RequestFailure> {
    let mut lost = 0;
    loop {
        let get = GetTaskRequest::new(GetTaskParams::new(id));
        let request = ClientRequest::GetTaskRequest(get);
        let reason = match connection.send_request(request, None).await {
            Ok(state) => return Ok(serde_json::to_value(state).unwrap_or_default()),
            Err(ServiceError::McpError(error)) => {
                return Err(match invalid_answer_reason(&error) {
                    Some(reason) => RequestFailure::InvalidAnswer(reason.to_owned()),
                    None => protocol_error(format!(
                        "failed to get the status of the task: {} (code {})",
                        error.message, error.code.0
                    )),
                });
            }
            Err(ServiceError::TransportSend(error)) => TransportFailure::new(&error).reason,
            Err(ServiceError::TransportClosed) => connection.wait_until_ended().await,
            Err(other) => other.to_string(),
        };
        lost += 1;
        if lost == MAX_LOST_POLLS || connection.is_unusable() {
            return Err(RequestFailure::Broken(reason));
        }
        tracing::debug!(task = id, reason, "failed to poll a task");
        sleep(DEFAULT_INTERVAL).await;
    }
}

/// Collects the input that a task requests and sends the input to the server. Skips input requests
/// whose keys are in `answered`, and adds the keys of the other requests to `answered`.
async fn send_task_input(
    server: &Server,
    connection: &Connection,
    call: &CallRequest,
    id: &str,
    state: &Value,
    answered: &mut HashSet<String>,
) -> Result<(), RequestFailure> {
    let requests = state.get("inputRequests").and_then(Value::as_object);
    let new: JsonObject = requests
        .into_iter()
        .flatten()
        .filter(|(key, _)| !answered.contains(*key))
        .map(|(key, request)| (key.clone(), request.clone()))
        .collect();
    if new.is_empty() {
        return Ok(());
    }
    answered.extend(new.keys().cloned());
    let required = json!({"resultType": "input_required", "inputRequests": new});
    let context = RequestContext::from_call(&call.context);
    let input = server.responder.collect_input(&required, &context).await;
    let input = input.transpose().map_err(|error| {
        let reason = error.message;
        protocol_error(format!(
            "the task requires input that is not available: {reason}"
        ))
    })?;
    let Some(responses) = input.and_then(|input| input.responses) else {
        return Ok(());
    };
    let update = UpdateTaskRequest::new(UpdateTaskParams::new(id, responses));
    let request = ClientRequest::UpdateTaskRequest(update);
    let sent = connection.send_request(request, None).await;
    sent.map(drop)
        .map_err(|error| protocol_error(format!("the task did not accept the input: {error}")))
}

fn protocol_error(reason: impl Into<String>) -> RequestFailure {
    RequestFailure::Protocol(reason.into())
}

/// Converts the state of a failed task to an error. An error code in the state gives
/// [`RequestFailure::Refused`], as for a server that answers `tools/call` with an error.
fn task_error(state: &Value) -> RequestFailure {
    let field = |key: &str| state.get("error").and_then(|error| error.get(key));
    let message = field("message").and_then(Value::as_str);
    let message = message.or_else(|| state.get("statusMessage").and_then(Value::as_str));
    let message = message.unwrap_or("the task failed").to_owned();
    let code = field("code").and_then(Value::as_i64);
    match code.and_then(|code| i32::try_from(code).ok()) {
        Some(code) => RequestFailure::Refused(ErrorData::new(ErrorCode(code), message, None)),
        None => protocol_error(message),
    }
}

fn parse_poll_interval(state: &Value) -> Duration {
    let interval = state.get("pollIntervalMs").and_then(Value::as_u64);
    interval
        .map_or(DEFAULT_INTERVAL, Duration::from_millis)
        .clamp(MIN_INTERVAL, MAX_INTERVAL)
}

/// Reporter of a task's status messages. Each new message is reported as progress once.
#[derive(Default)]
struct StatusReporter {
    reports: u32,
    last: Option<String>,
}

impl StatusReporter {
    fn report_status(&mut self, call: &CallRequest, state: &Value) {
        let message = state.get("statusMessage").and_then(Value::as_str);
        let Some(message) = message.filter(|message| self.last.as_deref() != Some(*message)) else {
            return;
        };
        self.reports += 1;
        self.last = Some(message.to_owned());
        call.progress.report_progress(ToolProgress {
            // MCP requires an increasing progress value, so the status messages are counted.
            progress: f64::from(self.reports),
            total: None,
            message: self.last.clone(),
        });
    }
}
