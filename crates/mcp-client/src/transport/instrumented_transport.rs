//! Transport wrapper between rmcp's client and a transport. It processes messages in order.
//!
//! - Progress is reported before the answer that follows it.
//! - An error without an id is assigned to the only open request. rmcp drops such errors, and the
//!   request would wait until its time-out.
//! - A request from the server is assigned to the call that it belongs to.

#![allow(deprecated, reason = "servers of every version still log")]

use std::{borrow::Cow, sync::Arc};

use rmcp::{
    RoleClient,
    model::{
        ClientJsonRpcMessage, ClientNotification, ClientRequest, ErrorData, GetExtensions, GetMeta,
        JsonRpcMessage, LoggingLevel, RequestId, RequestMetaObject, ServerJsonRpcMessage,
        ServerNotification, ServerRequest, ServerResult,
    },
    service::InboundStreamOrigin,
    transport::Transport,
};
use serde_json::Value;
use switchboard_domain::ProgressSink;

use crate::transport::{
    call_context::{CallContext, IDEMPOTENCY_KEY, RequestContext},
    invalid_message::invalid_answer_reason,
    open_requests::{OpenRequests, is_same_id},
};

/// Receiver of progress reports for one request. The caller adds it to the rmcp extensions of the
/// request. The transport takes it from there when it sends the request.
#[derive(Clone)]
pub(crate) struct ProgressListener(pub(crate) ProgressSink);

/// Marker that the transport adds to the `data` of an error without a usable request id. A server
/// sends such an error if it did not read the request as far as its id.
const UNREAD: &str = "switchboard/unread";

/// Returns whether the server sent this error without reading the request. The transport has added
/// the marker [`UNREAD`] to such an error.
pub(crate) fn has_unread_marker(error: &ErrorData) -> bool {
    error.data.as_ref().is_some_and(|data| data == UNREAD)
}

/// Transport wrapper that reports progress and tracks the requests that have no answer.
pub(crate) struct InstrumentedTransport<T> {
    inner: T,
    open_requests: OpenRequests,
    /// Log level in the `_meta` of each tool call to servers of version 2026-07-28. Older servers
    /// receive the level once, after the handshake.
    log_level: LoggingLevel,
    server_logs: bool,
    /// Request id of the last `server/discover`. `None` before that request, and after `initialize`
    /// was sent.
    discovery: Option<RequestId>,
    /// Request id of an unanswered `server/discover`, after which rmcp sent `initialize`. A late
    /// answer to this request is dropped, because rmcp would use it as the answer to `initialize`.
    late_discovery: Option<RequestId>,
}

/// Returns whether a server may send its own requests before it answers this client request.
fn allows_server_requests(request: &ClientRequest) -> bool {
    matches!(
        request,
        ClientRequest::CallToolRequest(_)
            | ClientRequest::GetPromptRequest(_)
            | ClientRequest::ReadResourceRequest(_)
    )
}

/// Returns whether the request is recorded as open until its answer arrives. Subscriptions are not
/// recorded, because their answer arrives only when they end. `logging/setLevel` is not recorded,
/// because its answer is ignored.
fn is_tracked_request(request: &ClientRequest) -> bool {
    !matches!(
        request.method(),
        "subscriptions/listen" | "logging/setLevel"
    )
}

impl<T> InstrumentedTransport<T> {
    pub(crate) fn new(inner: T, log_level: LoggingLevel) -> Self {
        Self {
            inner,
            open_requests: OpenRequests::default(),
            log_level,
            server_logs: false,
            discovery: None,
            late_discovery: None,
        }
    }

    /// Returns the shared list of client requests on this connection that have no answer yet.
    pub(crate) fn open_requests(&self) -> OpenRequests {
        self.open_requests.clone()
    }

    fn process_outgoing(&mut self, message: &mut ClientJsonRpcMessage) {
        match message {
            JsonRpcMessage::Request(request) => {
                self.process_outgoing_request(&request.id, &mut request.request);
            }
            JsonRpcMessage::Notification(notification) => {
                if let ClientNotification::CancelledNotification(cancelled) =
                    &notification.notification
                    && let Some(id) = &cancelled.params.request_id
                {
                    self.open_requests.mark_abandoned(id);
                }
            }
            JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_) => {}
        }
    }

    fn process_outgoing_request(&mut self, id: &RequestId, request: &mut ClientRequest) {
        match request {
            ClientRequest::DiscoverRequest(_) => self.discovery = Some(id.clone()),
            ClientRequest::InitializeRequest(_) => {
                self.late_discovery = self.discovery.take();
                self.open_requests.remove_all();
            }
            _ => {}
        }
        let listener = request.extensions_mut().remove::<ProgressListener>();
        let call = request.extensions_mut().remove::<Arc<CallContext>>();
        let is_tool_call = matches!(request, ClientRequest::CallToolRequest(_));
        let meta = request.get_meta_mut();
        let token = meta.get_progress_token();
        if listener.is_none() {
            // rmcp adds a progress token to every request. A token without a receiver is removed.
            meta.remove("progressToken");
        }
        let version = meta.protocol_version();
        let is_modern = version.is_some_and(|version| !version.has_initialize());
        if is_tool_call && self.server_logs && is_modern {
            meta.set_log_level(self.log_level);
        }
        if meta.is_empty() {
            request.extensions_mut().remove::<RequestMetaObject>();
        }
        if is_tracked_request(request) {
            let call = allows_server_requests(request).then(|| call.unwrap_or_default());
            let progress = token.zip(listener.map(|listener| listener.0));
            self.open_requests
                .record_request(id.clone(), call, progress);
        }
    }

    /// Processes a received message. Returns `None` if rmcp must not receive the message.
    fn process_incoming(&mut self, message: ServerJsonRpcMessage) -> Option<ServerJsonRpcMessage> {
        match message {
            JsonRpcMessage::Response(response) if self.is_late_discover_id(Some(&response.id)) => {
                None
            }
            JsonRpcMessage::Error(error) if self.is_late_discover_id(error.id.as_ref()) => None,
            JsonRpcMessage::Response(response) => {
                if let ServerResult::DiscoverResult(info) = &response.result {
                    self.server_logs = info.capabilities.logging.is_some();
                }
                self.open_requests.record_answer(&response.id);
                Some(JsonRpcMessage::Response(response))
            }
            JsonRpcMessage::Error(mut error) => {
                // The client's request ids are numbers. A gateway may send an error without an id
                // or with another id. Such an error is assigned to the only open request.
                if error.id.as_ref().is_none_or(is_non_numeric_id)
                    && let Some(only) = self.open_requests.only_open_request_id()
                {
                    error.id = Some(only);
                    if invalid_answer_reason(&error.error).is_none() {
                        error.error.data = Some(UNREAD.into());
                    }
                }
                if let Some(id) = &error.id {
                    self.open_requests.record_answer(id);
                }
                Some(JsonRpcMessage::Error(error))
            }
            JsonRpcMessage::Notification(notification) => {
                if let ServerNotification::ProgressNotification(progress) =
                    &notification.notification
                {
                    self.open_requests.report_progress(&progress.params);
                    return None;
                }
                Some(JsonRpcMessage::Notification(notification))
            }
            JsonRpcMessage::Request(mut request) => {
                if let Some(context) = self.find_request_context(&request.request) {
                    request.request.extensions_mut().insert(context);
                }
                Some(JsonRpcMessage::Request(request))
            }
        }
    }

    /// Finds the calls that a request from the server may belong to. Over HTTP, the event stream
    /// identifies the call. Over stdio, only the idempotency key does, if the server repeats it.
    /// Returns `None` for a request that needs no call, such as `roots/list`.
    fn find_request_context(&self, request: &ServerRequest) -> Option<RequestContext> {
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
            (Some(id), _) => self.open_requests.find_call_by_id(id),
            (None, Some(key)) => self.open_requests.find_call_by_key(key),
            (None, None) => return Some(self.open_requests.candidate_calls()),
        };
        Some(match named {
            Some(call) => RequestContext {
                calls: vec![call],
                others: false,
            },
            // The call that the request names is not open. So the request may belong to any
            // recorded call, or to a call that is not recorded (`others`).
            None => RequestContext {
                others: true,
                ..self.open_requests.candidate_calls()
            },
        })
    }

    fn is_late_discover_id(&self, id: Option<&RequestId>) -> bool {
        let late = self.late_discovery.as_ref();
        late.zip(id).is_some_and(|(late, id)| is_same_id(late, id))
    }
}

fn is_non_numeric_id(id: &RequestId) -> bool {
    match id {
        RequestId::Number(_) => false,
        RequestId::String(text) => text.parse::<i64>().is_err(),
    }
}

impl<T: Transport<RoleClient>> Transport<RoleClient> for InstrumentedTransport<T> {
    type Error = T::Error;

    fn name() -> Cow<'static, str> {
        T::name()
    }

    fn send(
        &mut self,
        mut message: ClientJsonRpcMessage,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        self.process_outgoing(&mut message);
        let request = match &message {
            JsonRpcMessage::Request(request) => Some(request.id.clone()),
            _ => None,
        };
        let (sent, open_requests) = (self.inner.send(message), self.open_requests.clone());
        async move {
            let sent = sent.await;
            if let (Err(_), Some(request)) = (&sent, request) {
                open_requests.record_answer(&request);
            }
            sent
        }
    }

    // `receive` is cancel-safe, as rmcp requires: it holds no message while it awaits.
    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        loop {
            let Some(message) = self.inner.receive().await else {
                self.open_requests.remove_all();
                return None;
            };
            if let Some(message) = self.process_incoming(message) {
                return Some(message);
            }
        }
    }

    fn close(&mut self) -> impl Future<Output = Result<(), Self::Error>> + Send {
        self.inner.close()
    }
}
