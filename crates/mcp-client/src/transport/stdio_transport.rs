//! What a server on the other end of two pipes says and is told: one JSON-RPC message a line.
//!
//! rmcp has a transport for that. It reads every answer by trying one after another what it could be the
//! result of, each time from the beginning, which is much of what a call costs; and a server that does not
//! read holds up the end of the connection. Here the answer that nearly all are, that of a tool, is read at
//! once for what it is. Whatever else comes is read by rmcp's types, as rmcp reads it.
//!
//! What goes out comes from rmcp, which sends a message at a time, or is a call that was made past it
//! (`direct.rs`): that is written when the next message is waited for, with all that were made meanwhile.

use std::{
    fmt,
    future::poll_fn,
    io,
    marker::PhantomData,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Waker, ready},
};

use rmcp::{
    RoleClient,
    model::{
        CallToolResult, ClientJsonRpcMessage, ContentBlock, ErrorData, MetaObject, RequestId,
        ResultType, ServerJsonRpcMessage, ServerResult,
    },
    transport::Transport,
};
use serde::{
    Deserialize, Deserializer,
    de::{DeserializeOwned, MapAccess, Visitor, value::MapAccessDeserializer},
};
use serde_json::Value;
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncRead, AsyncWrite, BufReader};
use tokio_util::sync::CancellationToken;

use crate::transport::{
    direct::Direct,
    invalid_message::{Recovered, recover},
};

/// Bytes read at once, if there are as many: a short page of text in one go.
const READ: usize = 16 * 1024;
/// A buffer that grew beyond this many bytes for a long line does not stay so big.
const KEPT: usize = 1024 * 1024;
/// Some programs begin what they write with it.
const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();
/// In an answer's `_meta`: it is the end of a subscription, whatever else it holds.
const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";

/// The two pipes of a server.
pub(crate) struct Lines<R, W> {
    read: BufReader<R>,
    /// The beginning of a line whose end has not come yet.
    line: Vec<u8>,
    /// The line is too long; what is still to come of it is dropped.
    discarding: bool,
    /// Bytes in the longest line that is read.
    longest: usize,
    out: Arc<Out<W>>,
}

impl<R: AsyncRead + Unpin, W: AsyncWrite + Unpin> Lines<R, W> {
    /// A line with more than `longest` bytes is dropped.
    pub(crate) fn new(read: R, write: W, longest: usize) -> Self {
        Self {
            read: BufReader::with_capacity(READ, read),
            line: Vec::new(),
            discarding: false,
            longest,
            out: Arc::new(Out {
                direct: Arc::default(),
                pipe: tokio::sync::Mutex::new(Pipe {
                    write: Some(write),
                    writing: Vec::new(),
                    calls: Vec::new(),
                    written: 0,
                    failed: None,
                }),
                closing: CancellationToken::new(),
            }),
        }
    }

    /// For calls past rmcp, which go out while messages are received.
    pub(crate) fn direct(&self) -> Arc<Direct> {
        self.out.direct.clone()
    }

    /// The next message that can be read; `Ok(None)` for a line that holds none. Nothing is lost if the
    /// future is dropped.
    async fn next(&mut self) -> Result<Option<ServerJsonRpcMessage>, Ended> {
        if self.read.buffer().is_empty() {
            let (read, out) = (&mut self.read, &self.out);
            let filled = poll_fn(|context| {
                out.pump(context);
                Pin::new(&mut *read).poll_fill_buf(context).map_ok(|_| ())
            });
            filled.await.map_err(Ended::Broken)?;
        }
        let available = self.read.buffer();
        if available.is_empty() {
            return Err(Ended::Closed);
        }
        let end = memchr::memchr(b'\n', available);
        let piece = &available[..end.unwrap_or(available.len())];
        let consumed = piece.len() + usize::from(end.is_some());
        let too_long = self.line.len().saturating_add(piece.len()) > self.longest;
        let message = if self.discarding || too_long {
            if !self.discarding {
                tracing::error!(longest = self.longest, "a line that is too long is dropped");
            }
            self.line.clear();
            self.discarding = end.is_none();
            None
        } else if end.is_none() {
            self.line.extend_from_slice(piece);
            None
        } else if self.line.is_empty() {
            self.out.read(piece)
        } else {
            self.line.extend_from_slice(piece);
            let message = self.out.read(&self.line);
            self.line.clear();
            message
        };
        self.read.consume(consumed);
        if self.line.is_empty() && self.line.capacity() > KEPT {
            self.line = Vec::new();
        }
        Ok(message)
    }
}

/// Why nothing more comes.
enum Ended {
    Closed,
    Broken(io::Error),
}

/// What is still to be written. Messages go out in the order in which they were handed in, whoever writes.
struct Out<W> {
    direct: Arc<Direct>,
    pipe: tokio::sync::Mutex<Pipe<W>>,
    closing: CancellationToken,
}

struct Pipe<W> {
    /// `None` when it was closed.
    write: Option<W>,
    writing: Vec<u8>,
    /// Those calls past rmcp that are in it.
    calls: Vec<i64>,
    /// How much of it is out.
    written: usize,
    /// A pipe that failed once takes nothing any more.
    failed: Option<(io::ErrorKind, String)>,
}

impl<W: AsyncWrite + Unpin> Out<W> {
    /// Writes what the pipe takes at once; nothing if some of it remains.
    fn write_now(&self) -> Option<io::Result<()>> {
        let mut pipe = self.pipe.try_lock().ok()?;
        match pipe.poll_write(&mut Context::from_waker(Waker::noop()), &self.direct) {
            Poll::Ready(done) => Some(done),
            Poll::Pending => None,
        }
    }

    /// Writes what the pipe takes now, and has the task woken when it takes more or there is more.
    fn pump(&self, context: &mut Context<'_>) {
        self.direct.pumped_by(context.waker());
        // Whoever has the pipe writes everything, and wakes this task for what came meanwhile.
        if let Ok(mut pipe) = self.pipe.try_lock() {
            // An error is told to those whose messages did not go out.
            let _ = pipe.poll_write(context, &self.direct);
        }
    }

    /// Writes everything, its own or not.
    async fn write(&self) -> io::Result<()> {
        let write = async {
            let mut pipe = self.pipe.lock().await;
            let done = poll_fn(|context| pipe.poll_write(context, &self.direct)).await;
            drop(pipe);
            self.direct.wake();
            done
        };
        tokio::select! {
            biased;
            done = write => done,
            () = self.closing.cancelled() => Err(io::ErrorKind::NotConnected.into()),
        }
    }

    async fn close(&self) {
        // Whoever is still writing lets go of the pipe.
        self.closing.cancel();
        self.pipe.lock().await.write = None;
    }

    /// A message of the server.
    fn read(&self, line: &[u8]) -> Option<ServerJsonRpcMessage> {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let line = line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line);
        if line.is_empty() {
            return None;
        }
        if let Some(answer) = tool_result(line) {
            return Some(answer);
        }
        match serde_json::from_slice(line) {
            Ok(message) => Some(message),
            Err(error) => {
                tracing::debug!(%error, "received a line that is not a message");
                match recover(line, &error) {
                    Recovered::Message(message) => return Some(*message),
                    Recovered::Request(id) => self.refuse(id),
                    Recovered::Nothing => {}
                }
                None
            }
        }
    }

    /// Answers a request of the server that cannot be read, for whose answer the server waits.
    fn refuse(&self, id: RequestId) {
        // Servers that send requests without reading the answers get none.
        if self.direct.unsent().lines.len() > KEPT {
            return;
        }
        let refusal = ErrorData::invalid_request("Invalid request", None);
        if self
            .direct
            .queue(&ClientJsonRpcMessage::error(refusal, Some(id)))
            .is_ok()
        {
            // What the pipe does not take now goes out before the next message.
            self.write_now();
        }
    }
}

impl<W: AsyncWrite + Unpin> Pipe<W> {
    fn poll_write(&mut self, context: &mut Context<'_>, direct: &Direct) -> Poll<io::Result<()>> {
        loop {
            if let Some((kind, what)) = &self.failed {
                let mut calls = std::mem::take(&mut self.calls);
                let unsent = std::mem::take(&mut *direct.unsent());
                calls.extend(unsent.calls);
                direct.not_written(calls, *kind, what);
                return Poll::Ready(Err(io::Error::new(*kind, what.clone())));
            }
            let Some(write) = self.write.as_mut() else {
                return Poll::Ready(Err(io::ErrorKind::NotConnected.into()));
            };
            let write = Pin::new(write);
            if self.written == self.writing.len() {
                self.written = 0;
                self.writing.clear();
                if self.writing.capacity() > KEPT {
                    self.writing = Vec::new();
                }
                self.calls.clear();
                let mut unsent = direct.unsent();
                std::mem::swap(&mut unsent.lines, &mut self.writing);
                std::mem::swap(&mut unsent.calls, &mut self.calls);
            }
            let done = if self.writing.is_empty() {
                ready!(write.poll_flush(context)).map(|()| None)
            } else {
                ready!(write.poll_write(context, &self.writing[self.written..])).map(Some)
            };
            match done {
                Ok(None) => return Poll::Ready(Ok(())),
                Ok(Some(0)) => {
                    let kind = io::ErrorKind::WriteZero;
                    self.failed = Some((kind, "the pipe takes nothing".to_owned()));
                }
                Ok(Some(written)) => self.written += written,
                Err(error) => self.failed = Some((error.kind(), error.to_string())),
            }
        }
    }
}

impl<R, W> Transport<RoleClient> for Lines<R, W>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    type Error = io::Error;

    fn send(
        &mut self,
        message: ClientJsonRpcMessage,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        // Mostly the pipe takes all of it at once, and rmcp's task has nothing left to do.
        let done = match self.out.direct.queue(&message) {
            Ok(()) => self.out.write_now().ok_or_else(|| self.out.clone()),
            Err(error) => Ok(Err(error)),
        };
        async move {
            match done {
                Ok(done) => done,
                Err(out) => out.write().await,
            }
        }
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        loop {
            match self.next().await {
                Ok(Some(message)) => return Some(message),
                Ok(None) => {}
                Err(Ended::Closed) => return None,
                Err(Ended::Broken(error)) => {
                    tracing::error!(%error, "a server's pipe cannot be read");
                    return None;
                }
            }
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        self.out.close().await;
        Ok(())
    }
}

/// A structure that is read of an object only, and not of a list of its fields too.
struct Object<T>(T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Fields<T>(PhantomData<T>);

        impl<'de, T: Deserialize<'de>> Visitor<'de> for Fields<T> {
            type Value = T;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, fields: A) -> Result<T, A::Error> {
                T::deserialize(MapAccessDeserializer::new(fields))
            }
        }

        from.deserialize_map(Fields(PhantomData)).map(Self)
    }
}

/// A text and nothing about it. That is what most results are made of, and it is read without the copy that
/// rmcp makes of each piece before it looks at its type.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PlainText {
    #[serde(rename = "type")]
    _type: TypeOfText,
    text: String,
}

#[derive(Deserialize)]
enum TypeOfText {
    #[serde(rename = "text")]
    Text,
}

impl From<Object<PlainText>> for ContentBlock {
    fn from(Object(plain): Object<PlainText>) -> Self {
        Self::text(plain.text)
    }
}

/// The answer to a call that a tool ran, if it is that and nothing else by the fields it has. rmcp would
/// read the same.
fn tool_result(line: &[u8]) -> Option<ServerJsonRpcMessage> {
    match tool_result_of::<Object<PlainText>>(line) {
        Ok(result) => result,
        // Another kind of piece, or something else altogether.
        Err(_) => tool_result_of::<ContentBlock>(line).ok()?,
    }
}

/// The same, whose pieces are of one kind.
fn tool_result_of<P: DeserializeOwned + Into<ContentBlock>>(
    line: &[u8],
) -> serde_json::Result<Option<ServerJsonRpcMessage>> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields, bound(deserialize = "P: Deserialize<'de>"))]
    struct Answer<'a, P> {
        jsonrpc: &'a str,
        id: i64,
        result: Object<Fields<P>>,
    }

    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase", deny_unknown_fields)]
    struct Fields<P> {
        result_type: Option<ResultType>,
        content: Option<Vec<P>>,
        #[serde(default, deserialize_with = "present")]
        structured_content: Option<Value>,
        is_error: Option<bool>,
        #[serde(rename = "_meta")]
        meta: Option<MetaObject>,
    }

    /// `null` is a value.
    fn present<'de, D: Deserializer<'de>>(value: D) -> Result<Option<Value>, D::Error> {
        Value::deserialize(value).map(Some)
    }

    let Object(answer) = serde_json::from_slice(line)?;
    let Answer::<P> {
        jsonrpc,
        id,
        result: Object(result),
    } = answer;
    let is_one = jsonrpc == "2.0"
        && result
            .result_type
            .as_ref()
            .is_none_or(ResultType::is_complete)
        && (result.content.is_some()
            || result.structured_content.is_some()
            || result.is_error.is_some())
        && !result
            .meta
            .as_ref()
            .is_some_and(|meta| meta.0.contains_key(SUBSCRIPTION));
    if !is_one {
        return Ok(None);
    }
    let pieces = result.content.unwrap_or_default();
    let mut read = CallToolResult::default();
    read.result_type = result.result_type;
    read.content = pieces.into_iter().map(P::into).collect();
    read.structured_content = result.structured_content;
    read.is_error = result.is_error;
    read.meta = result.meta;
    let read = ServerResult::CallToolResult(read);
    let id = RequestId::Number(id);
    Ok(Some(ServerJsonRpcMessage::response(read, id)))
}

#[cfg(test)]
#[path = "stdio_transport_tests.rs"]
mod tests;
