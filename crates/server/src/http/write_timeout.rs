//! Closes connections whose clients do not read their responses.

use std::{
    future::Future as _,
    io,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use socket2::SockRef;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
    time::Sleep,
};

/// Size of the send buffer in bytes.
///
/// By default the operating system grows the buffer to megabytes and reports free space only when a
/// large part of it is free, so that a slow reader looks like a stopped one. With this size, a
/// client must read about 200 kB within the time limit (measured on loopback): 4 kB per second with
/// a limit of one minute.
const SEND_BUFFER: usize = 64 << 10;

/// A connection that fails if its client reads no data for the time limit while data waits to be
/// sent.
#[derive(Debug)]
pub(crate) struct WriteTimeout {
    stream: TcpStream,
    limit: Duration,
    /// The time when the connection fails. `None` while the operating system accepts writes.
    deadline: Option<Pin<Box<Sleep>>>,
}

impl WriteTimeout {
    pub(crate) fn new(stream: TcpStream, limit: Duration) -> Self {
        if let Err(error) = SockRef::from(&stream).set_send_buffer_size(SEND_BUFFER) {
            tracing::debug!(%error, "the connection is already closed");
        }
        Self {
            stream,
            limit,
            deadline: None,
        }
    }

    /// Returns `written`, the result of a write. Returns an error instead if writes have been
    /// pending for the time limit.
    fn check_deadline(
        &mut self,
        cx: &mut Context<'_>,
        written: Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        if written.is_ready() {
            self.deadline = None;
            return written;
        }
        let limit = self.limit;
        let deadline = self
            .deadline
            .get_or_insert_with(|| Box::pin(tokio::time::sleep(limit)));
        if deadline.as_mut().poll(cx).is_pending() {
            return Poll::Pending;
        }
        // A zero linger time discards the send buffer when the connection is closed.
        let _ = SockRef::from(&self.stream).set_linger(Some(Duration::ZERO));
        Poll::Ready(Err(io::Error::new(
            io::ErrorKind::TimedOut,
            "the client did not read within the time limit",
        )))
    }
}

impl AsyncRead for WriteTimeout {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl AsyncWrite for WriteTimeout {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.check_deadline(cx, written)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        // Flushing a socket never blocks, so it needs no time limit.
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use tokio::{
        io::{AsyncReadExt as _, AsyncWriteExt as _},
        net::{TcpListener, TcpSocket},
        time::advance,
    };

    use super::*;

    const LIMIT: Duration = Duration::from_mins(1);

    /// Returns both ends of a real connection. The client has a small receive buffer.
    async fn connection() -> (TcpStream, WriteTimeout) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let client = TcpSocket::new_v4().unwrap();
        client.set_recv_buffer_size(4 << 10).unwrap();
        let address = listener.local_addr().unwrap();
        let (client, server) = tokio::join!(client.connect(address), listener.accept());
        (client.unwrap(), WriteTimeout::new(server.unwrap().0, LIMIT))
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_reader_stays_connected_and_a_stopped_one_does_not() {
        // A blocking task stops the paused clock from advancing while all tasks wait for sockets.
        let (done, wait) = std::sync::mpsc::channel::<()>();
        let blocked = tokio::task::spawn_blocking(move || wait.recv());
        let (mut client, mut server) = connection().await;
        let writer = tokio::spawn(async move {
            let piece = vec![b'x'; 16 << 10];
            loop {
                if let Err(error) = server.write_all(&piece).await {
                    return error;
                }
            }
        });
        // About one kilobyte per second, which is close to the minimum.
        let mut received = vec![0; SEND_BUFFER];
        for _ in 0..5 {
            client.read_exact(&mut received).await.unwrap();
            advance(LIMIT * 9 / 10).await;
        }
        assert!(!writer.is_finished());
        for _ in 0..50 {
            if writer.is_finished() {
                break;
            }
            advance(LIMIT).await;
        }
        assert!(writer.is_finished());
        assert_eq!(writer.await.unwrap().kind(), io::ErrorKind::TimedOut);
        assert!(
            client.read_to_end(&mut received).await.is_err(),
            "the client sees that the response is incomplete"
        );
        drop(done);
        blocked.await.unwrap().unwrap_err();
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_without_pending_data_does_not_time_out() {
        let (done, wait) = std::sync::mpsc::channel::<()>();
        let blocked = tokio::task::spawn_blocking(move || wait.recv());
        let (mut client, mut server) = connection().await;
        for _ in 0..3 {
            server.write_all(b"some").await.unwrap();
            advance(LIMIT * 2).await;
        }
        drop(server);
        let mut received = Vec::new();
        client.read_to_end(&mut received).await.unwrap();
        assert_eq!(received, b"somesomesome");
        drop(done);
        blocked.await.unwrap().unwrap_err();
    }
}
