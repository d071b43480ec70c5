//! Tests of time-outs: every wait is limited, and the error names the phase.

use std::time::{Duration, Instant};

use futures_util::StreamExt as _;
use switchboard_domain::{ModelErrorKind, TimeoutPhase};
use switchboard_providers_common::{HttpRequest, StatusClassifier, TransportConfig};

use crate::{
    ask, once,
    server::{Act, Server, chunk, opening, send},
    text, transport,
};

const LIMIT: Duration = Duration::from_millis(120);

fn timeout(phase: TimeoutPhase) -> ModelErrorKind {
    ModelErrorKind::Timeout {
        phase,
        after: LIMIT,
    }
}

fn first_byte() -> TransportConfig {
    TransportConfig {
        first_byte_timeout: LIMIT,
        ..once()
    }
}

fn idle() -> TransportConfig {
    TransportConfig {
        idle_timeout: LIMIT,
        ..once()
    }
}

#[tokio::test]
async fn a_stalled_handshake_is_a_connect_timeout() {
    // The server accepts the connection but does not answer the TLS handshake.
    let server = Server::start(vec![vec![Act::Stall]]).await;
    let url = server.url.replace("http://", "https://");
    let config = TransportConfig {
        connect_timeout: LIMIT,
        ..once()
    };
    let started = Instant::now();
    let result = transport(&config)
        .post(&HttpRequest::new(&url), &StatusClassifier)
        .await;
    let error = result.unwrap_err();
    assert_eq!(error.kind, timeout(TimeoutPhase::Connect));
    assert!(started.elapsed() >= LIMIT);
    assert!(error.is_transient());
    assert!(
        error.to_string().contains("no connection within 120ms"),
        "{error}"
    );
    assert!(server.seen().is_empty());
}

#[tokio::test]
async fn missing_headers_and_bodies_time_out() {
    let beginnings = [
        send(""),
        send("HTTP/1.1 200 OK\r\ncontent-type: te"),
        opening(200),
    ];
    for beginning in beginnings {
        let mut server = Server::start(vec![vec![beginning, Act::Stall]]).await;
        let started = Instant::now();
        let error = ask(&server, &first_byte()).await.unwrap_err();
        assert_eq!(error.kind, timeout(TimeoutPhase::FirstByte));
        assert!(started.elapsed() >= LIMIT);
        assert!(
            error.to_string().contains("no answer within 120ms"),
            "{error}"
        );
        server.closed().await;
    }
}

#[tokio::test]
async fn a_stalled_answer_is_reported_with_its_request_id() {
    let mut server = Server::start(vec![vec![
        send("HTTP/1.1 200 OK\r\nrequest-id: req_1\r\ntransfer-encoding: chunked\r\n\r\n"),
        chunk("a"),
        Act::Stall,
    ]])
    .await;
    let mut body = ask(&server, &idle()).await.unwrap().body;
    assert_eq!(body.next().await.unwrap().unwrap(), "a");
    let started = Instant::now();
    let error = body.next().await.unwrap().unwrap_err();
    assert!(started.elapsed() >= LIMIT);
    assert_eq!(error.kind, timeout(TimeoutPhase::Idle));
    assert_eq!(error.request_id(), Some("req_1"));
    assert!(
        error.to_string().contains("no further data within 120ms"),
        "{error}"
    );
    assert!(body.next().await.is_none() && body.next().await.is_none());
    server.closed().await;
}

#[tokio::test]
async fn a_busy_reader_does_not_time_out() {
    let server = Server::start(vec![vec![
        opening(200),
        chunk("a"),
        chunk("b"),
        send("0\r\n\r\n"),
    ]])
    .await;
    let answer = ask(&server, &idle()).await.unwrap();
    // The caller does not read for longer than the limit, which must not count as a time-out.
    tokio::time::pause();
    tokio::time::advance(2 * LIMIT).await;
    tokio::time::resume();
    assert_eq!(text(answer).await.unwrap(), "ab");
}

#[tokio::test]
async fn a_failure_with_a_stalled_body_is_reported_with_its_beginning() {
    let mut server = Server::start(vec![vec![
        send("HTTP/1.1 400 Bad\r\ncontent-length: 100\r\n\r\nthe beginning"),
        Act::Stall,
    ]])
    .await;
    let error = ask(&server, &idle()).await.unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::InvalidRequest { field: None });
    assert_eq!(error.message(), "the beginning");
    server.closed().await;
}

// The clock is paused, so it advances directly to the next time-out.
#[tokio::test(start_paused = true)]
async fn a_model_may_think_for_minutes_and_a_list_may_not() {
    let server = Server::start(vec![vec![Act::Stall], vec![Act::Stall]]).await;
    let config = TransportConfig {
        connect_timeout: Duration::from_hours(24),
        ..once()
    };
    let (transport, request) = (transport(&config), HttpRequest::new(&server.url));
    let thought = transport.post(&request, &StatusClassifier).await;
    let listed = transport.get(&request, &StatusClassifier).await;
    for (result, after) in [
        (thought, Duration::from_mins(10)),
        (listed, Duration::from_secs(30)),
    ] {
        let phase = TimeoutPhase::FirstByte;
        let expected = ModelErrorKind::Timeout { phase, after };
        assert_eq!(result.unwrap_err().kind, expected);
    }
}
