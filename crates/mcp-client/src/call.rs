//! One call of one tool, with its deadline, from the turn to the answer.

use std::{sync::Arc, time::Duration};

use rmcp::{
    RoleClient,
    model::{
        CallToolRequest, CallToolRequestParams, ClientRequest, GetExtensions, InputRequest,
        InputRequests, InputResponses, JsonObject as McpObject, RequestId, RequestMetaObject,
        ServerResult,
    },
    service::{Peer, PeerRequestOptions, ServiceError},
};
use serde_json::json;
use switchboard_domain::{JsonObject, ProgressSink, ToolCallError, ToolOutput};
use tokio::time::{Instant, sleep, timeout, timeout_at};
use tokio_util::task::task_tracker::TaskTrackerToken;

use crate::{
    convert,
    http::Failure,
    server::{Link, Server},
    status::ServerState,
    wire::{Listener, is_unread},
};

/// Rounds in which a server may ask for something before it answers; rmcp has the same number.
const MOST_ROUNDS: usize = 10;
/// How long to wait before asking again where a server only wants to be asked again.
const BETWEEN_ROUNDS: Duration = Duration::from_millis(100);
/// How long the reason of a broken connection is waited for.
const POST_MORTEM: Duration = Duration::from_secs(1);
/// Where in `_meta` a server finds what is the same for every attempt at the same call. The
/// protocol has no name for it; ours has a prefix, as it asks for.
const IDEMPOTENCY_KEY: &str = "switchboard/idempotency-key";

/// What to call.
pub(crate) struct Request<'a> {
    /// The tool's own name.
    pub(crate) tool: &'a str,
    pub(crate) input: JsonObject,
    /// How long it may take, for the error; and so until when.
    pub(crate) limit: Duration,
    pub(crate) until: Instant,
    pub(crate) idempotency_key: Option<String>,
    pub(crate) progress: ProgressSink,
}

/// What came of one attempt.
enum Attempt {
    Answered(Result<ToolOutput, ToolCallError>),
    /// The call did not leave, and the connection is no good.
    NotSent {
        reason: String,
    },
}

/// Calls, within the deadline whatever happens. A connection that turns out to be dead before the
/// call left is replaced once.
pub(crate) async fn call(
    server: &Server,
    request: Request<'_>,
) -> Result<ToolOutput, ToolCallError> {
    let unavailable = |reason: String| ToolCallError::Unavailable {
        server: server.config.name.clone(),
        reason: server.redactor.clean(reason),
    };
    let Request { limit, until, .. } = request;
    let turn = timeout_at(until, server.turn.acquire()).await;
    let _turn = turn.map_err(|_| {
        unavailable(format!(
            "it takes one call at a time, and those before did not end within {limit:?}"
        ))
    })?;
    let mut broken: Option<(Arc<Link>, String)> = None;
    loop {
        let link = timeout_at(
            until,
            ready_link(server, broken.as_ref().map(|(link, _)| link)),
        )
        .await
        .map_err(|_| {
            let now = server.now();
            unavailable(format!("not ready within {limit:?}: {}", now.why_not()))
        })??;
        let attempt = timeout_at(until, attempt(server, &link, &request)).await;
        match attempt {
            Ok(Attempt::Answered(answer)) => return answer,
            Ok(Attempt::NotSent { reason }) if broken.is_none() => {
                tracing::debug!(server = server.config.name, reason, "a call did not leave");
                link.stale
                    .send_replace(Some(server.redactor.clean(&reason)));
                broken = Some((link, reason));
            }
            Ok(Attempt::NotSent { reason }) => return Err(unavailable(reason)),
            Err(_) => {
                return Err(ToolCallError::Timeout {
                    server: server.config.name.clone(),
                    tool: request.tool.to_owned(),
                    after: limit,
                });
            }
        }
    }
}

/// A connection that is alive as far as is known, other than `broken`.
async fn ready_link(
    server: &Server,
    broken: Option<&Arc<Link>>,
) -> Result<Arc<Link>, ToolCallError> {
    if let Some(broken) = broken {
        server.replaced(broken).await;
    }
    loop {
        server.settled().await;
        let now = server.now();
        match &now.link {
            // Its task has not yet said so.
            Some(link) if link.ended.borrow().is_some() => server.replaced(link).await,
            Some(link) => return Ok(link.clone()),
            None if now.state == ServerState::Starting => {}
            None => return Err(server.unavailable(&now)),
        }
    }
}

async fn attempt(server: &Server, link: &Arc<Link>, request: &Request<'_>) -> Attempt {
    tokio::select! {
        // An answer that came before the end counts.
        biased;
        attempt = exchange(server, link, request) => attempt,
        // The pipe may stay open longer than the process, held by a grandchild.
        reason = link.ended() => Attempt::Answered(Err(broken(server, request, reason))),
    }
}

/// Asks, and asks again as long as the server wants something first.
async fn exchange(server: &Server, link: &Link, request: &Request<'_>) -> Attempt {
    let mut params =
        CallToolRequestParams::new(request.tool.to_owned()).with_arguments(request.input.clone());
    for _ in 0..MOST_ROUNDS {
        let result = match send(link, params.clone(), request).await {
            Ok(result) => result,
            Err(error) => return failure(server, link, request, error).await,
        };
        let answer = match result {
            ServerResult::CallToolResult(result) => Ok(convert::output(result)),
            ServerResult::InputRequiredResult(wants) => {
                match wants.input_requests.map(declined).transpose() {
                    Ok(responses) => {
                        if responses.is_none() {
                            sleep(BETWEEN_ROUNDS).await;
                        }
                        params.input_responses = responses;
                        params.request_state = wants.request_state;
                        continue;
                    }
                    Err(reason) => Err(broken(server, request, reason)),
                }
            }
            ServerResult::CreateTaskResult(_) => {
                let reason = "it made a task of the call, which it was not asked to";
                Err(broken(server, request, reason))
            }
            other => Ok(convert::output_from_json(
                serde_json::to_value(other).unwrap_or_default(),
            )),
        };
        return Attempt::Answered(answer);
    }
    let reason = format!("it wanted something first {MOST_ROUNDS} times");
    Attempt::Answered(Err(broken(server, request, reason)))
}

/// Nobody is asked: a person declines, and there are no roots. Neither was offered to the server.
fn declined(requests: InputRequests) -> Result<InputResponses, &'static str> {
    requests
        .into_iter()
        .map(|(key, request)| match request {
            InputRequest::Elicitation(_) => Ok((key, json!({"action": "decline"}))),
            InputRequest::ListRoots(_) => Ok((key, json!({"roots": []}))),
            _ => Err("it asked for something that is not offered to servers"),
        })
        .collect()
}

/// Sends one request and waits. Dropping the future tells the server that it is cancelled.
async fn send(
    link: &Link,
    params: CallToolRequestParams,
    call: &Request<'_>,
) -> Result<ServerResult, ServiceError> {
    let mut request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
    if call.progress.is_listening() {
        request
            .extensions_mut()
            .insert(Listener(call.progress.clone()));
    }
    let mut options = PeerRequestOptions::no_options();
    if let Some(key) = &call.idempotency_key {
        let mut meta = McpObject::new();
        meta.insert(IDEMPOTENCY_KEY.to_owned(), key.as_str().into());
        options = options.with_meta(RequestMetaObject::from(meta));
    }
    let handle = link.peer.send_request_with_option(request, options).await?;
    let mut unless_answered = CancelOnDrop {
        peer: handle.peer.clone(),
        id: handle.id.clone(),
        answered: false,
        call: link.calls.token(),
    };
    let answer = handle.await_response().await;
    unless_answered.answered = true;
    answer
}

/// Tells the server that nobody waits for the answer any more.
struct CancelOnDrop {
    peer: Peer<RoleClient>,
    id: RequestId,
    answered: bool,
    /// The connection is not closed before the server was told.
    call: TaskTrackerToken,
}

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        if self.answered || self.peer.is_transport_closed() {
            return;
        }
        let (peer, id, call) = (self.peer.clone(), self.id.clone(), self.call.clone());
        // Outside a runtime nobody is there to send it, nor to keep the connection.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                let cancelled = cancelled(id);
                let _ = timeout(POST_MORTEM, peer.notify_cancelled(cancelled)).await;
                drop(call);
            });
        }
    }
}

fn cancelled(id: RequestId) -> rmcp::model::CancelledNotificationParam {
    rmcp::model::CancelledNotificationParam::new(
        Some(id),
        Some("nobody waits for the answer any more".to_owned()),
    )
}

/// What an error of the connection means for the call.
async fn failure(
    server: &Server,
    link: &Link,
    request: &Request<'_>,
    error: ServiceError,
) -> Attempt {
    let answer = match error {
        // An HTTP server that was restarted answers so to a session that it does not know.
        ServiceError::McpError(error)
            if is_unread(&error) && !server.config.transport.is_stdio() =>
        {
            let reason = format!("{} (code {})", error.message, error.code.0);
            return Attempt::NotSent { reason };
        }
        ServiceError::McpError(error) => ToolCallError::Refused {
            server: server.config.name.clone(),
            tool: request.tool.to_owned(),
            code: i64::from(error.code.0),
            message: server.redactor.clean(error.message),
        },
        ServiceError::TransportSend(error) => match Failure::of(&error) {
            Failure::Unauthorized { challenge } => ToolCallError::Unavailable {
                server: server.config.name.clone(),
                reason: server
                    .redactor
                    .clean(Failure::Unauthorized { challenge }.into_reason()),
            },
            Failure::Busy { reason } => ToolCallError::Unavailable {
                server: server.config.name.clone(),
                reason: server
                    .redactor
                    .clean(format!("it wants fewer requests ({reason})")),
            },
            Failure::NotDone { reason } => return Attempt::NotSent { reason },
            Failure::Unknown { reason, spoilt } => {
                // Why a pipe cannot be written to is said by the process's end, if it ended.
                if server.config.transport.is_stdio()
                    && let Ok(reason) = timeout(POST_MORTEM, link.ended()).await
                {
                    return Attempt::Answered(Err(broken(server, request, reason)));
                }
                if spoilt {
                    link.stale
                        .send_replace(Some(server.redactor.clean(&reason)));
                }
                broken(server, request, reason)
            }
        },
        ServiceError::TransportClosed => {
            let reason = timeout(POST_MORTEM, link.ended()).await;
            let reason = reason.unwrap_or_else(|_| "it closed the connection".to_owned());
            broken(server, request, reason)
        }
        ServiceError::Cancelled { reason } => {
            let why = reason.map_or_else(String::new, |reason| format!(": {reason}"));
            broken(server, request, format!("it cancelled the call{why}"))
        }
        other => broken(server, request, other.to_string()),
    };
    Attempt::Answered(Err(answer))
}

fn broken(server: &Server, request: &Request<'_>, reason: impl Into<String>) -> ToolCallError {
    ToolCallError::Broken {
        server: server.config.name.clone(),
        tool: request.tool.to_owned(),
        reason: server.redactor.clean(reason),
    }
}
