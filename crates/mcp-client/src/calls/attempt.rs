//! One attempt at a call: the request, what the server wants to know first, the answer, and what an error
//! of the connection means.

use std::time::Duration;

use rmcp::{
    RoleClient,
    model::{
        CallToolRequest, CallToolRequestParams, ClientRequest, ErrorData, GetExtensions,
        JsonObject as McpObject, RequestId, RequestMetaObject, ServerResult,
    },
    service::{Peer, PeerRequestOptions, ServiceError},
};
use switchboard_domain::{ToolCallError, ToolOutput};
use tokio::time::timeout;
use tokio_util::task::task_tracker::TaskTrackerToken;

use crate::{
    calls::{call::Request, tasks},
    server::state::{Link, Server},
    server_requests::{
        elicitation::{Visited, Visits},
        within::Within,
    },
    tools::convert,
    transport::{
        direct::{IDEMPOTENCY_KEY, Said},
        http::Failure,
        instrumented_transport::{Listener, is_unread},
        invalid_message::invalid_answer_reason,
    },
};

/// Rounds in which a server may ask for something before it answers; rmcp has the same number.
const MOST_ROUNDS: usize = 10;
/// How long the reason of a broken connection is waited for.
const POST_MORTEM: Duration = Duration::from_secs(1);

/// What came of one attempt.
pub(crate) enum Attempt {
    Answered(Result<ToolOutput, ToolCallError>),
    /// The call did not leave, and the connection is no good.
    NotSent {
        reason: String,
    },
    /// The server turned it away for now, and the connection is sound.
    Busy {
        reason: String,
    },
}

/// Asks once, until there is an answer or the connection ends.
pub(crate) async fn attempt(server: &Server, link: &Link, request: &Request) -> Attempt {
    tokio::select! {
        // An answer that came before the end counts.
        biased;
        attempt = exchange(server, link, request) => attempt,
        // The pipe may stay open longer than the process, held by a grandchild.
        reason = link.ended() => Attempt::Answered(Err(broken(server, request, reason))),
    }
}

/// Asks, and asks again as long as the server wants something first.
async fn exchange(server: &Server, link: &Link, request: &Request) -> Attempt {
    let first = Said::First {
        tool: request.tool(),
        input: &request.input,
    };
    let mut answered: Option<Box<CallToolRequestParams>> = None;
    let mut visited = Visited::default();
    for _ in 0..MOST_ROUNDS {
        let said = answered.as_deref().map_or(first, Said::Again);
        let result = match send(link, said, request).await {
            Ok(result) => result,
            Err(error) => {
                let Some(visits) = Visits::of(&error) else {
                    return Box::pin(failure(server, link, request, error)).await;
                };
                let within = Within::call(&request.caller);
                match Box::pin(server.asks.visit(visits, &mut visited, &within)).await {
                    Ok(()) => continue,
                    Err(error) => return Attempt::Answered(Err(refused(server, request, error))),
                }
            }
        };
        let answer = match result {
            ServerResult::CallToolResult(result) => Ok(convert::output(result)),
            ServerResult::InputRequiredResult(wants) => {
                let within = Within::call(&request.caller);
                match Box::pin(server.asks.answer(wants, &within)).await {
                    Ok(known) => {
                        let mut params = Box::new(said.to_params());
                        Box::pin(known.put_into(&mut params)).await;
                        answered = Some(params);
                        continue;
                    }
                    Err(error) => Err(refused(server, request, error)),
                }
            }
            ServerResult::CreateTaskResult(created) => {
                Box::pin(tasks::follow(server, link, request, created)).await
            }
            other => {
                let result = serde_json::to_value(other).unwrap_or_default();
                let within = Within::call(&request.caller);
                match Box::pin(server.asks.answer_json(&result, &within)).await {
                    None => Ok(convert::output_from_json(result)),
                    Some(Ok(known)) => {
                        let mut params = Box::new(said.to_params());
                        Box::pin(known.put_into(&mut params)).await;
                        answered = Some(params);
                        continue;
                    }
                    Some(Err(error)) => Err(refused(server, request, error)),
                }
            }
        };
        return Attempt::Answered(answer);
    }
    let reason = format!("it wanted something first {MOST_ROUNDS} times");
    Attempt::Answered(Err(broken(server, request, reason)))
}

/// Sends one request and waits. Dropping the future tells the server that it is cancelled.
async fn send(link: &Link, said: Said<'_>, call: &Request) -> Result<ServerResult, ServiceError> {
    let sent = match &link.direct {
        Some(direct) => direct.call(said, &call.caller, &call.progress),
        None => None,
    };
    let Some(sent) = sent else {
        return Box::pin(send_with_rmcp(link, said.to_params(), call)).await;
    };
    let mut unless_answered = CancelOnDrop::new(link, sent.id);
    let answer = sent.answer.await;
    unless_answered.answered = true;
    answer.unwrap_or(Err(ServiceError::TransportClosed))
}

/// The same where calls do not go past rmcp.
async fn send_with_rmcp(
    link: &Link,
    params: CallToolRequestParams,
    call: &Request,
) -> Result<ServerResult, ServiceError> {
    let mut request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
    if call.progress.is_listening() {
        request
            .extensions_mut()
            .insert(Listener(call.progress.clone()));
    }
    request.extensions_mut().insert(call.caller.clone());
    let mut options = PeerRequestOptions::no_options();
    if let Some(key) = &call.caller.key {
        let mut meta = McpObject::new();
        meta.insert(IDEMPOTENCY_KEY.to_owned(), key.as_str().into());
        options = options.with_meta(RequestMetaObject::from(meta));
    }
    let handle = link.peer.send_request_with_option(request, options).await?;
    let mut unless_answered = CancelOnDrop::new(link, handle.id.clone());
    let answer = handle.await_response().await;
    unless_answered.answered = true;
    answer
}

/// Tells the server that nobody waits for the answer any more.
pub(crate) struct CancelOnDrop<'a> {
    pub(crate) peer: &'a Peer<RoleClient>,
    pub(crate) id: RequestId,
    pub(crate) answered: bool,
    /// The connection is not closed before the server was told.
    pub(crate) call: TaskTrackerToken,
}

impl<'a> CancelOnDrop<'a> {
    fn new(link: &'a Link, id: RequestId) -> Self {
        Self {
            peer: &link.peer,
            id,
            answered: false,
            call: link.calls.token(),
        }
    }
}

impl Drop for CancelOnDrop<'_> {
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
async fn failure(server: &Server, link: &Link, request: &Request, error: ServiceError) -> Attempt {
    let answer = match error {
        // An HTTP server that was restarted answers so to a session that it does not know.
        ServiceError::McpError(error)
            if is_unread(&error) && !server.config.transport.is_stdio() =>
        {
            let reason = format!("{} (code {})", error.message, error.code.0);
            return Attempt::NotSent { reason };
        }
        ServiceError::McpError(error) => match invalid_answer_reason(&error) {
            Some(reason) => invalid_answer(server, request, reason),
            None => refused(server, request, error),
        },
        ServiceError::TransportSend(error) => match Failure::of(&error) {
            Failure::Unauthorized { challenge } => ToolCallError::Unavailable {
                server: server.config.name.clone(),
                reason: server
                    .redactor
                    .clean(Failure::Unauthorized { challenge }.into_reason()),
            },
            Failure::Login { reason, .. } => ToolCallError::Unavailable {
                server: server.config.name.clone(),
                reason: server.redactor.clean(reason),
            },
            Failure::Busy { reason } => return Attempt::Busy { reason },
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

fn refused(server: &Server, request: &Request, error: ErrorData) -> ToolCallError {
    refused_with(server, request, i64::from(error.code.0), error.message)
}

pub(crate) fn refused_with(
    server: &Server,
    request: &Request,
    code: i64,
    message: impl Into<String>,
) -> ToolCallError {
    ToolCallError::Refused {
        server: server.config.name.clone(),
        tool: request.tool().to_owned(),
        code,
        message: server.redactor.clean(message),
    }
}

pub(crate) fn broken(
    server: &Server,
    request: &Request,
    reason: impl Into<String>,
) -> ToolCallError {
    ToolCallError::Broken {
        server: server.config.name.clone(),
        tool: request.tool().to_owned(),
        reason: server.redactor.clean(reason),
    }
}

pub(crate) fn invalid_answer(
    server: &Server,
    request: &Request,
    reason: impl Into<String>,
) -> ToolCallError {
    ToolCallError::InvalidAnswer {
        server: server.config.name.clone(),
        tool: request.tool().to_owned(),
        reason: server.redactor.clean(reason),
    }
}
