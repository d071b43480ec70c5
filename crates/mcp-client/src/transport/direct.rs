//! Calls of tools that go to a server's pipes past rmcp's task, and their answers back.
//!
//! rmcp takes a request through a channel, a table and a task of its own to the transport, and builds it up
//! as JSON before it is written. That is most of what a call costs. Here a call is written once, as text, to
//! what goes out next, and whoever reads the server's answers (`wire.rs`) gives it its own. The task that
//! reads also writes, first of all (`lines.rs`), so calls that are made together go out together.
//!
//! What is sent is what rmcp would send, which a property test says; only the ids are others. Everything that
//! is not a call of a tool, and calls over HTTP, go through rmcp.

#![allow(deprecated, reason = "servers of both eras still log")]

use std::{
    any::TypeId,
    collections::HashMap,
    io,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::Waker,
};

use futures_util::task::AtomicWaker;
use rmcp::{
    model::{
        CallToolRequestParams, ClientJsonRpcMessage, LoggingLevel, ProgressNotificationParam,
        ProgressToken, RequestId, RequestMetaObject, ServerResult,
    },
    service::ServiceError,
    transport::DynamicTransportError,
};
use switchboard_domain::{JsonObject, ProgressSink};
use tokio::sync::oneshot;

use crate::{
    calls::context::Caller,
    transport::open_requests::{Ending, OpenRequests},
};

/// Where in `_meta` a server finds what is the same for every attempt at the same call. The
/// protocol has no name for it; ours has a prefix, as it asks for.
pub(crate) const IDEMPOTENCY_KEY: &str = "switchboard/idempotency-key";
/// rmcp counts its ids from zero; ours begin here. They are no larger than a signed number of 32 bits, which
/// is what some servers read them into.
const FIRST_ID: i64 = 1 << 30;
const LAST_ID: i64 = i32::MAX as i64;

/// What becomes of a call, as rmcp would say it.
pub(crate) type Answer = Result<ServerResult, ServiceError>;

/// What goes out on one connection, and the calls that wait for their answer. Shared by the pipes, the wire
/// above them, and whoever calls.
#[derive(Default)]
pub(crate) struct Direct {
    unsent: Mutex<Unsent>,
    /// The task that reads what the server says, and writes what is unsent.
    pump: AtomicWaker,
    calls: Mutex<Calls>,
    open: OpenRequests,
}

/// What is still to be written.
#[derive(Default)]
pub(crate) struct Unsent {
    /// Whole lines.
    pub(crate) lines: Vec<u8>,
    /// The calls among them.
    pub(crate) calls: Vec<i64>,
}

#[derive(Default)]
struct Calls {
    /// `None` until the handshake is done, and when the connection is no more.
    introduction: Option<Introduction>,
    /// How many there were.
    count: i64,
    waiting: HashMap<i64, Waiting>,
}

/// What a server of the newer era is told about us with every request.
struct Introduction {
    /// Fields of `_meta` as JSON, with a comma behind each; none for the older era.
    fields: Vec<u8>,
    is_newer_era: bool,
}

struct Waiting {
    caller: oneshot::Sender<Answer>,
    progress: Option<ProgressSink>,
    /// How far it was.
    last: f64,
}

/// A call that is on its way.
pub(crate) struct Sent {
    pub(crate) id: RequestId,
    /// Fails when the connection ends.
    pub(crate) answer: oneshot::Receiver<Answer>,
}

impl Direct {
    /// Our requests on this connection that were not answered yet, whoever sent them.
    pub(crate) fn open_requests(&self) -> OpenRequests {
        self.open.clone()
    }

    /// Takes what rmcp says about us in a request's `_meta`, and what is to be said in each call beside it.
    /// From then on calls can be made.
    pub(crate) fn introduce(&self, meta: &RequestMetaObject, log_level: Option<LoggingLevel>) {
        let version = meta.protocol_version();
        let is_newer_era = version.is_some_and(|version| !version.has_initialize());
        let mut meta = meta.clone();
        meta.remove("progressToken");
        if let Some(level) = log_level {
            meta.set_log_level(level);
        }
        let mut fields = Vec::new();
        let written = meta.iter().try_for_each(|(name, value)| {
            serde_json::to_writer(&mut fields, name)?;
            fields.push(b':');
            serde_json::to_writer(&mut fields, value)?;
            fields.push(b',');
            Ok::<_, serde_json::Error>(())
        });
        // It was JSON, so it is written; if not, calls go through rmcp.
        self.calls().introduction = written.ok().map(|()| Introduction {
            fields,
            is_newer_era,
        });
    }

    /// Sends a call. `None` if it must go through rmcp.
    pub(crate) fn call(
        &self,
        said: Said<'_>,
        caller: &Arc<Caller>,
        progress: &ProgressSink,
    ) -> Option<Sent> {
        if said.has_meta() {
            return None;
        }
        let (answering, answer) = oneshot::channel();
        let progress = progress.is_listening().then(|| progress.clone());
        let id = {
            let mut calls = self.calls();
            let Calls {
                introduction: Some(introduction),
                count,
                waiting,
            } = &mut *calls
            else {
                return None;
            };
            let id = FIRST_ID + *count % (LAST_ID - FIRST_ID);
            let call = Call {
                id,
                introduction: &introduction.fields,
                idempotency_key: caller.key.as_deref(),
                wants_progress: progress.is_some(),
                said,
            };
            let mut unsent = self.unsent();
            let before = unsent.lines.len();
            if call.write(&mut unsent.lines).is_err() {
                unsent.lines.truncate(before);
                return None;
            }
            unsent.calls.push(id);
            // While nobody can have written it, let alone answered.
            let id = RequestId::Number(id);
            self.open.begin(id.clone(), Some(Arc::clone(caller)));
            drop(unsent);
            *count += 1;
            let last = f64::NEG_INFINITY;
            let new = Waiting {
                caller: answering,
                progress,
                last,
            };
            waiting.insert(call.id, new);
            id
        };
        self.wake();
        Some(Sent { id, answer })
    }

    /// Puts a message of rmcp's behind what is unsent.
    pub(crate) fn queue(&self, message: &ClientJsonRpcMessage) -> io::Result<()> {
        let lines = &mut self.unsent().lines;
        let before = lines.len();
        if let Err(error) = serde_json::to_writer(&mut *lines, message) {
            lines.truncate(before);
            return Err(error.into());
        }
        lines.push(b'\n');
        Ok(())
    }

    pub(crate) fn unsent(&self) -> MutexGuard<'_, Unsent> {
        self.unsent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whom to wake when there is something to write.
    pub(crate) fn pumped_by(&self, task: &Waker) {
        self.pump.register(task);
    }

    /// Has what is unsent written.
    pub(crate) fn wake(&self) {
        self.pump.wake();
    }

    /// Who waits for this answer. Nobody does afterwards.
    pub(crate) fn caller(&self, id: &RequestId) -> Option<oneshot::Sender<Answer>> {
        let id = number(id)?;
        Some(self.calls().waiting.remove(&id)?.caller)
    }

    /// Who wants to hear of this progress.
    pub(crate) fn listener(&self, told: &ProgressNotificationParam) -> Option<ProgressSink> {
        let ProgressToken(token) = &told.progress_token;
        let id = number(token)?;
        let mut calls = self.calls();
        let call = calls.waiting.get_mut(&id)?;
        // It must grow; a sink may rely on that.
        if told.progress < call.last {
            return None;
        }
        call.last = told.progress;
        call.progress.clone()
    }

    /// Whether a server of the newer era may be asking within a call of which rmcp knows nothing.
    pub(crate) fn may_be_asked_unknown_to_rmcp(&self) -> bool {
        let calls = self.calls();
        let introduction = calls.introduction.as_ref();
        introduction.is_some_and(|about| about.is_newer_era) && !calls.waiting.is_empty()
    }

    /// The pipe takes nothing any more; these did not go out, or not as a whole.
    pub(crate) fn not_written(&self, calls: Vec<i64>, kind: io::ErrorKind, why: &str) {
        for id in calls {
            let Some(call) = self.calls().waiting.remove(&id) else {
                continue;
            };
            // The server has not read it, so it is as good as answered.
            self.open
                .end(|open| number(open) == Some(id), Ending::Answered);
            let error = io::Error::new(kind, why);
            let of = TypeId::of::<Self>();
            let error = DynamicTransportError::from_parts("pipes", of, Box::new(error));
            // Fails when the call was given up.
            let _ = call.caller.send(Err(ServiceError::TransportSend(error)));
        }
    }

    /// The connection is no more.
    pub(crate) fn end(&self) {
        let waiting = {
            let mut calls = self.calls();
            calls.introduction = None;
            std::mem::take(&mut calls.waiting)
        };
        // Whoever waits is told by that.
        drop(waiting);
    }

    fn calls(&self) -> MutexGuard<'_, Calls> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a call says.
#[derive(Clone, Copy)]
pub(crate) enum Said<'a> {
    /// At first. The input is the caller's.
    First {
        tool: &'a str,
        input: &'a JsonObject,
    },
    /// With what the server wanted to know.
    Again(&'a CallToolRequestParams),
}

impl<'a> Said<'a> {
    fn name(self) -> &'a str {
        match self {
            Self::First { tool, .. } => tool,
            Self::Again(params) => &params.name,
        }
    }

    fn arguments(self) -> Option<&'a JsonObject> {
        match self {
            Self::First { input, .. } => Some(input),
            Self::Again(params) => params.arguments.as_ref(),
        }
    }

    fn has_meta(self) -> bool {
        match self {
            Self::First { .. } => false,
            Self::Again(params) => params.meta.is_some(),
        }
    }

    /// The same for rmcp.
    pub(crate) fn to_params(self) -> CallToolRequestParams {
        match self {
            Self::First { tool, input } => {
                CallToolRequestParams::new(tool.to_owned()).with_arguments(input.clone())
            }
            Self::Again(params) => params.clone(),
        }
    }
}

/// A `tools/call` as it is written.
struct Call<'a> {
    id: i64,
    introduction: &'a [u8],
    idempotency_key: Option<&'a str>,
    /// The id is its token.
    wants_progress: bool,
    said: Said<'a>,
}

impl Call<'_> {
    /// With the end of the line.
    fn write(&self, line: &mut Vec<u8>) -> serde_json::Result<()> {
        use serde_json::to_writer;

        line.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
        to_writer(&mut *line, &self.id)?;
        line.extend_from_slice(br#","method":"tools/call","params":{"#);
        let is_plain = self.introduction.is_empty() && self.idempotency_key.is_none();
        if !is_plain || self.wants_progress {
            line.extend_from_slice(br#""_meta":{"#);
            line.extend_from_slice(self.introduction);
            if let Some(key) = self.idempotency_key {
                to_writer(&mut *line, IDEMPOTENCY_KEY)?;
                line.push(b':');
                to_writer(&mut *line, key)?;
                line.push(b',');
            }
            if self.wants_progress {
                line.extend_from_slice(br#""progressToken":"#);
                to_writer(&mut *line, &self.id)?;
                line.push(b',');
            }
            // The last comma.
            line.pop();
            line.extend_from_slice(b"},");
        }
        line.extend_from_slice(br#""name":"#);
        to_writer(&mut *line, self.said.name())?;
        if let Some(arguments) = self.said.arguments() {
            line.extend_from_slice(br#","arguments":"#);
            to_writer(&mut *line, arguments)?;
        }
        if let Said::Again(params) = self.said {
            if let Some(responses) = &params.input_responses {
                line.extend_from_slice(br#","inputResponses":"#);
                to_writer(&mut *line, responses)?;
            }
            if let Some(state) = &params.request_state {
                line.extend_from_slice(br#","requestState":"#);
                to_writer(&mut *line, state)?;
            }
        }
        line.extend_from_slice(b"}}\n");
        Ok(())
    }
}

/// Some servers make text of a number.
fn number(id: &RequestId) -> Option<i64> {
    match id {
        RequestId::Number(number) => Some(*number),
        RequestId::String(text) => text.parse().ok(),
    }
}

#[cfg(test)]
#[path = "direct_tests.rs"]
mod tests;
