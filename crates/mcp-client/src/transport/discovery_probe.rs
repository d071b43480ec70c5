//! A time limit for `server/discover` on stdio.
//!
//! rmcp waits ten seconds for the answer, fails on an unexpected one, and takes a late one for the
//! answer to `initialize`. This wrapper answers `server/discover` as an older server would, if the
//! server is silent or answers something else, and drops the late answer.

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
        ClientJsonRpcMessage, ClientRequest, ErrorCode, ErrorData, JsonRpcMessage, RequestId,
        ServerJsonRpcMessage, ServerResult,
    },
    transport::Transport,
};
use tokio::time::{Instant, sleep_until};

use crate::transport::{instrumented_transport::InstrumentedTransport, open_requests::is_same};

/// Whether a server answered `server/discover` after the time limit.
#[derive(Clone, Default)]
pub(crate) struct LateDiscovery(Arc<AtomicBool>);

impl LateDiscovery {
    pub(crate) fn happened(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// A transport that limits the time for `server/discover`.
pub(crate) struct DiscoveryProbe<T> {
    pub(super) transport: InstrumentedTransport<T>,
    timeout: Duration,
    state: State,
    late: LateDiscovery,
}

enum State {
    /// The next `server/discover` is watched.
    Armed,
    Waiting {
        id: RequestId,
        until: Instant,
    },
    /// The time limit has passed. The answer may still arrive.
    TimedOut {
        id: RequestId,
    },
    Done,
}

impl<T> DiscoveryProbe<T> {
    pub(crate) fn new(
        transport: InstrumentedTransport<T>,
        timeout: Duration,
        late: LateDiscovery,
    ) -> Self {
        Self {
            transport,
            timeout,
            state: State::Armed,
            late,
        }
    }

    /// Returns the message for rmcp. `None` for a message that is dropped.
    fn filter(&mut self, message: ServerJsonRpcMessage) -> Option<ServerJsonRpcMessage> {
        match &self.state {
            State::Waiting { id, .. } => match message {
                JsonRpcMessage::Response(response) if is_same(id, &response.id) => {
                    if let ServerResult::DiscoverResult(_) = response.result {
                        self.state = State::Done;
                        return Some(JsonRpcMessage::Response(response));
                    }
                    let id = id.clone();
                    Some(self.fall_back(id, "unexpected answer"))
                }
                JsonRpcMessage::Response(_) => None,
                // The error may have no id or, from some middleware, another one. After an error
                // that names other versions rmcp sends `server/discover` again.
                JsonRpcMessage::Error(mut error) => {
                    error.id = Some(id.clone());
                    self.state = State::Armed;
                    Some(JsonRpcMessage::Error(error))
                }
                other => Some(other),
            },
            State::TimedOut { id } => match &message {
                JsonRpcMessage::Response(response) if is_same(id, &response.id) => {
                    if let ServerResult::DiscoverResult(_) = response.result {
                        self.late.0.store(true, Ordering::Relaxed);
                    }
                    None
                }
                JsonRpcMessage::Error(error)
                    if error.id.as_ref().is_some_and(|other| is_same(id, other)) =>
                {
                    None
                }
                _ => Some(message),
            },
            State::Armed | State::Done => Some(message),
        }
    }

    /// Returns the answer of a server that does not know `server/discover`.
    fn fall_back(&mut self, id: RequestId, reason: &'static str) -> ServerJsonRpcMessage {
        tracing::debug!(reason, "falling back to `initialize`");
        self.state = State::TimedOut { id: id.clone() };
        let error = ErrorData::new(ErrorCode::METHOD_NOT_FOUND, reason, None);
        ServerJsonRpcMessage::error(error, Some(id))
    }
}

impl<T: Transport<RoleClient>> Transport<RoleClient> for DiscoveryProbe<T> {
    type Error = T::Error;

    fn name() -> Cow<'static, str> {
        T::name()
    }

    fn send(
        &mut self,
        message: ClientJsonRpcMessage,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        if let JsonRpcMessage::Request(request) = &message
            && let ClientRequest::DiscoverRequest(_) = request.request
            && let State::Armed | State::Waiting { .. } = self.state
        {
            self.state = State::Waiting {
                id: request.id.clone(),
                until: Instant::now() + self.timeout,
            };
        }
        self.transport.send(message)
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        loop {
            let message = match &self.state {
                State::Waiting { id, until } => {
                    let (id, until) = (id.clone(), *until);
                    tokio::select! {
                        biased;
                        message = self.transport.receive() => message?,
                        () = sleep_until(until) => return Some(self.fall_back(id, "no answer")),
                    }
                }
                _ => self.transport.receive().await?,
            };
            if let Some(message) = self.filter(message) {
                return Some(message);
            }
        }
    }

    fn close(&mut self) -> impl Future<Output = Result<(), Self::Error>> + Send {
        self.transport.close()
    }
}

#[cfg(test)]
#[path = "discovery_probe_tests.rs"]
mod tests;
