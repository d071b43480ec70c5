//! One call of one tool, from the permit to the result, within its deadline.
//!
//! A call is attempted again, within the same deadline, if that cannot repeat an effect: the server
//! did not process it, or the connection broke and the tool declares that it is read-only or
//! idempotent. Every attempt needs the permission of the circuit breakers.

use std::{pin::pin, sync::Arc, time::Duration};

use switchboard_domain::{ProgressSink, SharedObject, ToolCallError, ToolOutput, ToolRetry};
use tokio::{
    sync::SemaphorePermit,
    time::{Instant, sleep, timeout_at},
};

use crate::{
    backoff::Backoff,
    calls::{
        attempt::attempt, circuits::Outcome, context::CallContext, deadline::Deadline,
        failure::RequestFailure,
    },
    server::{connection::Connection, state::Server, status::ServerState},
    tools::catalog::CatalogTool,
};

/// The nominal delay before the second attempt. It doubles before each further attempt.
const FIRST_RETRY_DELAY: Duration = Duration::from_millis(100);
/// The longest nominal delay between two attempts.
const MAX_RETRY_DELAY: Duration = Duration::from_millis(6400);

/// A tool call.
pub(crate) struct CallRequest {
    pub(crate) tool: Arc<CatalogTool>,
    pub(crate) context: Arc<CallContext>,
    pub(crate) input: SharedObject,
    pub(crate) deadline: Deadline,
    /// Maximum number of further attempts.
    pub(crate) retries: u32,
    pub(crate) progress: ProgressSink,
}

impl CallRequest {
    /// Returns the tool's name on its server.
    pub(crate) fn tool_name(&self) -> &str {
        self.tool.original_name()
    }

    /// Checks an output against the output schema of the tool.
    fn checked_output(&self, output: ToolOutput) -> ToolOutput {
        let output = output.with_checked_depth();
        match &self.tool.output_schema {
            Some(schema) => schema.check(output),
            None => output,
        }
    }

    /// Returns whether the tool declares that a repetition has no further effect.
    fn is_repeatable(&self) -> bool {
        let annotations = &self.tool.definition.annotations;
        annotations.read_only == Some(true) || annotations.idempotent == Some(true)
    }
}

/// Calls a tool. Returns within the deadline.
pub(crate) async fn call(
    server: &Server,
    mut request: CallRequest,
) -> Result<ToolOutput, ToolCallError> {
    let unavailable = |reason: String| ToolCallError::Unavailable {
        server: server.config.name.clone(),
        reason: server.redact(reason),
    };
    let called = request.tool.clone();
    let tool = called.original_name();
    let mut deadline = request.deadline.clone();
    // An open circuit fails the call before it waits for a permit.
    server.circuits.check(tool).map_err(unavailable)?;
    let _permit = acquire_permit(server, &deadline).await?;
    let progress = request.progress.clone();
    request.progress = deadline.track_progress(request.progress);
    let mut backoff = Backoff::new(FIRST_RETRY_DELAY, MAX_RETRY_DELAY);
    let mut broken: Option<Arc<Connection>> = None;
    // The error of the first attempt that may have had an effect.
    let mut first_error: Option<ToolCallError> = None;
    let mut attempts: u32 = 0;
    loop {
        let connection = match wait_for_connection(server, &deadline, broken.as_ref()).await {
            Ok(connection) => connection,
            Err(error) => return Err(first_error.unwrap_or(error)),
        };
        let admission = match server.circuits.admit(tool) {
            Ok(admission) => admission,
            Err(reason) => return Err(first_error.unwrap_or_else(|| unavailable(reason))),
        };
        attempts += 1;
        if attempts > 1 {
            deadline.record_activity();
        }
        let pending = server.pending_requests(&request.context);
        let result = {
            let attempt = pin!(attempt(server, &connection, &request));
            deadline.run(pending, attempt).await
        };
        let failure = match result {
            Ok(Ok(output)) => {
                if admission.record(Outcome::Answered, Outcome::Answered, "") {
                    server.update_state();
                }
                return Ok(request.checked_output(output));
            }
            Ok(Err(failure)) => failure,
            Err(after) => {
                let error = ToolCallError::Timeout {
                    server: server.config.name.clone(),
                    tool: tool.to_owned(),
                    after,
                };
                if admission.record(Outcome::NoAnswer, Outcome::NoAnswer, &reason_of(&error)) {
                    server.update_state();
                }
                connection.timed_out.notify_one();
                return Err(error);
            }
        };
        let not_processed = matches!(
            failure,
            RequestFailure::Busy(_) | RequestFailure::NotSent(_)
        );
        if let RequestFailure::NotSent(_) = failure {
            broken = Some(connection.clone());
        }
        // A new connection mostly repairs the first attempt that was not sent.
        let retries_at_once = matches!(failure, RequestFailure::NotSent(_)) && attempts == 1;
        let error = failure.into_call_error(server, tool);
        if not_processed {
            drop(admission);
        } else {
            let (of_server, of_tool) = outcomes(&error, &connection, tool);
            if admission.record(of_server, of_tool, &reason_of(&error)) {
                server.update_state();
            }
            let broke = matches!(error, ToolCallError::Broken { .. }) && connection.is_gone();
            if !(broke && request.is_repeatable()) {
                return Err(error);
            }
            broken = Some(connection);
        }
        let delay = if retries_at_once {
            Duration::ZERO
        } else {
            backoff.next_delay()
        };
        let retry = ToolRetry {
            attempt: attempts + 1,
            reason: reason_of(&error),
        };
        let error = first_error.take().unwrap_or(error);
        if attempts > request.retries || Instant::now() + delay >= deadline.end() {
            return Err(error);
        }
        tracing::debug!(server = server.config.name, tool, %error, "retrying a call");
        progress.retrying(retry);
        if !error.did_not_run() {
            first_error = Some(error);
        }
        sleep(delay).await;
    }
}

/// Waits for one of the server's call permits.
pub(crate) async fn acquire_permit<'a>(
    server: &'a Server,
    deadline: &Deadline,
) -> Result<SemaphorePermit<'a>, ToolCallError> {
    let permit = timeout_at(deadline.wait_until(), server.call_permits.acquire()).await;
    deadline.record_activity();
    if let Ok(Ok(permit)) = permit {
        return Ok(permit);
    }
    let limit = match server.max_concurrent_calls {
        1 => "one call".to_owned(),
        calls => format!("{calls} calls"),
    };
    let waited = deadline.idle_limit();
    Err(ToolCallError::Unavailable {
        server: server.config.name.clone(),
        reason: format!(
            "it accepts {limit} at a time, and the earlier ones did not end within {waited:?}"
        ),
    })
}

/// Returns what an error means for the circuit breakers of the server and of the tool.
fn outcomes(error: &ToolCallError, connection: &Connection, tool: &str) -> (Outcome, Outcome) {
    match error {
        ToolCallError::Refused { .. } | ToolCallError::InvalidAnswer { .. } => {
            (Outcome::Answered, Outcome::Answered)
        }
        // The supervisor restarts the server. The tool may have ended the connection.
        ToolCallError::Broken { .. } if connection.has_ended() => {
            let of_tool = if connection.blame(tool) {
                Outcome::NoAnswer
            } else {
                Outcome::Unknown
            };
            (Outcome::Unknown, of_tool)
        }
        ToolCallError::Broken { .. } | ToolCallError::Timeout { .. } => {
            (Outcome::NoAnswer, Outcome::NoAnswer)
        }
        _ => (Outcome::Unknown, Outcome::Unknown),
    }
}

/// Returns the error text without the names of server and tool.
fn reason_of(error: &ToolCallError) -> String {
    match error {
        ToolCallError::Timeout { after, .. } => format!("no answer within {after:?}"),
        ToolCallError::Broken { reason, .. } | ToolCallError::Unavailable { reason, .. } => {
            reason.clone()
        }
        other => other.to_string(),
    }
}

/// Waits, within the deadline, for a connection other than `broken`.
pub(crate) async fn wait_for_connection(
    server: &Server,
    deadline: &Deadline,
    broken: Option<&Arc<Connection>>,
) -> Result<Arc<Connection>, ToolCallError> {
    let connection = timeout_at(deadline.wait_until(), usable_connection(server, broken)).await;
    deadline.record_activity();
    connection.unwrap_or_else(|_| {
        let (waited, reason) = (
            deadline.idle_limit(),
            server.snapshot().unavailable_reason(),
        );
        Err(ToolCallError::Unavailable {
            server: server.config.name.clone(),
            reason: format!("not ready within {waited:?}: {reason}"),
        })
    })
}

async fn usable_connection(
    server: &Server,
    broken: Option<&Arc<Connection>>,
) -> Result<Arc<Connection>, ToolCallError> {
    if let Some(broken) = broken {
        server.wait_until_replaced(broken).await;
    }
    loop {
        server.settled().await;
        let snapshot = server.snapshot();
        match &snapshot.connection {
            // The supervisor has not recorded the end yet.
            Some(connection) if connection.has_ended() => {
                server.wait_until_replaced(connection).await;
            }
            Some(connection) => return Ok(connection.clone()),
            None if snapshot.state == ServerState::Starting => {}
            None => return Err(server.unavailable(&snapshot)),
        }
    }
}
