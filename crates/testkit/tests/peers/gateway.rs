//! A gateway that changes each request for a stream to a request for a whole answer.
//!
//! Some real gateways do not stream. Our adapters always request a stream (except Gemini's, if it
//! is configured) and must accept a whole answer. Everything else passes through the gateway
//! unchanged, including faults.

use std::io;

use serde_json::Value;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _, copy},
    net::{TcpListener, TcpStream},
};

/// Maximum size of a request's head in bytes.
const MAX_HEAD_BYTES: usize = 64 * 1024;

/// Starts a gateway to `server` (`127.0.0.1:…`) that runs as long as the test. Returns its address.
pub(crate) async fn open(server: String) -> io::Result<String> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
    let address = listener.local_addr()?;
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            let server = server.clone();
            tokio::spawn(async move {
                // An error closes the connection to the client, which must report it.
                pass(client, &server).await.ok();
            });
        }
    });
    Ok(format!("http://{address}"))
}

/// Forwards one request and its response.
async fn pass(mut client: TcpStream, server: &str) -> io::Result<()> {
    let Some((head, body)) = read(&mut client).await? else {
        return Ok(());
    };
    let body = without_stream(&body)?;
    let mut server = TcpStream::connect(server).await?;
    server.write_all(&rewritten(&head, body.len())).await?;
    server.write_all(&body).await?;
    let (mut from_client, mut to_client) = client.split();
    let (mut from_server, _to_server) = server.split();
    let mut rest = tokio::io::sink();
    tokio::select! {
        // The response ends when the server closes the connection.
        result = copy(&mut from_server, &mut to_client) => result.map(drop),
        // The client has disconnected. Returning drops the connection to the server.
        _ = copy(&mut from_client, &mut rest) => Ok(()),
    }
}

/// Reads the head of a request with its blank line, and its body.
async fn read(client: &mut TcpStream) -> io::Result<Option<(String, Vec<u8>)>> {
    let mut received = Vec::new();
    let end = loop {
        let blank_line = received.windows(4).position(|it| it == b"\r\n\r\n");
        match blank_line {
            Some(at) => break at + 4,
            None if received.len() > MAX_HEAD_BYTES => return Ok(None),
            None => {}
        }
        if client.read_buf(&mut received).await? == 0 {
            return Ok(None);
        }
    };
    let mut body = received.split_off(end);
    let head = String::from_utf8(received).map_err(io::Error::other)?;
    let length = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        let is_length = name.eq_ignore_ascii_case("content-length");
        is_length.then(|| value.trim().parse::<usize>().ok())?
    });
    while body.len() < length.unwrap_or_default() {
        if client.read_buf(&mut body).await? == 0 {
            return Ok(None);
        }
    }
    Ok(Some((head, body)))
}

/// Returns the body with a request for a whole answer.
fn without_stream(body: &[u8]) -> io::Result<Vec<u8>> {
    let mut body: Value = serde_json::from_slice(body)?;
    if let Some(fields) = body.as_object_mut() {
        fields.insert("stream".to_owned(), false.into());
        // OpenAI refuses this field without a stream.
        fields.remove("stream_options");
    }
    Ok(serde_json::to_vec(&body)?)
}

/// Returns the head for a body of this length. The end of the connection will end the response.
fn rewritten(head: &str, length: usize) -> Vec<u8> {
    let is_ours = |line: &&str| {
        let name = line.split(':').next().unwrap_or_default();
        !["content-length", "connection"]
            .iter()
            .any(|other| name.eq_ignore_ascii_case(other))
    };
    let mut lines: Vec<&str> = head.trim_end().split("\r\n").filter(is_ours).collect();
    let length = format!("content-length: {length}");
    lines.extend([length.as_str(), "connection: close"]);
    format!("{}\r\n\r\n", lines.join("\r\n")).into_bytes()
}
