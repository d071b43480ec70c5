//! JSON-RPC over the pipes of a server process: one message per line.
//!
//! Unlike the stdio transport of rmcp, this one limits the length of a line, recovers usable parts
//! of invalid messages, answers invalid requests, and can be closed while the server reads nothing.

use std::{
    future::poll_fn,
    io,
    pin::Pin,
    sync::{Arc, Mutex},
    task::{Poll, ready},
};

use bytes::{Buf as _, BytesMut};
use rmcp::{
    RoleClient,
    model::{ClientJsonRpcMessage, ErrorData, RequestId, ServerJsonRpcMessage},
    transport::Transport,
};
use tokio::{
    io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader},
    sync::{Mutex as AsyncMutex, Semaphore},
};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::{
    primitives::sync::lock_mutex,
    transport::{
        invalid_message::{RecoveredMessage, recover_message},
        message_parser::parse_message,
    },
};

/// Size in bytes of the buffer for reading from the server's standard output.
const READ_BUFFER: usize = 16 * 1024;
/// Maximum capacity in bytes of the line buffer after a line was read. The memory above this
/// capacity, which a long line needed, is released.
const MAX_KEPT_CAPACITY: usize = 1024 * 1024;
/// Unicode byte order mark, with which some programs start their output.
const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();
/// Maximum number of unsent answers to invalid requests. Further answers are dropped, because a
/// server may send requests without reading the answers.
const MAX_REFUSALS: usize = 64;

/// rmcp transport over the standard input and output of a server process.
pub(crate) struct StdioTransport<R> {
    reader: BufReader<R>,
    /// Received bytes of a line whose end has not been received yet.
    line: Vec<u8>,
    /// Whether the rest of the current line is skipped, because the line is too long.
    discarding: bool,
    /// Maximum size of a received line in bytes. Longer lines are dropped.
    max_line: usize,
    writer: Arc<LineWriter>,
    /// Permits for unsent answers to invalid requests.
    refusals: Arc<Semaphore>,
    /// Guard that stops all writes when the transport is dropped, so that the pipe to the server
    /// closes.
    _close_on_drop: DropGuard,
}

/// Writer of lines to the input of a server. The lines are written in the order of the queue. A
/// task that waits for its line also writes the queued lines of other tasks, so several lines need
/// only one write.
struct LineWriter {
    /// The pipe to the server. `None` after it failed or was closed.
    pipe: AsyncMutex<Option<Box<dyn AsyncWrite + Send + Unpin>>>,
    queue: Mutex<LineQueue>,
    closing: CancellationToken,
}

#[derive(Default)]
struct LineQueue {
    /// Queued bytes that are not written yet.
    bytes: BytesMut,
    /// Total number of bytes that were ever queued, written or not.
    queued: u64,
    /// Total number of bytes that were ever written.
    written: u64,
}

impl LineWriter {
    /// Queues a message. Returns the total number of bytes that were ever queued (`queued`). The
    /// caller passes this number to [`Self::write_queued_bytes`], which writes the message.
    fn queue_message(&self, message: &ClientJsonRpcMessage) -> io::Result<u64> {
        let line = serde_json::to_vec(message)?;
        let mut queue = lock_mutex(&self.queue);
        queue.bytes.extend_from_slice(&line);
        queue.bytes.extend_from_slice(b"\n");
        queue.queued += line.len() as u64 + 1;
        Ok(queue.queued)
    }

    /// Writes queued bytes until the total number of written bytes is `end` or more. An error means
    /// that the server has not received the line that ends at `end`. If the future is dropped, the
    /// bytes that are not written stay in the queue.
    async fn write_queued_bytes(&self, end: u64) -> io::Result<()> {
        let writing = async {
            let mut pipe = self.pipe.lock().await;
            while lock_mutex(&self.queue).written < end {
                let Some(open) = pipe.as_mut() else {
                    lock_mutex(&self.queue).bytes = BytesMut::new();
                    return Err(io::ErrorKind::BrokenPipe.into());
                };
                let written = poll_fn(|context| {
                    let mut queue = lock_mutex(&self.queue);
                    let count = ready!(Pin::new(&mut *open).poll_write(context, &queue.bytes))?;
                    queue.bytes.advance(count);
                    queue.written += count as u64;
                    if queue.bytes.is_empty() {
                        // The buffer is replaced to release the memory that large messages needed.
                        queue.bytes = BytesMut::new();
                    }
                    Poll::Ready(Ok(count))
                });
                let error = match written.await {
                    Ok(0) => io::ErrorKind::WriteZero.into(),
                    Ok(_) => continue,
                    Err(error) => error,
                };
                *pipe = None;
                return Err(error);
            }
            let Some(open) = pipe.as_mut() else {
                return Ok(());
            };
            open.flush().await.inspect_err(|_| *pipe = None)
        };
        match self.closing.run_until_cancelled(writing).await {
            Some(result) => result,
            // Another task wrote the line before the transport was closed.
            None if lock_mutex(&self.queue).written >= end => Ok(()),
            None => Err(io::ErrorKind::NotConnected.into()),
        }
    }
}

impl<R: AsyncRead + Unpin> StdioTransport<R> {
    /// Creates the transport. Drops received lines of more than `max_line` bytes.
    pub(crate) fn new(
        reader: R,
        writer: impl AsyncWrite + Send + Unpin + 'static,
        max_line: usize,
    ) -> Self {
        let closing = CancellationToken::new();
        Self {
            reader: BufReader::with_capacity(READ_BUFFER, reader),
            line: Vec::new(),
            discarding: false,
            max_line,
            refusals: Arc::new(Semaphore::new(MAX_REFUSALS)),
            _close_on_drop: closing.clone().drop_guard(),
            writer: Arc::new(LineWriter {
                pipe: AsyncMutex::new(Some(Box::new(writer))),
                queue: Mutex::default(),
                closing,
            }),
        }
    }

    /// Reads up to the end of a line or up to the maximum line size. Returns `None` if this part
    /// does not complete a valid message, and an error at the end of the server's output.
    /// Cancel-safe, because the field `line` stores the bytes that were read.
    async fn read_line_part(&mut self) -> io::Result<Option<ServerJsonRpcMessage>> {
        let room = self.max_line + 1 - self.line.len();
        let mut reader = (&mut self.reader).take(room as u64);
        if reader.read_until(b'\n', &mut self.line).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if self.line.pop_if(|last| *last == b'\n').is_none() {
            if self.line.len() > self.max_line {
                tracing::error!(max = self.max_line, "dropped a line that is too long");
                self.discarding = true;
                self.line.clear();
            }
            return Ok(None);
        }
        let is_rest = std::mem::take(&mut self.discarding);
        let message = if is_rest { None } else { self.parse_line() };
        self.line.clear();
        self.line.shrink_to(MAX_KEPT_CAPACITY);
        Ok(message)
    }

    fn parse_line(&self) -> Option<ServerJsonRpcMessage> {
        let line = self.line.as_slice();
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let line = line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line);
        if line.is_empty() {
            return None;
        }
        let error = match parse_message(line) {
            Ok(message) => return Some(message),
            Err(error) => error,
        };
        tracing::debug!(%error, "received a line that is not a message");
        match recover_message(line, &error) {
            RecoveredMessage::Message(message) => return Some(*message),
            RecoveredMessage::Request(id) => self.reject_request(id),
            RecoveredMessage::Nothing => {}
        }
        None
    }

    /// Answers an invalid server request with an error, because the server waits for an answer.
    fn reject_request(&self, id: RequestId) {
        let refusal = ErrorData::invalid_request("Invalid request", None);
        let refusal = ClientJsonRpcMessage::error(refusal, Some(id));
        if let Ok(permit) = Arc::clone(&self.refusals).try_acquire_owned()
            && let Ok(end) = self.writer.queue_message(&refusal)
        {
            let writer = Arc::clone(&self.writer);
            tokio::spawn(async move {
                let _ = writer.write_queued_bytes(end).await;
                drop(permit);
            });
        }
    }
}

impl<R> Transport<RoleClient> for StdioTransport<R>
where
    R: AsyncRead + Send + Unpin + 'static,
{
    type Error = io::Error;

    fn send(
        &mut self,
        message: ClientJsonRpcMessage,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let queued = self.writer.queue_message(&message);
        let writer = Arc::clone(&self.writer);
        async move { writer.write_queued_bytes(queued?).await }
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        loop {
            match self.read_line_part().await {
                Ok(Some(message)) => return Some(message),
                Ok(None) => {}
                Err(error) => {
                    if error.kind() != io::ErrorKind::UnexpectedEof {
                        tracing::error!(%error, "failed to read from a server");
                    }
                    return None;
                }
            }
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        self.writer.closing.cancel();
        self.writer.pipe.lock().await.take();
        Ok(())
    }
}

#[cfg(test)]
#[path = "stdio_transport_tests.rs"]
mod tests;
