//! Tests of the HTTP transport against real sockets on the loopback interface.
#![allow(
    clippy::expect_used,
    clippy::panic,
    reason = "the servers and helpers of tests may fail loudly"
)]

mod bodies;
mod failures;
mod retries;
mod secrets;
mod server;
mod timeouts;

use std::time::Duration;

use switchboard_domain::ModelError;
use switchboard_providers_common::{
    HttpAnswer, HttpRequest, HttpTransport, RetryPolicy, StatusClassifier, TransportConfig,
    read_to_end,
};

use tokio::net::TcpSocket;

use self::server::Server;

/// Returns a configuration with very short pauses between attempts and without a proxy.
fn config() -> TransportConfig {
    TransportConfig {
        retry: RetryPolicy {
            min_delay: Duration::from_millis(1),
            max_delay: Duration::from_millis(2),
            ..RetryPolicy::default()
        },
        system_proxy: false,
        ..TransportConfig::default()
    }
}

fn once() -> TransportConfig {
    TransportConfig {
        retry: RetryPolicy::never_retry(),
        ..config()
    }
}

fn transport(config: &TransportConfig) -> HttpTransport {
    HttpTransport::new("acme", config).expect("a client")
}

fn request(server: &Server) -> HttpRequest {
    HttpRequest::new(&server.url).with_json("{\"q\":1}")
}

/// Posts a small request.
async fn ask(server: &Server, config: &TransportConfig) -> Result<HttpAnswer, ModelError> {
    let transport = transport(config);
    transport.post(&request(server), &StatusClassifier).await
}

/// Posts a small request and reads the whole answer.
async fn ask_for_text(server: &Server, config: &TransportConfig) -> Result<String, ModelError> {
    let answer = ask(server, config).await?;
    text(answer).await
}

async fn text(answer: HttpAnswer) -> Result<String, ModelError> {
    let body = read_to_end("acme", answer.body, 1 << 20).await?;
    Ok(String::from_utf8_lossy(&body).into_owned())
}

/// Asserts that neither the message nor the debug text of an error contains a secret.
fn assert_hidden(error: &ModelError) {
    let shown = format!("{error} {error:?}");
    assert!(!shown.contains("hidden"), "{shown}");
}

/// Returns an address on which no server listens, and the socket that reserves it.
fn nobody() -> (String, TcpSocket) {
    let socket = TcpSocket::new_v4().expect("a socket");
    socket
        .bind(([127, 0, 0, 1], 0).into())
        .expect("a free port");
    let address = socket.local_addr().expect("it is bound");
    (format!("http://{address}/v1"), socket)
}
