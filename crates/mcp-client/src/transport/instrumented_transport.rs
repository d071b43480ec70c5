//! What happens on the wire between rmcp's client and the transport.
//!
//! Three things are done here because only here messages are seen in order: progress is told before
//! the answer that follows it; an error without an id finds the request that it answers; and the
//! question which era a server belongs to is settled in a time of our choosing. (rmcp waits a fixed
//! ten seconds for `server/discover`, gives up on an odd answer, and takes a late answer for the one
//! to `initialize`. It drops errors without an id, and who waits for the answer waits for ever.)
//!
//! Calls that went past rmcp (`direct.rs`) get their answers and their progress here too.

#![allow(deprecated, reason = "servers of both eras still log")]

use std::{
    borrow::Cow,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use rmcp::{
    RoleClient,
    model::{
        ClientJsonRpcMessage, ClientNotification, ClientRequest, CustomRequest, ErrorCode,
        ErrorData, GetExtensions, GetMeta, JsonRpcMessage, LoggingLevel, ProgressNotificationParam,
        ProgressToken, RequestId, RequestMetaObject, ServerJsonRpcMessage, ServerNotification,
        ServerRequest, ServerResult,
    },
    service::{InboundStreamOrigin, ServiceError},
    transport::Transport,
};
use serde_json::Value;
use switchboard_domain::{ProgressSink, ToolProgress};
use tokio::{
    sync::oneshot,
    time::{Instant, sleep_until},
};

use crate::{
    calls::context::Caller,
    server::logs::LogLevel,
    server_requests::within::Within,
    transport::{
        direct::{Answer, Direct, IDEMPOTENCY_KEY},
        open_requests::{Ending, OpenRequests},
    },
};

/// Rides on a request's extensions: whoever wants to hear of its progress.
#[derive(Clone)]
pub(crate) struct Listener(pub(crate) ProgressSink);

/// In an error's `data`: it came without the id of a request, so the server did not read the request
/// as far as its id.
const UNREAD: &str = "switchboard/unread";

/// Whether a server said this of a request that it did not read.
pub(crate) fn is_unread(error: &ErrorData) -> bool {
    error.data.as_ref().is_some_and(|data| data == UNREAD)
}

/// A transport with progress taken out and, where asked for, the discovery probe kept short.
pub(crate) struct Wire<T> {
    inner: T,
    probe: Probe,
    calls: Vec<Call>,
    /// Requests that wait for their answer, without those that may wait for ever.
    open: OpenRequests,
    /// What servers of 2026-07-28 that log are asked to log of each call, in its `_meta`; the older ones
    /// are told once (`connect.rs`).
    log_level: Option<LoggingLevel>,
    logs: bool,
    /// Calls past rmcp, where the transport takes them.
    direct: Option<Attached>,
}

/// Ends with the wire.
struct Attached(Arc<Direct>);

impl Drop for Attached {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// A request whose progress is listened to.
struct Call {
    id: RequestId,
    token: ProgressToken,
    sink: ProgressSink,
    last: f64,
}

enum Probe {
    /// Discovery is not watched.
    Off,
    /// The next `server/discover` is watched for this long.
    Armed { patience: Duration },
    Waiting {
        id: RequestId,
        until: Instant,
        patience: Duration,
    },
    /// The server was taken to be of the older era; its answer may still come.
    GivenUp { id: RequestId },
}

/// Whether a server that was taken to be of the older era answered discovery after all.
#[derive(Clone, Default)]
pub(crate) struct LateDiscovery(Arc<AtomicBool>);

impl LateDiscovery {
    pub(crate) fn happened(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// A [`Wire`] whose discovery probe is watched.
pub(crate) struct ProbedWire<T> {
    wire: Wire<T>,
    late: LateDiscovery,
}

impl<T> Wire<T> {
    pub(crate) fn new(inner: T) -> Self {
        Self {
            inner,
            probe: Probe::Off,
            calls: Vec::new(),
            open: OpenRequests::default(),
            log_level: None,
            logs: false,
            direct: None,
        }
    }

    /// Gives calls that are made past rmcp what the server says to them.
    pub(crate) fn with_direct(mut self, direct: Arc<Direct>) -> Self {
        self.open = direct.open_requests();
        self.direct = Some(Attached(direct));
        self
    }

    /// Asks for messages of this level and above.
    pub(crate) fn logging(mut self, level: LogLevel) -> Self {
        self.log_level = Some(level.to_mcp());
        self
    }

    /// Our requests on this connection that were not answered yet.
    pub(crate) fn open_requests(&self) -> OpenRequests {
        self.open.clone()
    }

    /// Answers `server/discover` in the server's stead, as a server of the older era would, if it
    /// is silent for `patience` or says something odd.
    pub(crate) fn probed(self, patience: Duration, late: LateDiscovery) -> ProbedWire<T> {
        let probe = Probe::Armed { patience };
        let wire = Self { probe, ..self };
        ProbedWire { wire, late }
    }

    fn outgoing(&mut self, message: &mut ClientJsonRpcMessage) {
        match message {
            JsonRpcMessage::Request(request) => {
                let method = Asked::of(&request.request);
                let sink = request.request.extensions_mut().remove::<Listener>();
                let caller = request.request.extensions_mut().remove::<Arc<Caller>>();
                let meta = request.request.get_meta_mut();
                match (sink, meta.get_progress_token()) {
                    (Some(Listener(sink)), Some(token)) => self.calls.push(Call {
                        id: request.id.clone(),
                        token,
                        sink,
                        last: f64::NEG_INFINITY,
                    }),
                    // rmcp asks for progress with every request. Nobody listens: do not ask.
                    (None, Some(_)) => {
                        meta.remove("progressToken");
                    }
                    (_, None) => {}
                }
                let newer_era = |meta: &RequestMetaObject| {
                    let version = meta.protocol_version();
                    version.is_some_and(|version| !version.has_initialize())
                };
                let log_level = self
                    .log_level
                    .filter(|_| self.logs && method.concerns_calls() && newer_era(meta));
                match (method, log_level, &self.direct) {
                    (Asked::ToolCall, Some(level), _) => meta.set_log_level(level),
                    // The first request after the handshake: what rmcp says in it, it says in all.
                    (Asked::ToolList, level, Some(Attached(direct))) => {
                        direct.introduce(meta, level);
                    }
                    _ => {}
                }
                if meta.is_empty() {
                    request
                        .request
                        .extensions_mut()
                        .remove::<RequestMetaObject>();
                }
                if !matches!(method, Asked::Unanswered) {
                    let may_ask = matches!(method, Asked::ToolCall | Asked::Reading);
                    let caller = may_ask.then(|| caller.unwrap_or_default());
                    self.open.begin(request.id.clone(), caller);
                }
                if let ClientRequest::DiscoverRequest(_) = request.request
                    && let Probe::Armed { patience } | Probe::Waiting { patience, .. } = self.probe
                {
                    self.probe = Probe::Waiting {
                        id: request.id.clone(),
                        until: Instant::now() + patience,
                        patience,
                    };
                }
            }
            JsonRpcMessage::Notification(notification) => {
                if let ClientNotification::CancelledNotification(cancelled) =
                    &notification.notification
                    && let Some(id) = &cancelled.params.request_id
                {
                    // Nobody waits any more.
                    drop(self.close_request(id, Ending::GivenUp));
                }
            }
            JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_) => {}
        }
    }

    /// What is passed on of a message, if anything.
    fn incoming(&mut self, message: ServerJsonRpcMessage) -> Option<ServerJsonRpcMessage> {
        match message {
            JsonRpcMessage::Response(response) => {
                if let ServerResult::DiscoverResult(about) = &response.result {
                    self.logs = about.capabilities.logging.is_some();
                }
                let ending = match &response.result {
                    ServerResult::CallToolResult(result) if result.is_error == Some(true) => {
                        Ending::Refused
                    }
                    _ => Ending::Answered,
                };
                let Some(caller) = self.close_request(&response.id, ending) else {
                    return Some(JsonRpcMessage::Response(response));
                };
                // Fails when the call was given up just now.
                let _ = caller.send(Ok(response.result));
                None
            }
            JsonRpcMessage::Error(mut error) => {
                // Our ids are numbers. Middleware sends none, or a word of its own.
                if error.id.as_ref().is_none_or(is_a_word)
                    && let Some(sole) = self.open.sole()
                {
                    error.id = Some(sole);
                    error.error.data = Some(UNREAD.into());
                }
                let id = error.id.as_ref();
                let caller = id.and_then(|id| self.close_request(id, Ending::Refused));
                let Some(caller) = caller else {
                    return Some(JsonRpcMessage::Error(error));
                };
                let _ = caller.send(Err(ServiceError::McpError(error.error)));
                None
            }
            JsonRpcMessage::Notification(notification) => {
                if let ServerNotification::ProgressNotification(progress) =
                    &notification.notification
                {
                    self.progress(&progress.params);
                    return None;
                }
                Some(JsonRpcMessage::Notification(notification))
            }
            JsonRpcMessage::Request(mut request) => {
                let within = self.within(&request.request);
                let direct = self.direct.as_ref();
                if direct.is_some_and(|Attached(direct)| direct.may_be_asked_unknown_to_rmcp()) {
                    request.request = unrestricted(request.request);
                }
                if let Some(within) = within {
                    request.request.extensions_mut().insert(within);
                }
                Some(JsonRpcMessage::Request(request))
            }
        }
    }

    /// Within which request of ours the server asks. Over HTTP the stream on which it asks says so. Over pipes
    /// nothing does, unless the server repeats the key of the call.
    fn within(&self, request: &ServerRequest) -> Option<Within> {
        if !matches!(
            request,
            ServerRequest::ElicitRequest(_)
                | ServerRequest::CreateMessageRequest(_)
                | ServerRequest::CustomRequest(_)
        ) {
            return None;
        }
        let stream = match request.extensions().get::<InboundStreamOrigin>() {
            Some(InboundStreamOrigin::OutboundRequest(id)) => Some(id),
            Some(InboundStreamOrigin::Unassociated) | None => None,
        };
        let key = request.get_meta().get(IDEMPOTENCY_KEY);
        let named = match (stream, key.and_then(Value::as_str)) {
            (Some(id), _) => self.open.caller(id).map(|caller| (id.clone(), caller)),
            (None, Some(key)) => self.open.keyed(key),
            (None, None) => return Some(Within::Unplaced(self.open.question(false))),
        };
        Some(match named {
            Some((id, caller)) => Within::Known {
                request: Some(id),
                caller,
            },
            // It says within which, and that is over: it is none of the others either.
            None => Within::Unplaced(self.open.question(true)),
        })
    }

    /// It was answered, or nobody waits for the answer any more. Who does, if it went past rmcp.
    fn close_request(&mut self, id: &RequestId, ending: Ending) -> Option<oneshot::Sender<Answer>> {
        self.calls.retain(|call| !same(&call.id, id));
        self.open.end(|open| same(open, id), ending);
        let Attached(direct) = self.direct.as_ref()?;
        direct.caller(id)
    }

    fn progress(&mut self, told: &ProgressNotificationParam) {
        let call = self.calls.iter_mut().find(|call| {
            // Some servers make text of the number.
            same(&call.token.0, &told.progress_token.0)
        });
        let sink = match (call, &self.direct) {
            (Some(call), _) => {
                // It must grow; a sink may rely on that.
                let grows = told.progress >= call.last;
                call.last = call.last.max(told.progress);
                grows.then(|| call.sink.clone())
            }
            (None, Some(Attached(direct))) => direct.listener(told),
            (None, None) => None,
        };
        if let Some(sink) = sink {
            sink.report(ToolProgress {
                progress: told.progress,
                total: told.total,
                message: told.message.clone(),
            });
        }
    }
}

/// In the newer era rmcp refuses some of what a server asks while none of rmcp's own requests is open, and it
/// does not know of calls that went past it. What it takes for a request of an unknown kind it hands on to us
/// all the same, and we answer it as what it is (`handler.rs`).
fn unrestricted(request: ServerRequest) -> ServerRequest {
    if !matches!(
        request,
        ServerRequest::ElicitRequest(_)
            | ServerRequest::CreateMessageRequest(_)
            | ServerRequest::ListRootsRequest(_)
    ) {
        return request;
    }
    let mut fields = serde_json::to_value(&request).unwrap_or_default();
    let params = fields.get_mut("params").map(Value::take);
    match fields.get("method").and_then(Value::as_str) {
        Some(method) => ServerRequest::CustomRequest(CustomRequest::new(method, params)),
        None => request,
    }
}

/// What the wire has to know of a request.
#[derive(Clone, Copy)]
enum Asked {
    ToolCall,
    ToolList,
    /// A prompt or a resource, before which a server may ask something as before a tool's answer.
    Reading,
    /// Its answer comes at the end of all, or is not waited for.
    Unanswered,
    Other,
}

impl Asked {
    fn of(request: &ClientRequest) -> Self {
        match request {
            ClientRequest::CallToolRequest(_) => Self::ToolCall,
            ClientRequest::ListToolsRequest(_) => Self::ToolList,
            ClientRequest::GetPromptRequest(_) | ClientRequest::ReadResourceRequest(_) => {
                Self::Reading
            }
            ClientRequest::SubscriptionsListenRequest(_) | ClientRequest::SetLevelRequest(_) => {
                Self::Unanswered
            }
            ClientRequest::CustomRequest(request) if request.method == "subscriptions/listen" => {
                Self::Unanswered
            }
            _ => Self::Other,
        }
    }

    /// Whether what is said in it is said in calls.
    fn concerns_calls(self) -> bool {
        matches!(self, Self::ToolCall | Self::ToolList)
    }
}

impl<T> ProbedWire<T> {
    /// What is passed on of a message while the probe is watched.
    fn judge(&mut self, message: ServerJsonRpcMessage) -> Option<ServerJsonRpcMessage> {
        match &self.wire.probe {
            Probe::Waiting { id, patience, .. } => match message {
                JsonRpcMessage::Response(response) if same(id, &response.id) => {
                    if let ServerResult::DiscoverResult(_) = response.result {
                        self.wire.probe = Probe::Off;
                        return Some(JsonRpcMessage::Response(response));
                    }
                    Some(self.give_up(id.clone(), "odd answer"))
                }
                // It answers something that was not asked.
                JsonRpcMessage::Response(_) => None,
                // Errors may come without an id or, from some middleware, with one of its own. After
                // one that names other versions rmcp asks again.
                JsonRpcMessage::Error(mut error) => {
                    error.id = Some(id.clone());
                    self.wire.probe = Probe::Armed {
                        patience: *patience,
                    };
                    Some(JsonRpcMessage::Error(error))
                }
                other => Some(other),
            },
            Probe::GivenUp { id } => match &message {
                JsonRpcMessage::Response(response) if same(id, &response.id) => {
                    if let ServerResult::DiscoverResult(_) = response.result {
                        self.late.0.store(true, Ordering::Relaxed);
                    }
                    None
                }
                JsonRpcMessage::Error(error)
                    if error.id.as_ref().is_some_and(|other| same(id, other)) =>
                {
                    None
                }
                _ => Some(message),
            },
            Probe::Off | Probe::Armed { .. } => Some(message),
        }
    }

    fn give_up(&mut self, id: RequestId, why: &'static str) -> ServerJsonRpcMessage {
        tracing::debug!(why, "taken for a server of the older era");
        self.wire.probe = Probe::GivenUp { id: id.clone() };
        let error = ErrorData::new(ErrorCode::METHOD_NOT_FOUND, why, None);
        ServerJsonRpcMessage::error(error, Some(id))
    }
}

fn is_a_word(id: &RequestId) -> bool {
    match id {
        RequestId::Number(_) => false,
        RequestId::String(text) => text.parse::<i64>().is_err(),
    }
}

/// Some servers answer the number 1 with the text "1".
fn same(sent: &RequestId, received: &RequestId) -> bool {
    use rmcp::model::NumberOrString::{Number, String};
    match (sent, received) {
        (Number(number), String(text)) => text.parse() == Ok(*number),
        _ => sent == received,
    }
}

impl<T: Transport<RoleClient>> Transport<RoleClient> for Wire<T> {
    type Error = T::Error;

    fn name() -> Cow<'static, str> {
        T::name()
    }

    fn send(
        &mut self,
        mut message: ClientJsonRpcMessage,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        self.outgoing(&mut message);
        let asked = match &message {
            JsonRpcMessage::Request(request) => Some(request.id.clone()),
            _ => None,
        };
        let (sent, open) = (self.inner.send(message), self.open.clone());
        async move {
            let sent = sent.await;
            if let (Err(_), Some(asked)) = (&sent, asked) {
                // What did not leave is not answered.
                open.end(|open| *open == asked, Ending::Refused);
            }
            sent
        }
    }

    // Safe to drop at any point, as rmcp's loop does: nothing is held over an await.
    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        loop {
            let Some(message) = self.inner.receive().await else {
                self.open.end_all();
                return None;
            };
            if let Some(message) = self.incoming(message) {
                return Some(message);
            }
        }
    }

    fn close(&mut self) -> impl Future<Output = Result<(), Self::Error>> + Send {
        self.inner.close()
    }
}

impl<T: Transport<RoleClient>> Transport<RoleClient> for ProbedWire<T> {
    type Error = T::Error;

    fn name() -> Cow<'static, str> {
        T::name()
    }

    fn send(
        &mut self,
        message: ClientJsonRpcMessage,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        self.wire.send(message)
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        loop {
            let message = match &self.wire.probe {
                Probe::Waiting { id, until, .. } => {
                    let (id, until) = (id.clone(), *until);
                    tokio::select! {
                        biased;
                        message = self.wire.receive() => message?,
                        () = sleep_until(until) => return Some(self.give_up(id, "no answer")),
                    }
                }
                _ => self.wire.receive().await?,
            };
            if let Some(message) = self.judge(message) {
                return Some(message);
            }
        }
    }

    fn close(&mut self) -> impl Future<Output = Result<(), Self::Error>> + Send {
        self.wire.close()
    }
}

#[cfg(test)]
#[path = "instrumented_transport_tests.rs"]
mod tests;
