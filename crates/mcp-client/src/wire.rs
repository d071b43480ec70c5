//! What happens on the wire between rmcp's client and the transport.
//!
//! Three things are done here because only here messages are seen in order: progress is told before
//! the answer that follows it; an error without an id finds the request that it answers; and the
//! question which era a server belongs to is settled in a time of our choosing. (rmcp waits a fixed
//! ten seconds for `server/discover`, gives up on an odd answer, and takes a late answer for the one
//! to `initialize`. It drops errors without an id, and who waits for the answer waits for ever.)

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
        ClientJsonRpcMessage, ClientNotification, ClientRequest, ErrorCode, ErrorData,
        GetExtensions, GetMeta, JsonRpcMessage, LoggingLevel, ProgressNotificationParam,
        ProgressToken, RequestId, RequestMetaObject, ServerJsonRpcMessage, ServerNotification,
        ServerResult,
    },
    transport::Transport,
};
use switchboard_domain::{ProgressSink, ToolProgress};
use tokio::time::{Instant, sleep_until};

use crate::{logs::LogLevel, open_requests::OpenRequests};

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
        }
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
                if let Some(level) = self.log_level
                    && self.logs
                    && matches!(method, Asked::ToolCall)
                    && newer_era(meta)
                {
                    meta.set_log_level(level);
                }
                if meta.is_empty() {
                    request
                        .request
                        .extensions_mut()
                        .remove::<RequestMetaObject>();
                }
                if !matches!(method, Asked::Unanswered) {
                    let may_ask = matches!(method, Asked::ToolCall | Asked::Reading);
                    self.open.begin(request.id.clone(), may_ask);
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
                    self.close_request(id);
                }
            }
            JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_) => {}
        }
    }

    /// What is passed on of a message, if anything.
    fn incoming(&mut self, mut message: ServerJsonRpcMessage) -> Option<ServerJsonRpcMessage> {
        match &mut message {
            JsonRpcMessage::Notification(notification) => {
                if let ServerNotification::ProgressNotification(progress) =
                    &notification.notification
                {
                    self.progress(&progress.params);
                    return None;
                }
            }
            JsonRpcMessage::Response(response) => {
                if let ServerResult::DiscoverResult(about) = &response.result {
                    self.logs = about.capabilities.logging.is_some();
                }
                self.close_request(&response.id);
            }
            JsonRpcMessage::Error(error) => {
                // Our ids are numbers. Middleware sends none, or a word of its own.
                if error.id.as_ref().is_none_or(is_a_word)
                    && let Some(sole) = self.open.sole()
                {
                    error.id = Some(sole);
                    error.error.data = Some(UNREAD.into());
                }
                if let Some(id) = &error.id {
                    self.close_request(id);
                }
            }
            JsonRpcMessage::Request(_) => {}
        }
        Some(message)
    }

    /// It was answered, or nobody waits for the answer any more.
    fn close_request(&mut self, id: &RequestId) {
        self.calls.retain(|call| !same(&call.id, id));
        self.open.end(|open| same(open, id));
    }

    fn progress(&mut self, told: &ProgressNotificationParam) {
        let call = self.calls.iter_mut().find(|call| {
            // Some servers make text of the number.
            same(&call.token.0, &told.progress_token.0)
        });
        if let Some(call) = call
            // It must grow; a sink may rely on that.
            && told.progress >= call.last
        {
            call.last = told.progress;
            call.sink.report(ToolProgress {
                progress: told.progress,
                total: told.total,
                message: told.message.clone(),
            });
        }
    }
}

/// What the wire has to know of a request.
#[derive(Clone, Copy)]
enum Asked {
    ToolCall,
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
        self.inner.send(message)
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
#[path = "wire_tests.rs"]
mod tests;
