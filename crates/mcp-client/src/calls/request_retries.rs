//! Requests to a server with a deadline and retries: tool calls, and requests for resources,
//! prompts and other features.
//!
//! A failed request is retried only if that cannot repeat a side effect: the server did not process
//! the request, or the connection broke and the request is repeatable. Every attempt of a tool call
//! needs the permission of the circuit breakers.

use std::{pin::pin, sync::Arc, time::Duration};

use rmcp::model::{
    CallToolRequest, CallToolRequestParams, ClientRequest, CustomResult, GetExtensions,
    ServerResult,
};
use switchboard_domain::{ProgressSink, ToolCall, ToolCallError, ToolOutput, ToolRetry};
use tokio::{
    sync::SemaphorePermit,
    time::{Instant, sleep, timeout_at},
};

use crate::{
    calls::{deadline::Deadline, failure::RequestFailure, multi_round, tasks},
    primitives::backoff::Backoff,
    server::{
        circuit_breakers::Outcome, connection::Connection, state::Server, status::ServerState,
    },
    tools::{catalog::CatalogTool, convert},
    transport::{call_context::CallContext, instrumented_transport::ProgressListener},
};

/// Delay before the first retry of a request, without jitter. It doubles before each further retry.
const FIRST_RETRY_DELAY: Duration = Duration::from_millis(100);
/// Maximum delay before a retry of a request, without jitter.
const MAX_RETRY_DELAY: Duration = Duration::from_millis(6400);

/// Request to a server, with its deadline and retry settings.
pub(crate) struct CallRequest {
    /// Name of the called tool on its server, or the method name of a request that is not a tool
    /// call.
    pub(crate) name: String,
    pub(crate) request: ClientRequest,
    pub(crate) context: Arc<CallContext>,
    pub(crate) deadline: Deadline,
    /// Maximum number of retries after the first attempt.
    pub(crate) retries: u32,
    /// Whether the request can be sent again without additional side effects.
    pub(crate) is_repeatable: bool,
    /// Whether the request is a tool call. The circuit breakers apply only to tool calls.
    pub(crate) is_tool_call: bool,
    pub(crate) progress: ProgressSink,
}

/// Calls a tool, with retries after some failures. Returns the result, or an error when the
/// deadline has passed or no retry is left.
pub(crate) async fn call_tool(
    server: &Server,
    tool: &CatalogTool,
    call: ToolCall,
    deadline: Deadline,
    retries: u32,
) -> Result<ToolOutput, ToolCallError> {
    let name = tool.original_name().to_owned();
    let params = CallToolRequestParams::new(name.clone()).with_arguments(call.input.into_object());
    let annotations = &tool.definition.annotations;
    let mut request = CallRequest {
        name,
        request: ClientRequest::CallToolRequest(CallToolRequest::new(params)),
        context: CallContext::new(call.idempotency_key),
        deadline,
        retries,
        is_repeatable: annotations.read_only == Some(true) || annotations.idempotent == Some(true),
        is_tool_call: true,
        progress: call.progress,
    };
    let output = match send_with_retries(server, &mut request).await? {
        ServerResult::CallToolResult(result) => convert::to_tool_output(result),
        other => convert::tool_output_from_json(serde_json::to_value(other).unwrap_or_default()),
    };
    let output = output.replace_too_deep_output();
    Ok(match &tool.output_schema {
        Some(schema) => schema.check_output(output),
        None => output,
    })
}

/// Sends a request. Retries it after a failure if a repetition cannot cause another side effect,
/// until no retry is left or the deadline is reached.
pub(crate) async fn send_with_retries(
    server: &Server,
    call: &mut CallRequest,
) -> Result<ServerResult, ToolCallError> {
    let unavailable = |reason: String| server.unavailable_error(server.redact(reason));
    let name = call.name.clone();
    let circuits = call.is_tool_call.then_some(&server.circuits);
    // An open circuit breaker rejects the call here, so that the call does not first wait until
    // fewer calls are running.
    if let Some(circuits) = circuits {
        circuits.check_call_allowed(&name).map_err(unavailable)?;
    }
    let mut deadline = call.deadline.clone();
    let _permit = acquire_call_permit(server, &deadline).await?;
    let progress = call.progress.clone();
    call.progress = deadline.track_progress(std::mem::take(&mut call.progress));
    if call.progress.has_progress_listener() {
        let listener = ProgressListener(call.progress.clone());
        call.request.extensions_mut().insert(listener);
    }
    call.request.extensions_mut().insert(call.context.clone());
    let mut backoff = Backoff::new(FIRST_RETRY_DELAY, MAX_RETRY_DELAY);
    let mut broken: Option<Arc<Connection>> = None;
    // First error of an attempt that the server may have processed. Later errors do not replace it.
    let mut first_error: Option<ToolCallError> = None;
    let mut attempts: u32 = 0;
    loop {
        let connection = match wait_for_connection(server, &deadline, broken.as_ref()).await {
            Ok(connection) => connection,
            Err(error) => return Err(first_error.unwrap_or(error)),
        };
        let admission = match circuits.map(|it| it.admit_call(&name)).transpose() {
            Ok(admission) => admission,
            Err(reason) => return Err(first_error.unwrap_or_else(|| unavailable(reason))),
        };
        let record = |of_server, of_tool, reason: &str| {
            if let Some(admission) = admission {
                admission.record_outcomes(of_server, of_tool, reason);
                server.update_state();
            }
        };
        attempts += 1;
        let pending = server.responder.pending_requests(&call.context);
        let result = {
            let attempt = pin!(send_once(server, &connection, call));
            deadline.run_until_deadline(pending, attempt).await
        };
        let failure = match result {
            Ok(Ok(result)) => {
                record(Outcome::Answered, Outcome::Answered, "");
                return Ok(result);
            }
            Ok(Err(failure)) => failure,
            Err(after) => {
                let error = ToolCallError::Timeout {
                    server: server.config.name.clone(),
                    tool: name.clone(),
                    after,
                };
                record(Outcome::NoAnswer, Outcome::NoAnswer, &error_reason(&error));
                connection.timed_out.notify_one();
                return Err(error);
            }
        };
        let is_unsent = matches!(failure, RequestFailure::NotSent(_));
        let not_processed = is_unsent || matches!(failure, RequestFailure::Busy(_));
        let error = failure.into_call_error(server, &name);
        if not_processed {
            drop(record);
        } else {
            let (of_server, of_tool) = classify_call_error(&error, &connection, &name);
            record(of_server, of_tool, &error_reason(&error));
            let broke = matches!(error, ToolCallError::Broken { .. }) && connection.is_unusable();
            if !(broke && call.is_repeatable) {
                return Err(error);
            }
        }
        if is_unsent || !not_processed {
            broken = Some(connection);
        }
        // If the first attempt was not sent, a new connection usually works immediately, so the
        // first retry has no delay.
        let delay = if is_unsent && attempts == 1 {
            Duration::ZERO
        } else {
            backoff.next_delay()
        };
        let retry = ToolRetry {
            attempt: attempts + 1,
            reason: error_reason(&error),
        };
        let error = first_error.take().unwrap_or(error);
        if attempts > call.retries || Instant::now() + delay >= deadline.end_time() {
            return Err(error);
        }
        tracing::debug!(server = server.config.name, name, %error, "retrying a request");
        progress.report_retry(retry);
        if !error.did_not_run() {
            first_error = Some(error);
        }
        sleep(delay).await;
    }
}

/// Sends a request once. Returns its result, or an error if the connection ends first. Dropping the
/// future cancels the request.
async fn send_once(
    server: &Server,
    connection: &Connection,
    call: &CallRequest,
) -> Result<ServerResult, RequestFailure> {
    let answer = async {
        let sent =
            multi_round::send_with_input_rounds(server, connection, &call.request, &call.context);
        match sent.await? {
            ServerResult::CreateTaskResult(created) => {
                // The future is boxed because it is large and rarely needed.
                let task = Box::pin(tasks::wait_for_task(server, connection, call, created));
                let result = task.await?;
                Ok(ServerResult::CustomResult(CustomResult::new(result)))
            }
            result => Ok(result),
        }
    };
    tokio::select! {
        // `biased` polls the answer first, so an answer counts if it arrived before the connection
        // ended.
        biased;
        result = answer => result,
        // The connection also ends if the server process exits. Its pipe may stay open after the
        // exit, because a child process of the server can hold it.
        reason = connection.wait_until_ended() => Err(RequestFailure::Broken(reason)),
    }
}

async fn acquire_call_permit<'a>(
    server: &'a Server,
    deadline: &Deadline,
) -> Result<SemaphorePermit<'a>, ToolCallError> {
    let permit = timeout_at(deadline.wait_end_time(), server.call_permits.acquire()).await;
    deadline.record_activity();
    if let Ok(Ok(permit)) = permit {
        return Ok(permit);
    }
    let limit = match server.max_concurrent_calls {
        1 => "one call".to_owned(),
        calls => format!("{calls} calls"),
    };
    let waited = deadline.idle_limit();
    Err(server.unavailable_error(format!(
        "the limit of {limit} at a time is reached, and no call ended within {waited:?}"
    )))
}

/// Returns the outcomes of a failed call for the circuit breakers: first for the breaker of the
/// server, then for the breaker of `tool`.
fn classify_call_error(
    error: &ToolCallError,
    connection: &Connection,
    tool: &str,
) -> (Outcome, Outcome) {
    match error {
        ToolCallError::Refused { .. } | ToolCallError::InvalidAnswer { .. } => {
            (Outcome::Answered, Outcome::Answered)
        }
        // The supervisor restarts the server, so the circuit breaker of the server does not count
        // the failure. The breaker of the tool counts it once per connection, even if several calls
        // of the tool were running.
        ToolCallError::Broken { .. } if connection.has_ended() => {
            if connection.record_interrupted_tool(tool) {
                (Outcome::Unknown, Outcome::NoAnswer)
            } else {
                (Outcome::Unknown, Outcome::Unknown)
            }
        }
        ToolCallError::Broken { .. } => (Outcome::NoAnswer, Outcome::NoAnswer),
        _ => (Outcome::Unknown, Outcome::Unknown),
    }
}

/// Returns the reason in a call error, without the names of the server and the tool. Returns the
/// whole error message if the error has no separate reason.
fn error_reason(error: &ToolCallError) -> String {
    match error {
        ToolCallError::Timeout { after, .. } => format!("no response within {after:?}"),
        ToolCallError::Broken { reason, .. } | ToolCallError::Unavailable { reason, .. } => {
            reason.clone()
        }
        other => other.to_string(),
    }
}

/// Waits for a usable connection other than `broken`. Returns an error when the deadline has
/// passed, or earlier if the server has failed or was stopped.
pub(crate) async fn wait_for_connection(
    server: &Server,
    deadline: &Deadline,
    broken: Option<&Arc<Connection>>,
) -> Result<Arc<Connection>, ToolCallError> {
    let connection = timeout_at(deadline.wait_end_time(), usable_connection(server, broken)).await;
    deadline.record_activity();
    connection.unwrap_or_else(|_| {
        let reason = server.snapshot().unavailable_reason();
        let limit = deadline.idle_limit();
        Err(server.unavailable_error(format!("not ready within {limit:?}: {reason}")))
    })
}

async fn usable_connection(
    server: &Server,
    broken: Option<&Arc<Connection>>,
) -> Result<Arc<Connection>, ToolCallError> {
    if let Some(broken) = broken {
        server.wait_for_reconnection(broken).await;
    }
    loop {
        server.wait_for_startup().await;
        let snapshot = server.snapshot();
        match &snapshot.connection {
            // The connection has ended, but the supervisor task has not yet replaced it.
            Some(connection) if connection.has_ended() => {
                server.wait_for_reconnection(connection).await;
            }
            Some(connection) => return Ok(connection.clone()),
            None if snapshot.state == ServerState::Starting => {}
            None => return Err(server.unavailable_error(snapshot.unavailable_reason())),
        }
    }
}
