//! JSON-RPC over the pipes of a server process: one message per line.
//!
//! Unlike the stdio transport of rmcp, this one limits the length of a line, recovers usable parts
//! of invalid messages, answers invalid requests, and can be closed while the server reads nothing.

use std::io;

use rmcp::{
    RoleClient,
    model::{ClientJsonRpcMessage, ErrorData, RequestId, ServerJsonRpcMessage},
    transport::Transport,
};
use tokio::{
    io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader},
    sync::{mpsc, oneshot},
};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::transport::{
    invalid_message::{Recovered, recover},
    parse::parse_message,
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
    messages: mpsc::UnboundedSender<Write>,
    refusals: mpsc::Sender<Vec<u8>>,
    closing: CancellationToken,
    /// Guard that stops the writer task when the transport is dropped, which closes the pipe.
    _close_on_drop: DropGuard,
    /// Receiver that resolves when the writer task has closed the pipe to the server.
    closed: Option<oneshot::Receiver<()>>,
}

/// Message for the writer task. The task drops `done` if it ends without writing the message.
struct Write {
    line: Vec<u8>,
    done: oneshot::Sender<io::Result<()>>,
}

impl<R: AsyncRead + Unpin> StdioTransport<R> {
    /// Creates the transport and starts its writer task. Drops received lines of more than
    /// `max_line` bytes.
    pub(crate) fn new(
        reader: R,
        writer: impl AsyncWrite + Send + Unpin + 'static,
        max_line: usize,
    ) -> Self {
        let (messages, queued) = mpsc::unbounded_channel();
        let (refusals, queued_refusals) = mpsc::channel(MAX_REFUSALS);
        let (closed_sender, closed) = oneshot::channel();
        let closing = CancellationToken::new();
        let token = closing.clone();
        tokio::spawn(async move {
            token
                .run_until_cancelled(write_lines(writer, queued, queued_refusals))
                .await;
            // The future that owned the writer has ended, which has closed the pipe to the server.
            let _ = closed_sender.send(());
        });
        Self {
            reader: BufReader::with_capacity(READ_BUFFER, reader),
            line: Vec::new(),
            discarding: false,
            max_line,
            messages,
            refusals,
            _close_on_drop: closing.clone().drop_guard(),
            closing,
            closed: Some(closed),
        }
    }

    /// Reads up to the end of a line or up to the maximum line size. Returns `None` if this part
    /// does not complete a valid message, and an error at the end of the output. Cancel-safe,
    /// because the field `line` stores the bytes that were read.
    async fn read_line_part(&mut self) -> io::Result<Option<ServerJsonRpcMessage>> {
        let room = self.max_line + 1 - self.line.len();
        let mut reader = (&mut self.reader).take(room as u64);
        if reader.read_until(b'\n', &mut self.line).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if self.line.pop_if(|last| *last == b'\n').is_none() {
            if self.line.len() > self.max_line {
                tracing::error!(max = self.max_line, "a line is too long and is dropped");
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
        match recover(line, &error) {
            Recovered::Message(message) => return Some(*message),
            Recovered::Request(id) => self.reject_request(id),
            Recovered::Nothing => {}
        }
        None
    }

    /// Answers an invalid server request with an error, because the server waits for an answer.
    fn reject_request(&self, id: RequestId) {
        let refusal = ErrorData::invalid_request("Invalid request", None);
        if let Ok(line) = to_line(&ClientJsonRpcMessage::error(refusal, Some(id))) {
            let _ = self.refusals.try_send(line);
        }
    }
}

fn to_line(message: &ClientJsonRpcMessage) -> io::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    Ok(line)
}

/// Writes queued messages to the server in order, until the pipe fails or the transport is dropped.
async fn write_lines(
    mut writer: impl AsyncWrite + Unpin,
    mut messages: mpsc::UnboundedReceiver<Write>,
    mut refusals: mpsc::Receiver<Vec<u8>>,
) {
    loop {
        let (line, done) = tokio::select! {
            biased;
            Some(line) = refusals.recv() => (line, None),
            Some(Write { line, done }) = messages.recv() => (line, Some(done)),
            else => return,
        };
        let written = async {
            writer.write_all(&line).await?;
            writer.flush().await
        };
        let written = written.await;
        let failed = written.is_err();
        if let Some(done) = done {
            // Sending fails if the caller has stopped waiting for the result.
            let _ = done.send(written);
        }
        if failed {
            return;
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
        let queued = to_line(&message).map(|line| {
            let (done, written) = oneshot::channel();
            // Queueing fails if the writer task has ended. Then `written` returns an error.
            let _ = self.messages.send(Write { line, done });
            written
        });
        let closing = self.closing.clone();
        async move {
            queued?.await.unwrap_or_else(|_| {
                Err(if closing.is_cancelled() {
                    io::ErrorKind::NotConnected.into()
                } else {
                    io::ErrorKind::BrokenPipe.into()
                })
            })
        }
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
        self.closing.cancel();
        if let Some(closed) = self.closed.take() {
            let _ = closed.await;
        }
        Ok(())
    }
}

#[cfg(test)]
#[path = "stdio_transport_tests.rs"]
mod tests;
