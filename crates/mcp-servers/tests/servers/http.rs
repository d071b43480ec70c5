//! Streamable HTTP, with single requests.

use std::{fmt::Write as _, io, net::SocketAddr};

use rmcp::model::ProtocolVersion;
use serde_json::{Value, json};
use switchboard_mcp_servers::{AccessToken, ServerError, ServerOptions, bind_http};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

use crate::client::{Listening, NAME, bound, call, data, over_http};

/// Returns a call that needs no session.
fn body() -> Value {
    json!({
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {
            "name": "calculate_account_value",
            "arguments": {"customer_id": 42},
            "_meta": {
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
                "io.modelcontextprotocol/clientCapabilities": {},
            },
        },
    })
}

const HEADERS: [(&str, &str); 5] = [
    ("accept", "application/json, text/event-stream"),
    ("content-type", "application/json"),
    ("mcp-protocol-version", "2026-07-28"),
    ("mcp-method", "tools/call"),
    ("mcp-name", "calculate_account_value"),
];

/// A response: its status, its head in lower case, and its body.
struct Answer {
    status: u16,
    head: String,
    body: String,
}

/// Sends a request unchanged and reads until the server closes the connection.
async fn exchange(address: SocketAddr, request: &str) -> Answer {
    let mut connection = TcpStream::connect(address).await.unwrap();
    connection.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    connection.read_to_string(&mut answer).await.unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    Answer {
        status: head.split(' ').nth(1).unwrap().parse().unwrap(),
        head: head.to_lowercase(),
        body: body.to_owned(),
    }
}

/// Sends the call with these headers, which replace or extend the usual headers.
async fn post(listening: &Listening, path: &str, headers: &[(&str, &str)]) -> Answer {
    let address = address(listening);
    let host = address.to_string();
    let body = body().to_string();
    let mut request = format!("POST {path} HTTP/1.1\r\nconnection: close\r\n");
    let is_given = |name: &str| headers.iter().any(|(given, _)| *given == name);
    let usual = HEADERS.into_iter().chain([("host", host.as_str())]);
    let usual = usual.filter(|(name, _)| !is_given(name));
    for (name, value) in usual.chain(headers.iter().copied()) {
        write!(request, "{name}: {value}\r\n").unwrap();
    }
    write!(request, "content-length: {}\r\n\r\n{body}", body.len()).unwrap();
    exchange(address, &request).await
}

fn address(listening: &Listening) -> SocketAddr {
    let address = listening.url.trim_start_matches("http://");
    address.trim_end_matches("/mcp").parse().unwrap()
}

fn token() -> AccessToken {
    AccessToken::new(&"0123456789abcdef".into()).unwrap()
}

#[tokio::test]
async fn a_request_needs_no_session_and_gets_json() {
    let listening = over_http(ServerOptions::new()).await;
    let answer = post(&listening, "/mcp", &[]).await;
    assert_eq!(answer.status, 200);
    assert!(
        answer.head.contains("content-type: application/json"),
        "{}",
        answer.head
    );
    assert!(!answer.head.contains("mcp-session-id"), "{}", answer.head);
    let message: Value = serde_json::from_str(&answer.body).unwrap();
    let content = &message["result"]["structuredContent"];
    assert_eq!(content["account_value"], "530.19");
    listening.end().await;
}

#[tokio::test]
async fn foreign_hosts_and_origins_are_refused() {
    let listening = over_http(ServerOptions::new()).await;
    let port = address(&listening).port();
    let local = format!("localhost:{port}");
    let own = |host: &str| format!("http://{host}:{port}");
    let page = own("localhost");
    for (name, value, expected) in [
        ("host", "rebound.example", 403),
        ("host", local.as_str(), 200),
        ("origin", "https://evil.example", 403),
        ("origin", "null", 403),
        ("origin", page.as_str(), 200),
        ("origin", own("127.0.0.1").as_str(), 200),
        ("origin", own("[::1]").as_str(), 200),
        ("origin", "http://localhost", 403),
        ("origin", "http://localhost:3000", 403),
        ("origin", "http://127.0.0.1:3000", 403),
        ("origin", "http://[::1]:3000", 403),
        ("origin", "http://localhost.evil.example", 403),
    ] {
        let answer = post(&listening, "/mcp", &[(name, value)]).await;
        let (status, text) = (answer.status, answer.body);
        assert_eq!(status, expected, "{name}: {value}: {text}");
        assert_eq!(text.contains("530.19"), expected == 200);
    }
    listening.end().await;
}

#[tokio::test]
async fn further_hosts_can_be_allowed() {
    let options = ServerOptions::new()
        .with_allowed_host("tools.example")
        .with_allowed_host("other.example:8443");
    let listening = over_http(options).await;
    let own = format!("http://tools.example:{}", address(&listening).port());
    for (host, origin, expected) in [
        ("tools.example", "https://tools.example", 200),
        ("tools.example", "http://tools.example", 200),
        ("tools.example:99", own.as_str(), 200),
        ("tools.example:99", "http://tools.example:5173", 403),
        ("other.example:8443", "https://other.example:8443", 200),
        ("other.example:8444", "https://other.example:8443", 403),
        ("other.example:8443", "https://other.example", 403),
        ("third.example", "https://tools.example", 403),
    ] {
        let headers = [("host", host), ("origin", origin)];
        let answer = post(&listening, "/mcp", &headers).await;
        let (status, text) = (answer.status, answer.body);
        assert_eq!(status, expected, "{host} from {origin}: {text}");
    }
    // Requests to the loopback address are still accepted.
    assert_eq!(post(&listening, "/mcp", &[]).await.status, 200);
    listening.end().await;
}

#[tokio::test]
async fn the_error_of_another_path_names_the_right_one() {
    let listening = over_http(ServerOptions::new()).await;
    let answer = post(&listening, "/sse", &[]).await;
    assert_eq!(answer.status, 404);
    insta::assert_snapshot!(answer.body, @"Not found. The MCP endpoint is /mcp");
    listening.end().await;
}

#[tokio::test]
async fn the_bound_address_is_known_before_serving() {
    let server = bound(ServerOptions::new()).await;
    assert_ne!(server.address().port(), 0);
    assert!(server.address().ip().is_loopback());
    assert_eq!(server.url(), format!("http://{}/mcp", server.address()));
    let shown = format!("{server:?}");
    assert!(shown.contains("127.0.0.1"), "{shown}");

    // The URL of a server on all interfaces contains the loopback address.
    let options = ServerOptions::new().with_token(token());
    let everywhere = bind_http(NAME, ([0, 0, 0, 0], 0).into(), options);
    let everywhere = everywhere.await.unwrap();
    let port = everywhere.address().port();
    assert_eq!(everywhere.url(), format!("http://127.0.0.1:{port}/mcp"));
}

#[tokio::test]
async fn a_public_address_requires_a_token() {
    for address in ["0.0.0.0:0", "[::]:0", "192.0.2.1:0", "[2001:db8::1]:80"] {
        let error = bind_http(NAME, address.parse().unwrap(), ServerOptions::new())
            .await
            .unwrap_err();
        assert!(matches!(error, ServerError::Unguarded { .. }), "{error:?}");
        assert!(error.is_usage_error());
        let text = error.to_string();
        let expected = "is reachable from other machines, but no access token is configured: bind \
                        to 127.0.0.1, or set the variable `SWITCHBOARD_TOKEN`";
        assert_eq!(text, format!("{address} {expected}"));
    }
}

#[tokio::test]
async fn only_requests_with_the_token_are_answered() {
    let listening = over_http(ServerOptions::new().with_token(token())).await;
    for (headers, expected) in [
        (&[][..], 401),
        (&[("authorization", "Bearer 0123456789abcdef")], 200),
        (&[("authorization", "bearer  0123456789abcdef ")], 200),
        (&[("x-api-key", "0123456789abcdef")], 200),
        (&[("authorization", "Bearer 0123456789abcdee")], 401),
        (&[("authorization", "Bearer ")], 401),
        (&[("authorization", "0123456789abcdef")], 401),
        (&[("x-api-key", "0123456789abcdef0")], 401),
        // A valid token does not disable the check of the origin.
        (
            &[
                ("authorization", "Bearer 0123456789abcdef"),
                ("origin", "https://evil.example"),
            ],
            403,
        ),
    ] {
        let answer = post(&listening, "/mcp", headers).await;
        assert_eq!(answer.status, expected, "{headers:?}: {}", answer.body);
        assert_eq!(answer.body.contains("530.19"), expected == 200);
        let challenged = answer.head.contains("www-authenticate: bearer");
        assert_eq!(challenged, expected == 401, "{}", answer.head);
    }
    assert_eq!(post(&listening, "/sse", &[]).await.status, 401);
    listening.end().await;
}

#[tokio::test]
async fn the_error_of_a_used_port_names_it() {
    let taken = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = taken.local_addr().unwrap();
    let error = bind_http(NAME, address, ServerOptions::new())
        .await
        .unwrap_err();
    assert!(error.is_usage_error());
    let text = error.to_string();
    assert!(
        text.starts_with(&format!("cannot listen on {address}: ")),
        "{text}"
    );
    assert!(
        text.ends_with("; choose another port, or 0 for any free port"),
        "{text}"
    );
    let ServerError::Listen { source, .. } = error else {
        panic!("{error:?}")
    };
    assert_eq!(source.kind(), io::ErrorKind::AddrInUse);
}

#[tokio::test]
async fn a_running_request_is_answered_during_the_shutdown() {
    let listening = over_http(ServerOptions::new()).await;
    let address = address(&listening);
    let mut connection = TcpStream::connect(address).await.unwrap();
    let body = body().to_string();
    let mut head = format!("POST /mcp HTTP/1.1\r\nhost: {address}\r\n");
    for (name, value) in HEADERS {
        write!(head, "{name}: {value}\r\n").unwrap();
    }
    // The response "100 Continue" proves that the server processes the request.
    write!(
        head,
        "content-length: {}\r\nexpect: 100-continue\r\n\r\n",
        body.len()
    )
    .unwrap();
    connection.write_all(head.as_bytes()).await.unwrap();
    let mut first = [0; 25];
    connection.read_exact(&mut first).await.unwrap();
    assert_eq!(&first[..], b"HTTP/1.1 100 Continue\r\n\r\n");

    let server = listening.stop();
    connection.write_all(body.as_bytes()).await.unwrap();
    let mut answer = String::new();
    connection.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    assert!(answer.contains("530.19"), "{answer}");
    server.await.unwrap().unwrap();
}

#[tokio::test]
async fn dropping_a_server_closes_its_connections() {
    let server = bound(ServerOptions::new()).await;
    let address = server.address();
    let server = tokio::spawn(server.serve(std::future::pending()));
    let mut connection = TcpStream::connect(address).await.unwrap();
    let request = format!("GET / HTTP/1.1\r\nhost: {address}\r\n\r\n");
    connection.write_all(request.as_bytes()).await.unwrap();
    let mut first = [0; 12];
    connection.read_exact(&mut first).await.unwrap();
    assert_eq!(&first[..], b"HTTP/1.1 404");
    server.abort();
    // Reading ends only if the server closes the connection, because HTTP/1.1 keeps connections
    // open.
    let mut rest = Vec::new();
    connection.read_to_end(&mut rest).await.unwrap();
    assert!(TcpStream::connect(address).await.is_err());
}

#[tokio::test]
async fn idle_clients_do_not_delay_the_shutdown() {
    let listening = over_http(ServerOptions::new()).await;
    let mut clients = Vec::new();
    for version in [ProtocolVersion::V_2025_03_26, ProtocolVersion::LATEST] {
        let client = listening.client(version).await;
        let value = json!({"customer_id": 42});
        data(call(&client, "calculate_account_value", value).await);
        clients.push(client);
    }
    // The clock is paused, so it advances only if the server waits for a time-out. The elapsed time
    // shows whether it did.
    tokio::time::pause();
    let begun = tokio::time::Instant::now();
    listening.end().await;
    assert!(begun.elapsed().as_secs() < 3, "{:?}", begun.elapsed());
}

#[tokio::test]
async fn an_incomplete_request_does_not_delay_the_shutdown() {
    let listening = over_http(ServerOptions::new()).await;
    let mut connection = TcpStream::connect(address(&listening)).await.unwrap();
    let half = "POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-length: 9\r\n\
                accept: application/json, text/event-stream\r\n\
                content-type: application/json\r\nexpect: 100-continue\r\n\r\n";
    connection.write_all(half.as_bytes()).await.unwrap();
    let mut first = [0; 25];
    connection.read_exact(&mut first).await.unwrap();

    tokio::time::pause();
    let begun = tokio::time::Instant::now();
    listening.end().await;
    assert_eq!(begun.elapsed().as_secs(), 3);
}
