//! A test server that follows a script, including invalid behavior.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Instant,
};

use tokio::{
    io::{self, AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::mpsc,
    task::JoinHandle,
};

/// A step of the script of one connection.
pub(crate) enum Act {
    /// Reads a request.
    Read,
    /// Sends these bytes.
    Send(Vec<u8>),
    /// Sends more bytes than the buffers can hold, and reports to the test whether the client read
    /// all of them.
    Flood,
    /// Sends nothing until the client closes the connection, and reports this to the test.
    Stall,
}

/// A received request.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    pub(crate) at: Instant,
    /// Request line and headers as text.
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Seen {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines().skip(1);
        lines.find_map(|line| {
            let (found, value) = line.split_once(':')?;
            found.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }
}

/// An event that the server reports to the test.
#[derive(Debug, PartialEq, Eq)]
enum ServerEvent {
    Request,
    Closed,
    Swallowed,
}

const FLOOD_BYTES: usize = 64 << 20;

pub(crate) struct Server {
    pub(crate) url: String,
    seen: Arc<Mutex<Vec<Seen>>>,
    events: mpsc::UnboundedReceiver<ServerEvent>,
    task: JoinHandle<()>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Server {
    /// Starts a server that serves one connection after the other, each according to its script.
    /// Connections after the last script are accepted and closed.
    pub(crate) async fn start(scripts: Vec<Vec<Act>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("it is bound");
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (sender, events) = mpsc::unbounded_channel();
        let log = Arc::clone(&seen);
        let task = tokio::spawn(async move {
            let mut scripts = scripts.into_iter();
            while let Ok((socket, _)) = listener.accept().await {
                let script = scripts.next().unwrap_or_default();
                // An error is ignored: in some tests, the client closes the connection.
                serve(socket, script, &log, &sender).await.ok();
            }
        });
        Self {
            url: format!("http://{address}/v1/messages"),
            seen,
            events,
            task,
        }
    }

    /// Returns the requests that were received so far.
    pub(crate) fn seen(&self) -> Vec<Seen> {
        lock(&self.seen).clone()
    }

    pub(crate) async fn requested(&mut self) {
        assert_eq!(self.events.recv().await, Some(ServerEvent::Request));
    }

    /// Waits until the client closes a connection. The client may do so before the server has read
    /// the request.
    pub(crate) async fn closed(&mut self) {
        loop {
            match self.events.recv().await.expect("the server runs") {
                ServerEvent::Request => {}
                ServerEvent::Closed => return,
                ServerEvent::Swallowed => panic!("the client took a flood"),
            }
        }
    }
}

fn lock(seen: &Mutex<Vec<Seen>>) -> std::sync::MutexGuard<'_, Vec<Seen>> {
    seen.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn serve(
    mut socket: TcpStream,
    script: Vec<Act>,
    seen: &Mutex<Vec<Seen>>,
    events: &mpsc::UnboundedSender<ServerEvent>,
) -> io::Result<()> {
    let mut unread = Vec::new();
    for act in std::iter::once(Act::Read).chain(script) {
        match act {
            Act::Read => match read_request(&mut socket, &mut unread).await {
                Ok(request) => {
                    lock(seen).push(request);
                    events.send(ServerEvent::Request).ok();
                }
                Err(error) => {
                    events.send(ServerEvent::Closed).ok();
                    return Err(error);
                }
            },
            Act::Send(bytes) => socket.write_all(&bytes).await?,
            Act::Flood => {
                let piece = vec![b'x'; 1 << 16];
                for _ in 0..FLOOD_BYTES / piece.len() {
                    if let Err(error) = socket.write_all(&piece).await {
                        events.send(ServerEvent::Closed).ok();
                        return Err(error);
                    }
                }
                events.send(ServerEvent::Swallowed).ok();
            }
            Act::Stall => {
                // A reset of the connection also ends the loop.
                while matches!(socket.read(&mut [0; 64]).await, Ok(1..)) {}
                events.send(ServerEvent::Closed).ok();
            }
        }
    }
    socket.shutdown().await
}

async fn read_request(socket: &mut TcpStream, unread: &mut Vec<u8>) -> io::Result<Seen> {
    let head_end = loop {
        if let Some(end) = unread.windows(4).position(|four| four == b"\r\n\r\n") {
            break end + 4;
        }
        more(socket, unread).await?;
    };
    let head: Vec<u8> = unread.drain(..head_end).collect();
    let mut request = Seen {
        at: Instant::now(),
        head: String::from_utf8_lossy(&head).into_owned(),
        body: String::new(),
    };
    let length = request.header("content-length").unwrap_or("0");
    let length: usize = length.parse().map_err(io::Error::other)?;
    while unread.len() < length {
        more(socket, unread).await?;
    }
    let body: Vec<u8> = unread.drain(..length).collect();
    request.body = String::from_utf8_lossy(&body).into_owned();
    Ok(request)
}

async fn more(socket: &mut TcpStream, unread: &mut Vec<u8>) -> io::Result<()> {
    match socket.read_buf(unread).await? {
        0 => Err(io::ErrorKind::UnexpectedEof.into()),
        _ => Ok(()),
    }
}

/// Returns a step that sends a whole answer.
pub(crate) fn answer(status: u16, headers: &str, body: &str) -> Act {
    let length = body.len();
    send(format!(
        "HTTP/1.1 {status} Word\r\nconnection: close\r\ncontent-length: {length}\r\n{headers}\r\n{body}"
    ))
}

/// Returns a step that sends the headers of an answer in chunks.
pub(crate) fn opening(status: u16) -> Act {
    send(format!(
        "HTTP/1.1 {status} Word\r\ntransfer-encoding: chunked\r\n\r\n"
    ))
}

/// Returns a step that sends one chunk of such an answer.
pub(crate) fn chunk(text: &str) -> Act {
    send(format!("{:x}\r\n{text}\r\n", text.len()))
}

pub(crate) fn send(text: impl Into<String>) -> Act {
    Act::Send(text.into().into_bytes())
}
