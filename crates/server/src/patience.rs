//! How long a connection waits for a client that takes nothing of what it is sent.

use std::{
    future::Future as _,
    io::{self, IoSlice},
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

/// What the system keeps for a client that does not read yet, in bytes. Systems let it grow to megabytes, and say
/// that there is room again only when a good part is free: a client that reads slowly would look like one that does
/// not read at all. With this much, and what the client's own system takes ahead of it, it has to take about 200 kB
/// within the time to be seen: 4 kB in a second with a minute (measured on loopback).
const BEHIND: usize = 64 << 10;

/// A connection that ends when its client takes next to nothing for too long, while there is something to send.
#[derive(Debug)]
pub(crate) struct Patient {
    stream: TcpStream,
    most: Duration,
    /// Runs since the client last took something; there is none while it takes all.
    end: Option<Pin<Box<Sleep>>>,
}

impl Patient {
    pub(crate) fn new(stream: TcpStream, most: Duration) -> Self {
        if let Err(error) = SockRef::from(&stream).set_send_buffer_size(BEHIND) {
            tracing::debug!(%error, "a connection is gone already");
        }
        Self {
            stream,
            most,
            end: None,
        }
    }

    /// Looks at the clock where something could not be sent.
    fn waited<T>(
        &mut self,
        cx: &mut Context<'_>,
        sent: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if sent.is_ready() {
            self.end = None;
            return sent;
        }
        let most = self.most;
        let end = self
            .end
            .get_or_insert_with(|| Box::pin(tokio::time::sleep(most)));
        if end.as_mut().poll(cx).is_pending() {
            return Poll::Pending;
        }
        // What is not sent is not kept either: else the system goes on trying to send it.
        let _ = SockRef::from(&self.stream).set_linger(Some(Duration::ZERO));
        Poll::Ready(Err(io::Error::new(
            io::ErrorKind::TimedOut,
            "the client took nothing for too long",
        )))
    }
}

impl AsyncRead for Patient {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Patient {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let sent = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.waited(cx, sent)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let sent = Pin::new(&mut self.stream).poll_write_vectored(cx, pieces);
        self.waited(cx, sent)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        // What was written is the system's: this waits for nobody.
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

    const MOST: Duration = Duration::from_mins(1);

    /// Both ends of a real connection, whose client keeps little.
    async fn connection() -> (TcpStream, Patient) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let client = TcpSocket::new_v4().unwrap();
        client.set_recv_buffer_size(4 << 10).unwrap();
        let address = listener.local_addr().unwrap();
        let (client, server) = tokio::join!(client.connect(address), listener.accept());
        (client.unwrap(), Patient::new(server.unwrap().0, MOST))
    }

    #[tokio::test(start_paused = true)]
    async fn who_reads_slowly_stays_and_who_does_not_read_goes() {
        // While something blocks elsewhere the clock stands still, also when everybody waits for the sockets.
        let (done, wait) = std::sync::mpsc::channel::<()>();
        let still = tokio::task::spawn_blocking(move || wait.recv());
        let (mut client, mut server) = connection().await;
        let writer = tokio::spawn(async move {
            let piece = vec![b'x'; 16 << 10];
            loop {
                if let Err(error) = server.write_all(&piece).await {
                    return error;
                }
            }
        });
        // As little as the slowest that stay: about a kilobyte in a second.
        let mut taken = vec![0; BEHIND];
        for _ in 0..5 {
            client.read_exact(&mut taken).await.unwrap();
            advance(MOST * 9 / 10).await;
        }
        assert!(!writer.is_finished(), "every minute it took something");
        for _ in 0..50 {
            if writer.is_finished() {
                break;
            }
            advance(MOST).await;
        }
        assert!(writer.is_finished(), "it takes nothing any more");
        assert_eq!(writer.await.unwrap().kind(), io::ErrorKind::TimedOut);
        assert!(
            client.read_to_end(&mut taken).await.is_err(),
            "it is told that this is not all"
        );
        drop(done);
        still.await.unwrap().unwrap_err();
    }

    #[tokio::test(start_paused = true)]
    async fn who_is_sent_nothing_may_take_nothing() {
        let (done, wait) = std::sync::mpsc::channel::<()>();
        let still = tokio::task::spawn_blocking(move || wait.recv());
        let (mut client, mut server) = connection().await;
        for _ in 0..3 {
            server.write_all(b"some").await.unwrap();
            advance(MOST * 2).await;
        }
        drop(server);
        let mut taken = Vec::new();
        client.read_to_end(&mut taken).await.unwrap();
        assert_eq!(taken, b"somesomesome");
        drop(done);
        still.await.unwrap().unwrap_err();
    }
}
